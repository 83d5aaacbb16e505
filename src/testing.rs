//! What tests of several modules share.

use admin::rows::{ReplicationHostgroupRow, ServerRow};
use std::cell::RefCell;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};
use wire::auth::AuthPlugin;
use wire::login::ServerOptions;
use wire::socket::Socket;
use wire::tls::ServerTls;

/// Long enough for any machine; a test that passes does not wait for it.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until something holds that another thread brings about.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "never came true: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A client, and the proxy's end of its connection.
pub fn socket_pair() -> (TcpStream, Socket) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (client, Socket::new(listener.accept().unwrap().0).unwrap())
}

/// A server of mysql_servers, on port 3306.
pub fn server(hostgroup_id: u32, hostname: &str) -> ServerRow {
    ServerRow::new(hostgroup_id, hostname, 3306)
}

/// A row of mysql_replication_hostgroups.
pub fn pair(writer_hostgroup: u32, reader_hostgroup: u32) -> ReplicationHostgroupRow {
    let (check_type, comment) = ("read_only".into(), String::new());
    ReplicationHostgroupRow { writer_hostgroup, reader_hostgroup, check_type, comment }
}

/// What a fake MySQL server says of itself.
pub fn server_options(tls: Option<ServerTls>) -> ServerOptions {
    ServerOptions {
        server_version: "8.4.0-fake".into(),
        default_plugin: AuthPlugin::Native,
        capabilities: wire::login::CAPABILITIES,
        compress: true,
        offer_tls: true,
        tls,
        timeout: PATIENCE,
    }
}

thread_local! {
    /// Lines of the log, while this thread keeps them.
    static LINES: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

struct KeepLines;

impl log::Log for KeepLines {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }
    fn log(&self, record: &log::Record<'_>) {
        LINES.with_borrow_mut(|lines| {
            lines.iter_mut().for_each(|lines| lines.push(record.args().to_string()))
        });
    }
    fn flush(&self) {}
}

/// What this thread logs meanwhile, from the level of information up.
pub fn logged(run: impl FnOnce()) -> Vec<String> {
    // A second call finds the logger in place already.
    let _ = log::set_logger(&KeepLines);
    log::set_max_level(log::LevelFilter::Info);
    LINES.set(Some(Vec::new()));
    run();
    LINES.take().unwrap_or_default()
}
