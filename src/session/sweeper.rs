//! The thread that ends sessions whose transactions are over their limits. Idle clients need none: a read has its time limit.

use super::registry::Registry;
use crate::config::Config;
use crate::periodic::Periodic;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often it looks. Limits are whole seconds at least.
const INTERVAL: Duration = Duration::from_millis(500);

/// Starts the thread `session-sweeper`.
pub fn start_sweeper(registry: Arc<Registry>, config: Arc<Config>) -> io::Result<Periodic> {
    Periodic::start("session-sweeper", INTERVAL, move || {
        let variables = config.variables();
        let (open, idle) = (variables.max_transaction_time, variables.max_transaction_idle_time);
        drop(variables);
        registry.end_transactions(open, idle, Instant::now());
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::eventually;
    use admin::Variables;
    use std::net::{TcpListener, TcpStream};
    use wire::Command;
    use wire::socket::Socket;

    #[test]
    fn a_transaction_over_its_limit_ends_its_session() {
        let variables = Variables { max_transaction_time: Duration::from_millis(1), ..Variables::default() };
        let registry = Arc::new(Registry::default());
        let sweeper = start_sweeper(Arc::clone(&registry), Arc::new(Config::new(variables))).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let address = client.local_addr().unwrap();
        let socket = Socket::new(client).unwrap();
        let session = registry.enter(1, address, socket.clone(), "app", 1).unwrap();
        session.entry.begin(Command::COM_QUERY, b"BEGIN", Instant::now());
        session.entry.finish(Instant::now(), |activity| activity.transaction = Some(Instant::now()));
        eventually("its client is cut off", || socket.is_cut());
        drop(sweeper);
        assert_eq!(Arc::strong_count(&registry), 2, "the thread has let go of it; the session has not");
    }
}
