//! Listeners that follow their variable: what an interface list asks for is bound, what it drops is closed.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use std::{fs, io};
use wire::service::{Address, Service};

/// One service and the addresses its variable names.
pub struct Listeners {
    service: Service,
    variable: &'static str,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    bound: Vec<Bound>,
    /// Nothing is bound then; `bound` says what is to be again.
    paused: bool,
}

/// An address as asked for (its port may be 0) and as the system bound it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bound {
    asked: Address,
    actual: Address,
}

/// An address that could not be bound.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The list itself cannot be read.
    #[error("{variable}: {reason}")]
    List {
        /// The variable.
        variable: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The system refused an address.
    #[error(
        "cannot listen on {address} ({variable}): {source}; choose another with --set {variable}=ADDRESS:PORT"
    )]
    Bind {
        /// The address.
        address: Address,
        /// The variable that names it.
        variable: &'static str,
        /// Why.
        source: io::Error,
    },
}

impl Listeners {
    /// No listener yet; `variable` is named in errors.
    pub fn new(service: Service, variable: &'static str) -> Self {
        Self { service, variable, state: Mutex::default() }
    }

    /// Binds what `list` asks for and closes what it does not name any more. If one address cannot be bound, all stays as it was.
    pub fn apply(&self, list: &str) -> Result<(), ListenError> {
        let wanted = admin::parse_interfaces(list)
            .map_err(|reason| ListenError::List { variable: self.variable, reason })?;
        // Held over bind calls, which do not block; it only keeps two changes apart.
        let mut state = self.state.lock();
        let paused = state.paused;
        let bound = &mut state.bound;
        if !paused {
            // Nobody finds them any more, since something has tidied up their directory: they are made anew.
            bound
                .extract_if(.., |bound| is_gone(&bound.actual))
                .for_each(|gone| self.service.unlisten(gone.actual));
        }
        let mut dropped: Vec<Bound> = bound.extract_if(.., |bound| !wanted.contains(&bound.asked)).collect();
        let mut closed: Vec<Bound> = Vec::new();
        let kept = bound.len();
        for asked in wanted {
            if bound.iter().any(|bound| bound.asked == asked) {
                continue;
            }
            if paused {
                bound.push(Bound { actual: asked.clone(), asked });
                continue;
            }
            match self.listen(&asked, &mut dropped, &mut closed) {
                Ok(actual) => bound.push(Bound { asked, actual }),
                Err(source) => {
                    bound.drain(kept..).for_each(|added| self.service.unlisten(added.actual));
                    bound.append(&mut dropped);
                    bound.extend(closed.into_iter().filter(|closed| self.reopen(closed)));
                    return Err(self.cannot(asked, source));
                }
            }
        }
        if !paused {
            dropped.into_iter().for_each(|dropped| self.service.unlisten(dropped.actual));
        }
        Ok(())
    }

    fn cannot(&self, address: Address, source: io::Error) -> ListenError {
        ListenError::Bind { address, variable: self.variable, source }
    }

    /// Listens on an address. Ours on the same port that are to be dropped may cover it, as 0.0.0.0 does: then these go first.
    fn listen(
        &self,
        asked: &Address,
        dropped: &mut Vec<Bound>,
        closed: &mut Vec<Bound>,
    ) -> io::Result<Address> {
        let refused = match self.service.listen_at(asked) {
            Err(refused) if refused.kind() == io::ErrorKind::AddrInUse => refused,
            other => return other,
        };
        let port = |address: &Address| address.tcp().map(|address| address.port());
        let covers = |dropped: &mut Bound| port(asked).is_some() && port(&dropped.actual) == port(asked);
        let first = closed.len();
        closed.extend(dropped.extract_if(.., covers));
        if closed.len() == first {
            return Err(refused);
        }
        closed.iter().skip(first).for_each(|closed| self.service.unlisten(closed.actual.clone()));
        self.service.listen_at(asked)
    }

    /// Listens again on an address that was closed a moment ago.
    fn reopen(&self, closed: &Bound) -> bool {
        let reopened = self.service.listen_at(&closed.actual);
        if let Err(error) = &reopened {
            log::error!("cannot listen on {} ({}) again: {error}", closed.actual, self.variable);
        }
        reopened.is_ok()
    }

    /// How many clients were refused because there were too many, as the service counts it.
    pub fn refused(&self) -> Arc<AtomicU64> {
        self.service.refused()
    }

    /// Closes every address until `resume`; connections go on.
    pub fn pause(&self) {
        let mut state = self.state.lock();
        if !std::mem::replace(&mut state.paused, true) {
            state.bound.iter().for_each(|bound| self.service.unlisten(bound.actual.clone()));
        }
    }

    /// Listens again on the addresses that `pause` closed, or on those that were asked for since. If one cannot be bound, all
    /// stay closed.
    pub fn resume(&self) -> Result<(), ListenError> {
        let mut state = self.state.lock();
        if !state.paused {
            return Ok(());
        }
        for index in 0..state.bound.len() {
            // The index is below the length.
            let wanted = state.bound[index].actual.clone();
            match self.service.listen_at(&wanted) {
                Ok(actual) => state.bound[index].actual = actual,
                Err(source) => {
                    let opened = state.bound.iter().take(index);
                    opened.for_each(|opened| self.service.unlisten(opened.actual.clone()));
                    return Err(self.cannot(wanted, source));
                }
            }
        }
        state.paused = false;
        Ok(())
    }

    /// Addresses bound now.
    pub fn addresses(&self) -> Vec<Address> {
        let state = self.state.lock();
        let bound = state.bound.iter().filter(|_| !state.paused);
        bound.map(|bound| bound.actual.clone()).collect()
    }

    /// Ends every connection: idle ones at once, busy ones after their statement or `grace`.
    pub fn disconnect(&self, grace: Duration) {
        self.service.disconnect(grace);
    }

    /// Ends the service; see [`Service::stop`].
    pub fn stop(&self, grace: Duration) {
        self.service.stop(grace);
    }
}

/// Whether an address is a unix socket without its file.
fn is_gone(address: &Address) -> bool {
    match address {
        Address::Unix(path) => fs::symlink_metadata(path).is_err_and(|e| e.kind() == io::ErrorKind::NotFound),
        Address::Tcp(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::sync::Arc;
    use wire::service::ServiceSpec;

    fn listeners() -> Listeners {
        let spec = ServiceSpec { name: "test", stack: 256 * 1024 };
        Listeners::new(Service::new(spec, Arc::new(|| 10), Arc::new(|_| {})), "test-ifaces")
    }

    fn addresses(listeners: &Listeners) -> Vec<SocketAddr> {
        listeners.addresses().iter().filter_map(Address::tcp).collect()
    }

    #[test]
    fn a_pause_closes_what_a_resume_opens_again() {
        let listeners = listeners();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sock");
        listeners.apply(&format!("127.0.0.1:0;{}", path.display())).unwrap();
        let before = listeners.addresses();
        listeners.pause();
        listeners.pause();
        let tcp = before[0].tcp().unwrap();
        assert!(listeners.addresses().is_empty() && TcpStream::connect(tcp).is_err() && !path.exists());

        let taken = TcpListener::bind(tcp).unwrap();
        assert!(listeners.resume().unwrap_err().to_string().contains(&tcp.to_string()));
        assert!(listeners.addresses().is_empty() && !path.exists());
        drop(taken);
        listeners.resume().unwrap();
        listeners.resume().unwrap();
        assert_eq!(listeners.addresses(), before);
        assert!(TcpStream::connect(tcp).is_ok() && path.exists());
        listeners.stop(Duration::ZERO);
    }

    #[test]
    fn what_is_asked_for_in_a_pause_comes_with_its_end() {
        let listeners = listeners();
        listeners.apply("127.0.0.1:0").unwrap();
        let before = addresses(&listeners);
        listeners.pause();
        listeners.apply("127.0.0.2:0").unwrap();
        assert!(listeners.addresses().is_empty());
        listeners.resume().unwrap();
        let after = addresses(&listeners);
        assert!(after.len() == 1 && TcpStream::connect(after[0]).is_ok());
        assert!(TcpStream::connect(before[0]).is_err());
        listeners.stop(Duration::ZERO);
    }

    #[test]
    fn follows_its_list() {
        let listeners = listeners();
        listeners.apply("127.0.0.1:0").unwrap();
        let first = addresses(&listeners);
        assert_eq!(first.len(), 1);
        listeners.apply("127.0.0.1:0").unwrap();
        assert_eq!(addresses(&listeners), first, "an unchanged list binds nothing anew");

        listeners.apply("127.0.0.2:0").unwrap();
        let second = addresses(&listeners);
        assert!(TcpStream::connect(second[0]).is_ok());
        assert!(TcpStream::connect(first[0]).is_err(), "the dropped address is closed");
        listeners.stop(Duration::ZERO);
    }

    #[test]
    fn a_socket_whose_file_was_removed_is_made_anew() {
        let listeners = listeners();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sock");
        let list = format!("127.0.0.1:0;{}", path.display());
        listeners.apply(&list).unwrap();
        let before = listeners.addresses();
        fs::remove_file(&path).unwrap();
        listeners.apply(&list).unwrap();
        assert!(std::os::unix::net::UnixStream::connect(&path).is_ok());
        assert_eq!(listeners.addresses(), before);
        listeners.stop(Duration::ZERO);
    }

    #[test]
    fn a_taken_port_changes_nothing() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = taken.local_addr().map(|address| (taken, address)).unwrap();
        let listeners = listeners();
        listeners.apply("127.0.0.1:0").unwrap();
        let before = addresses(&listeners);
        let error = listeners.apply(&format!("127.0.0.2:0;{}", taken.1)).unwrap_err().to_string();
        assert!(error.contains(&taken.1.to_string()) && error.contains("--set test-ifaces"), "{error}");
        assert_eq!(addresses(&listeners), before);
        assert!(TcpStream::connect(before[0]).is_ok());
        assert!(listeners.apply("nonsense").unwrap_err().to_string().contains("test-ifaces"));
        listeners.stop(Duration::ZERO);
    }

    #[test]
    fn an_address_may_give_way_to_one_that_covers_it() {
        let listeners = listeners();
        listeners.apply("127.0.0.1:0").unwrap();
        let port = addresses(&listeners)[0].port();
        listeners.apply(&format!("127.0.0.1:{port}")).unwrap();
        listeners.apply(&format!("0.0.0.0:{port}")).unwrap();
        assert!(TcpStream::connect(("127.0.0.2", port)).is_ok());

        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let list = format!("127.0.0.1:{port};{}", taken.local_addr().unwrap());
        assert!(listeners.apply(&list).is_err());
        assert_eq!(addresses(&listeners), [SocketAddr::from(([0, 0, 0, 0], port))]);
        assert!(TcpStream::connect(("127.0.0.2", port)).is_ok());

        listeners.apply(&format!("127.0.0.1:{port};127.0.0.1:{port}")).unwrap();
        assert_eq!(addresses(&listeners), [SocketAddr::from(([127, 0, 0, 1], port))]);
        assert!(TcpStream::connect(("127.0.0.2", port)).is_err());
        listeners.stop(Duration::ZERO);
    }
}
