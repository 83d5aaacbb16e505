//! Commands that concern the process: pausing and stopping its traffic, ending it, new certificates.

use crate::daemon::Stop;
use crate::runtime::AllListeners;
use crate::session::{Ending, Entry, Registry, unknown_thread};
use admin::{ProcessCommand, failed};
use arc_swap::ArcSwap;
use crossbeam_channel::Sender;
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use wire::SqlError;
use wire::tls::ServerTls;

/// What running statements get when the traffic is stopped.
const GRACE: Duration = Duration::from_secs(5);

/// The certificate in force, and where it comes from.
pub struct Certificate {
    current: ArcSwap<ServerTls>,
    directory: PathBuf,
}

impl Certificate {
    /// Reads the directory's certificate; makes one first if there is none.
    pub fn open(directory: PathBuf) -> Result<Self, wire::WireError> {
        let current = ArcSwap::from_pointee(ServerTls::load_or_create(&directory)?);
        Ok(Self { current, directory })
    }

    /// The certificate for a new connection.
    pub fn current(&self) -> ServerTls {
        ServerTls::clone(&self.current.load())
    }

    /// Puts the files as they are now in force, or refuses them and changes nothing.
    fn reload(&self) -> Result<(), SqlError> {
        let loaded = ServerTls::load(&self.directory);
        let loaded = loaded.map_err(|error| failed(format!("{error}; the certificate before stays")))?;
        self.current.store(Arc::new(loaded));
        log::info!("the certificate was read anew");
        Ok(())
    }
}

/// Whether clients are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Traffic {
    Running,
    Paused,
    Stopped,
}

/// What process commands act on.
pub struct Process {
    listeners: Arc<AllListeners>,
    sessions: Arc<Registry>,
    certificate: Arc<Certificate>,
    stop: Sender<Stop>,
    /// Held while the traffic's state changes, so that changes come one after the other.
    traffic: Mutex<Traffic>,
}

impl Process {
    /// `stop` is where commands go that end the daemon.
    pub fn new(
        listeners: Arc<AllListeners>,
        sessions: Arc<Registry>,
        certificate: Arc<Certificate>,
        stop: Sender<Stop>,
    ) -> Self {
        Self { listeners, sessions, certificate, stop, traffic: Mutex::new(Traffic::Running) }
    }

    /// Runs a command.
    pub fn command(&self, command: ProcessCommand) -> Result<(), SqlError> {
        match command {
            ProcessCommand::Shutdown => self.end(Stop::AtOnce),
            ProcessCommand::ShutdownSlow => self.end(Stop::Gracefully),
            ProcessCommand::Restart => self.end(Stop::Restart),
            ProcessCommand::Kill => {
                // Fails only where the process may not signal itself, which none is forbidden.
                let _ =
                    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
            }
            ProcessCommand::Pause => self.pause()?,
            ProcessCommand::Resume => self.open(Traffic::Paused, "not paused")?,
            ProcessCommand::Stop => self.stop_traffic()?,
            ProcessCommand::Start => self.open(Traffic::Stopped, "not stopped")?,
            ProcessCommand::FlushClientHosts => self.sessions.hosts.flush(),
            ProcessCommand::ReloadTls => self.certificate.reload()?,
            ProcessCommand::KillConnection(id) => self.session(id)?.end(Ending::Killed),
            ProcessCommand::KillQuery(id) => self.session(id)?.kill_query(),
        }
        Ok(())
    }

    fn session(&self, id: u32) -> Result<Arc<Entry>, SqlError> {
        self.sessions.find(id).ok_or_else(|| unknown_thread(id.into()))
    }

    fn end(&self, how: Stop) {
        // Fails only when the daemon is stopping already.
        let _ = self.stop.send(how);
    }

    fn pause(&self) -> Result<(), SqlError> {
        let mut traffic = self.traffic.lock();
        match *traffic {
            Traffic::Running => {
                self.listeners.traffic.pause();
                *traffic = Traffic::Paused;
                log::info!("paused: new clients are refused");
                self.listeners.write_ports();
                Ok(())
            }
            Traffic::Paused => Err(failed("paused already; PROXYSQL RESUME ends it")),
            Traffic::Stopped => Err(failed("stopped; PROXYSQL START comes first")),
        }
    }

    fn open(&self, from: Traffic, otherwise: &str) -> Result<(), SqlError> {
        let mut traffic = self.traffic.lock();
        if *traffic != from {
            return Err(failed(otherwise));
        }
        self.listeners.traffic.resume().map_err(failed)?;
        *traffic = Traffic::Running;
        log::info!("clients are served again");
        self.listeners.write_ports();
        Ok(())
    }

    fn stop_traffic(&self) -> Result<(), SqlError> {
        let mut traffic = self.traffic.lock();
        if *traffic == Traffic::Stopped {
            return Err(failed("stopped already; PROXYSQL START ends it"));
        }
        self.listeners.traffic.pause();
        self.listeners.traffic.disconnect(GRACE);
        // Those that are left wait for their servers, which their threads end when they are told to.
        self.sessions.entries().iter().for_each(|session| session.end(Ending::Killed));
        *traffic = Traffic::Stopped;
        log::info!("stopped: clients are disconnected and refused");
        self.listeners.write_ports();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_broken_pair_is_refused_and_the_old_one_stays() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let certificate = Certificate::open(first.path().to_owned()).unwrap();
        ServerTls::load_or_create(second.path()).unwrap();
        let before = Arc::as_ptr(&certificate.current.load());
        // Another pair's certificate does not go with the key.
        let name = "pointsman-cert.pem";
        fs::copy(second.path().join(name), first.path().join(name)).unwrap();
        let error = certificate.reload().unwrap_err();
        assert!(error.message.contains(name) && error.message.contains("stays"), "{}", error.message);
        assert_eq!(Arc::as_ptr(&certificate.current.load()), before);

        let name = "pointsman-key.pem";
        fs::copy(second.path().join(name), first.path().join(name)).unwrap();
        certificate.reload().unwrap();
        assert_ne!(Arc::as_ptr(&certificate.current.load()), before);

        fs::remove_file(first.path().join(name)).unwrap();
        assert!(certificate.reload().is_err());
    }
}
