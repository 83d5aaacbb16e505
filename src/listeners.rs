//! Listeners that follow their variable: what an interface list asks for is bound, what it drops is closed.

use parking_lot::Mutex;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use wire::service::Service;

/// One service and the addresses its variable names.
pub struct Listeners {
    service: Service,
    variable: &'static str,
    bound: Mutex<Vec<Bound>>,
}

/// An address as asked for (its port may be 0) and as the system bound it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bound {
    asked: SocketAddr,
    actual: SocketAddr,
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
        address: SocketAddr,
        /// The variable that names it.
        variable: &'static str,
        /// Why.
        source: io::Error,
    },
}

impl Listeners {
    /// No listener yet; `variable` is named in errors.
    pub fn new(service: Service, variable: &'static str) -> Self {
        Self { service, variable, bound: Mutex::default() }
    }

    /// Binds what `list` asks for and closes what it does not name any more. If one address cannot be bound, all stays as it was.
    pub fn apply(&self, list: &str) -> Result<(), ListenError> {
        let wanted = admin::parse_interfaces(list)
            .map_err(|reason| ListenError::List { variable: self.variable, reason })?;
        // Held over bind calls, which do not block; it only keeps two changes apart.
        let mut bound = self.bound.lock();
        let mut dropped: Vec<Bound> = bound.extract_if(.., |bound| !wanted.contains(&bound.asked)).collect();
        let mut closed: Vec<Bound> = Vec::new();
        let kept = bound.len();
        for asked in wanted {
            if bound.iter().any(|bound| bound.asked == asked) {
                continue;
            }
            match self.listen(asked, &mut dropped, &mut closed) {
                Ok(actual) => bound.push(Bound { asked, actual }),
                Err(source) => {
                    bound.drain(kept..).for_each(|added| self.service.unlisten(added.actual));
                    bound.append(&mut dropped);
                    bound.extend(closed.into_iter().filter(|closed| self.reopen(*closed)));
                    return Err(ListenError::Bind { address: asked, variable: self.variable, source });
                }
            }
        }
        dropped.iter().for_each(|dropped| self.service.unlisten(dropped.actual));
        Ok(())
    }

    /// Listens on an address. Ours on the same port that are to be dropped may cover it, as 0.0.0.0 does: then these go first.
    fn listen(
        &self,
        asked: SocketAddr,
        dropped: &mut Vec<Bound>,
        closed: &mut Vec<Bound>,
    ) -> io::Result<SocketAddr> {
        let refused = match self.service.listen(asked) {
            Err(refused) if refused.kind() == io::ErrorKind::AddrInUse => refused,
            other => return other,
        };
        let first = closed.len();
        closed.extend(dropped.extract_if(.., |dropped| dropped.actual.port() == asked.port()));
        if closed.len() == first {
            return Err(refused);
        }
        closed.iter().skip(first).for_each(|closed| self.service.unlisten(closed.actual));
        self.service.listen(asked)
    }

    /// Listens again on an address that was closed a moment ago.
    fn reopen(&self, closed: Bound) -> bool {
        let reopened = self.service.listen(closed.actual);
        if let Err(error) = &reopened {
            log::error!("cannot listen on {} ({}) again: {error}", closed.actual, self.variable);
        }
        reopened.is_ok()
    }

    /// How many clients were refused because there were too many, as the service counts it.
    pub fn refused(&self) -> Arc<AtomicU64> {
        self.service.refused()
    }
    /// Addresses bound now.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.bound.lock().iter().map(|bound| bound.actual).collect()
    }

    /// Ends the service; see [`Service::stop`].
    pub fn stop(&self, grace: Duration) {
        self.service.stop(grace);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::sync::Arc;
    use wire::service::ServiceSpec;

    fn listeners() -> Listeners {
        let spec = ServiceSpec { name: "test", stack: 256 * 1024 };
        Listeners::new(Service::new(spec, Arc::new(|| 10), Arc::new(|_| {})), "test-ifaces")
    }

    #[test]
    fn follows_its_list() {
        let listeners = listeners();
        listeners.apply("127.0.0.1:0").unwrap();
        let first = listeners.addresses();
        assert_eq!(first.len(), 1);
        listeners.apply("127.0.0.1:0").unwrap();
        assert_eq!(listeners.addresses(), first, "an unchanged list binds nothing anew");

        listeners.apply("127.0.0.2:0").unwrap();
        let second = listeners.addresses();
        assert!(TcpStream::connect(second[0]).is_ok());
        assert!(TcpStream::connect(first[0]).is_err(), "the dropped address is closed");
        listeners.stop(Duration::ZERO);
    }

    #[test]
    fn a_taken_port_changes_nothing() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = taken.local_addr().map(|address| (taken, address)).unwrap();
        let listeners = listeners();
        listeners.apply("127.0.0.1:0").unwrap();
        let before = listeners.addresses();
        let error = listeners.apply(&format!("127.0.0.2:0;{}", taken.1)).unwrap_err().to_string();
        assert!(error.contains(&taken.1.to_string()) && error.contains("--set test-ifaces"), "{error}");
        assert_eq!(listeners.addresses(), before);
        assert!(TcpStream::connect(before[0]).is_ok());
        assert!(listeners.apply("nonsense").unwrap_err().to_string().contains("test-ifaces"));
        listeners.stop(Duration::ZERO);
    }

    #[test]
    fn an_address_may_give_way_to_one_that_covers_it() {
        let listeners = listeners();
        listeners.apply("127.0.0.1:0").unwrap();
        let port = listeners.addresses()[0].port();
        listeners.apply(&format!("127.0.0.1:{port}")).unwrap();
        listeners.apply(&format!("0.0.0.0:{port}")).unwrap();
        assert!(TcpStream::connect(("127.0.0.2", port)).is_ok());

        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let list = format!("127.0.0.1:{port};{}", taken.local_addr().unwrap());
        assert!(listeners.apply(&list).is_err());
        assert_eq!(listeners.addresses(), [SocketAddr::from(([0, 0, 0, 0], port))]);
        assert!(TcpStream::connect(("127.0.0.2", port)).is_ok());

        listeners.apply(&format!("127.0.0.1:{port};127.0.0.1:{port}")).unwrap();
        assert_eq!(listeners.addresses(), [SocketAddr::from(([127, 0, 0, 1], port))]);
        assert!(TcpStream::connect(("127.0.0.2", port)).is_err());
        listeners.stop(Duration::ZERO);
    }
}
