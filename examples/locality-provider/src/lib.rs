//! A locality provider for pointsman in Rust, to copy from: it knows places from its configuration or from a file, and answers on a thread
//! of its own.
//!
//! ```text
//! pointsman --locality-provider library:./liblocality_provider_example.so --locality-config @/etc/pointsman/places
//! ```
//!
//! `abi` is the C side and can be taken as it is but for the name of the provider, `Example`. What is this provider's own begins below;
//! docs/locality-provider.md says what is asked of it.

mod abi;
mod places;

use abi::{Category, Host, Lease, Provider, Subject};
use places::Source;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

/// The provider: the way to its thread, while there is one.
struct Example {
    batches: Option<Sender<Vec<Lease>>>,
    thread: Option<JoinHandle<()>>,
}

impl Provider for Example {
    const NAME: &str = "example";
    const SHOWS_TABLE: bool = true;

    fn create(host: Host, config: &str) -> Result<Self, String> {
        let source = Source::parse(config)?;
        let (batches, received) = channel();
        let thread = thread::Builder::new().name("places".to_owned());
        let thread = thread.spawn(move || serve(host, &source, &received));
        let thread = thread.map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(Self { batches: Some(batches), thread: Some(thread) })
    }
    fn request(&mut self, leases: Vec<Lease>) {
        if let Some(batches) = &self.batches {
            // If the thread is gone the leases are dropped, and so returned.
            let _ = batches.send(leases);
        }
    }
    fn shut_down(&mut self) {
        // The thread finishes the batch that it has, finds the channel closed, and drops the other leases, which returns them.
        self.batches = None;
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        self.shut_down();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The thread. A provider that asks a service would do it here, with a time limit well below 5 seconds for each call.
fn serve(host: Host, source: &Source, batches: &Receiver<Vec<Lease>>) {
    while let Ok(leases) = batches.recv() {
        let places = source.read();
        if let Err(problem) = &places {
            host.warn(problem);
        }
        for lease in leases {
            let Some(subject) = lease.subject() else { continue };
            let name = match &subject {
                Subject::Own => places::OWN,
                Subject::Endpoint(host) => host,
            };
            let answer = match &places {
                Ok(places) => places.get(name).ok_or(Category::NotFound),
                Err(_) => Err(Category::ProviderError),
            };
            lease.answer(answer);
        }
    }
}
