use super::*;
use crate::channel::Channel;
use crate::{SqlError, WireError};
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

const PARTIAL: Duration = Duration::from_secs(100);

/// A service whose handler reports its thread's name, then reads until the client leaves.
fn reporting(limit: usize) -> (Service, SocketAddr, Receiver<String>) {
    let (sender, names) = unbounded();
    let handler = move |accepted: Accepted| {
        sender.send(thread::current().name().unwrap_or_default().to_owned()).unwrap();
        drain(accepted.socket);
    };
    let (service, address) = start(limit, handler);
    (service, address, names)
}
fn start(limit: usize, handler: impl Fn(Accepted) + Send + Sync + 'static) -> (Service, SocketAddr) {
    let spec = ServiceSpec { name: "test", stack: 128 << 10 };
    let service = Service::new(spec, Arc::new(move || limit), Arc::new(handler));
    let address = service.listen("127.0.0.1:0".parse().unwrap()).unwrap();
    (service, address)
}
fn drain(mut socket: Socket) {
    while matches!(socket.read(&mut [0; 64]), Ok(1..)) {}
}
fn connect(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address).unwrap()
}
fn next(names: &Receiver<String>) -> String {
    names.recv_timeout(PARTIAL).unwrap()
}
/// Waits for something another thread is about to do.
fn eventually(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PARTIAL;
    while !condition() {
        assert!(Instant::now() < deadline, "it did not happen");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn threads_are_named_and_reused() {
    let (service, address, names) = reporting(10);
    let first = connect(address);
    assert_eq!(next(&names), "test-1");
    let second = connect(address);
    assert_eq!(next(&names), "test-2");
    assert_eq!(service.connections(), 2);
    drop(first);
    eventually(|| service.connections() == 1);
    // The thread waits for its next connection a moment after its last one has ended.
    let reused = (0..100).any(|_| {
        let _third = connect(address);
        next(&names) == "test-1"
    });
    assert!(reused);
    drop(second);
}

#[test]
fn one_connection_too_many_is_told_so() {
    let (service, address, names) = reporting(1);
    let first = connect(address);
    next(&names);
    let mut refused = Channel::new(Socket::new(connect(address)).unwrap());
    let error = SqlError::from_payload(refused.read_packet(1000, PARTIAL).unwrap()).unwrap();
    assert_eq!(error, SqlError::new(1040, "08004", "Too many connections"));
    assert!(matches!(refused.read_packet(1000, PARTIAL), Err(WireError::Closed)));
    assert_eq!(service.refused().load(std::sync::atomic::Ordering::Relaxed), 1);
    drop(first);
}

#[test]
fn a_panic_ends_its_own_connection_alone() {
    let calls = AtomicUsize::new(0);
    let (service, address) = start(10, move |accepted| {
        assert_ne!(calls.fetch_add(1, Ordering::SeqCst), 0, "the first connection panics");
        drain(accepted.socket);
    });
    let mut unlucky = connect(address);
    assert_eq!(unlucky.read(&mut [0; 1]).unwrap(), 0);
    eventually(|| service.connections() == 0);
    let _next = connect(address);
    eventually(|| service.connections() == 1);
}

#[test]
fn a_thread_that_cannot_be_had_costs_only_its_connection() {
    let (service, address, names) = reporting(10);
    // No machine has an address space for such a stack.
    let usual = std::mem::replace(&mut service.0.state.lock().spec.stack, 1 << 62);
    for _ in 0..2 {
        let mut refused = Channel::new(Socket::new(connect(address)).unwrap());
        let error = SqlError::from_payload(refused.read_packet(1000, PARTIAL).unwrap()).unwrap();
        assert_eq!(error.code, 1135);
        assert_eq!(service.connections(), 0);
    }
    assert!(service.listen("127.0.0.1:0".parse().unwrap()).is_err());
    service.0.state.lock().spec.stack = usual;
    let _served = connect(address);
    next(&names);
}

#[test]
fn clients_that_come_at_once_never_overrun_the_limit() {
    const LIMIT: usize = 7;
    let most = Arc::new(AtomicUsize::new(0));
    let (now, seen) = (AtomicUsize::new(0), most.clone());
    let (service, address) = start(LIMIT, move |mut accepted: Accepted| {
        seen.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        let _ = accepted.socket.write_all(b"x");
        drain(accepted.socket);
        now.fetch_sub(1, Ordering::SeqCst);
    });
    let barrier = std::sync::Barrier::new(50);
    let served = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..50 {
            scope.spawn(|| {
                barrier.wait();
                for _ in 0..40 {
                    let mut first = [0];
                    connect(address).read_exact(&mut first).unwrap();
                    served.fetch_add(usize::from(first == *b"x"), Ordering::SeqCst);
                }
            });
        }
    });
    assert!((1..=LIMIT).contains(&most.load(Ordering::SeqCst)));
    assert!(served.load(Ordering::SeqCst) >= LIMIT);
    eventually(|| service.connections() == 0);
}

#[test]
fn few_threads_serve_many_connections() {
    let (service, address, names) = reporting(10);
    let seen: std::collections::HashSet<String> = (0..200)
        .map(|_| {
            let _client = connect(address);
            next(&names)
        })
        .collect();
    assert!(seen.len() < 20, "{} threads", seen.len());
    drop(service);
}

#[test]
fn an_address_is_free_at_once_even_while_its_connections_go_on() {
    let (service, address, names) = reporting(10);
    let _open = connect(address);
    next(&names);
    for _ in 0..20 {
        service.unlisten(address);
        assert!(TcpStream::connect(address).is_err());
        assert_eq!(service.listen(address).unwrap(), address);
        let _another = connect(address);
        next(&names);
    }
}

#[test]
fn ids_are_unique_and_not_zero() {
    let (sender, ids): (Sender<u32>, _) = unbounded();
    let (_service, address) = start(10, move |accepted| sender.send(accepted.id).unwrap());
    let _both = [connect(address), connect(address)];
    let ids = [ids.recv_timeout(PARTIAL).unwrap(), ids.recv_timeout(PARTIAL).unwrap()];
    assert!(ids[0] != 0 && ids[1] != 0 && ids[0] != ids[1]);
}

#[test]
fn addresses_come_and_go() {
    let (service, address, names) = reporting(10);
    let open = connect(address);
    next(&names);
    let other = service.listen("127.0.0.1:0".parse().unwrap()).unwrap();
    assert_eq!(service.addresses(), [address, other].map(Address::from));
    service.unlisten(address);
    assert_eq!(service.addresses(), [Address::from(other)]);
    assert!(TcpStream::connect(address).is_err());
    assert_eq!(service.connections(), 1);
    assert!(service.listen(other).is_err());
    drop(open);
}

#[test]
fn stop_ends_idle_connections_at_once() {
    let (service, address, names) = reporting(10);
    let mut idle = connect(address);
    next(&names);
    let begun = Instant::now();
    service.stop(Duration::from_secs(6000));
    assert!(begun.elapsed() < Duration::from_secs(3000), "it did not wait for the grace to pass");
    assert_eq!(idle.read(&mut [0; 1]).unwrap(), 0);
    assert!(TcpStream::connect(address).is_err());
    assert_eq!(service.connections(), 0);
}

#[test]
fn stop_lets_a_running_statement_finish() {
    let (sender, started) = unbounded();
    let (finish, finished) = unbounded::<()>();
    let (service, address) = start(10, move |accepted: Accepted| {
        sender.send(()).unwrap();
        finished.recv_timeout(PARTIAL).unwrap();
        let mut channel = Channel::new(accepted.socket);
        channel.write_raw(b"answer").unwrap();
        assert!(matches!(channel.fill(), Err(WireError::Closed)));
    });
    let mut busy = connect(address);
    started.recv_timeout(PARTIAL).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| service.stop(PARTIAL));
        eventually(|| service.addresses().is_empty());
        finish.send(()).unwrap();
        let mut answer = Vec::new();
        busy.read_to_end(&mut answer).unwrap();
        assert_eq!(answer, b"answer");
    });
    assert_eq!(service.connections(), 0);
}

#[test]
fn stop_cuts_a_statement_that_does_not_finish() {
    // A "statement" here writes until its client has gone or is cut.
    let (sender, started) = unbounded();
    let (service, address) = start(10, move |accepted: Accepted| {
        sender.send(()).unwrap();
        let mut channel = Channel::new(accepted.socket);
        while channel.write_raw(&[0; 1 << 16]).is_ok() {}
    });
    let mut busy = connect(address);
    started.recv_timeout(PARTIAL).unwrap();
    service.stop(Duration::from_millis(50));
    assert_eq!(service.connections(), 0);
    let mut received = Vec::new();
    // Cut with bytes under way, the connection may end by a reset.
    let _ = busy.read_to_end(&mut received);
    assert!(!received.is_empty());
}

mod addresses {
    use super::*;
    use std::fs;
    use std::net::IpAddr;
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::path::Path;

    fn echo_peer(service: fn(ServiceSpec, ConnectionLimit, Handler) -> Service) -> Service {
        let handler = |mut accepted: Accepted| {
            let local = accepted.socket.local_addr().unwrap();
            let text = format!("{} {local} {}", accepted.peer, accepted.socket.is_unix());
            accepted.socket.write_all(text.as_bytes()).unwrap();
        };
        service(ServiceSpec { name: "test", stack: 128 << 10 }, Arc::new(|| 10), Arc::new(handler))
    }
    fn listen_at(service: &Service, path: &Path) -> io::Result<Address> {
        service.listen_at(&Address::Unix(path.to_owned()))
    }
    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_unix_socket_serves_and_its_file_goes_with_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sock");
        for (kind, expected) in [(Service::new as fn(_, _, _) -> _, 0o777), (Service::privileged, 0o600)] {
            let service = echo_peer(kind);
            let address = listen_at(&service, &path).unwrap();
            assert_eq!(service.addresses(), std::slice::from_ref(&address));
            assert_eq!(mode(&path), expected);
            let mut answer = String::new();
            UnixStream::connect(&path).unwrap().read_to_string(&mut answer).unwrap();
            assert_eq!(answer, "127.0.0.1:0 127.0.0.1:0 true");
            service.unlisten(address.clone());
            assert!(!path.exists());
            service.listen_at(&address).unwrap();
            service.stop(Duration::ZERO);
            assert!(!path.exists());
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_stale_socket_is_replaced_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sock");
        let service = echo_peer(Service::new);
        let other = UnixListener::bind(&path).unwrap();
        assert_eq!(listen_at(&service, &path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        assert!(UnixStream::connect(&path).is_ok(), "the other program goes on");
        drop(other);
        assert!(path.exists() && UnixStream::connect(&path).is_err());
        listen_at(&service, &path).unwrap();
        assert!(UnixStream::connect(&path).is_ok());
        assert_eq!(listen_at(&service, &path).unwrap_err().kind(), io::ErrorKind::AddrInUse);

        let file = directory.path().join("file");
        fs::write(&file, "precious").unwrap();
        assert_eq!(listen_at(&service, &file).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&file).unwrap(), b"precious");
        assert!(listen_at(&service, &directory.path().join("missing/sock")).is_err());

        // The name under which a socket is made before it gets its own.
        let (next, draft) = (directory.path().join("next"), directory.path().join("next.new"));
        fs::write(&draft, "precious").unwrap();
        assert_eq!(listen_at(&service, &next).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&draft).unwrap(), b"precious");
    }

    #[test]
    fn a_file_that_took_the_sockets_place_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sock");
        let service = echo_peer(Service::new);
        let address = listen_at(&service, &path).unwrap();
        fs::remove_file(&path).unwrap();
        let _other = UnixListener::bind(&path).unwrap();
        service.unlisten(address);
        assert!(fs::metadata(&path).unwrap().file_type().is_socket());
    }

    #[test]
    fn both_families_stand_beside_each_other() {
        let service = echo_peer(Service::new);
        let any: IpAddr = "0.0.0.0".parse().unwrap();
        let port = service.listen(SocketAddr::new(any, 0)).unwrap().port();
        service.listen(SocketAddr::new("::".parse().unwrap(), port)).unwrap();
        for host in ["127.0.0.1", "::1"] {
            let address = SocketAddr::new(host.parse().unwrap(), port);
            let mut answer = String::new();
            connect(address).read_to_string(&mut answer).unwrap();
            assert!(answer.ends_with(&format!("{address} false")), "{answer}");
        }
    }
}
