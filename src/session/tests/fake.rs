//! A MySQL server that does what its statements say, misbehaviour included.

mod statements;

use crate::testing::server_options;
use parking_lot::{Condvar, Mutex};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use wire::auth::{Account, Accounts, StoredPassword};
use wire::channel::Channel;
use wire::login::{Login, login};
use wire::reply::{Column, Reply};
use wire::service::{Accepted, Service, ServiceSpec};
use wire::socket::Socket;
use wire::{CapabilityFlags, Command, SqlError, StatusFlags, WireError};

const PARTIAL: Duration = Duration::from_secs(10);

/// Everybody's password is their name.
pub struct Users;

impl Accounts for Users {
    fn find(&self, user: &str) -> Option<Account> {
        (user != "nobody").then(|| Account::new(StoredPassword::Clear(user.to_owned())))
    }
    fn check_schema(&self, login: &Login) -> Result<(), SqlError> {
        login.database.as_deref().map_or(Ok(()), known_schema)
    }
}

fn known_schema(schema: &str) -> Result<(), SqlError> {
    match schema {
        "nowhere" => Err(SqlError::new(1049, "42000", "Unknown database 'nowhere'")),
        _ => Ok(()),
    }
}

/// A door that holds up who comes while it is shut.
#[derive(Default)]
pub struct Gate {
    // Shut, and how many stand before it.
    state: Mutex<(bool, usize)>,
    changed: Condvar,
}

impl Gate {
    pub fn shut(&self) {
        self.state.lock().0 = true;
    }
    pub fn open(&self) {
        self.state.lock().0 = false;
        self.changed.notify_all();
    }
    fn pass(&self) {
        let mut state = self.state.lock();
        state.1 += 1;
        self.changed.notify_all();
        while state.0 {
            assert!(!self.changed.wait_for(&mut state, PARTIAL).timed_out(), "the gate stays shut");
        }
        state.1 -= 1;
    }
    /// Waits until somebody stands before the gate.
    pub fn await_visitor(&self) {
        let mut state = self.state.lock();
        while state.1 == 0 {
            assert!(!self.changed.wait_for(&mut state, PARTIAL).timed_out(), "nobody comes");
        }
    }
}

/// What tests see and steer of a fake.
#[derive(Default)]
pub struct Control {
    /// Before the greeting.
    pub login: Gate,
    /// In `SELECT SLOWLY`.
    pub statement: Gate,
    /// Commands as they came, with the connection's id.
    pub log: Mutex<Vec<(u32, String)>>,
    /// Most connections open at once, and open now.
    pub open: Mutex<(usize, usize)>,
    /// A statement with this word in it ends the connection.
    pub fatal: Mutex<Option<&'static str>>,
    /// Capabilities of the last login.
    pub capabilities: Mutex<CapabilityFlags>,
    /// Connections whose statement was killed.
    killed: Mutex<Vec<u32>>,
    sockets: Mutex<Vec<Socket>>,
}

impl Control {
    /// Closes every connection, as a server that restarts.
    pub fn cut_all(&self) {
        self.sockets.lock().drain(..).for_each(|socket| socket.shutdown(Shutdown::Both));
    }
    /// Texts of the commands so far, in order.
    pub fn texts(&self) -> Vec<String> {
        self.log.lock().iter().map(|(_, text)| text.clone()).collect()
    }
}

/// A running fake.
pub struct Fake {
    pub address: SocketAddr,
    pub control: Arc<Control>,
    service: Service,
}

impl Fake {
    pub fn start() -> Self {
        let control = Arc::new(Control::default());
        let handler = {
            let control = Arc::clone(&control);
            move |accepted: Accepted| {
                control.login.pass();
                let socket = accepted.socket.clone();
                control.sockets.lock().push(socket.clone());
                let Ok((channel, login)) = login(accepted.socket, accepted.id, &server_options(None), &Users)
                else {
                    return;
                };
                *control.capabilities.lock() = login.capabilities;
                let open = {
                    let mut open = control.open.lock();
                    open.1 += 1;
                    open.0 = open.0.max(open.1);
                    Open(&control)
                };
                // How the connection ends is the proxy's business.
                let _ = Conversation::new(channel, login, accepted.id, &control).run();
                drop(open);
                socket.shutdown(Shutdown::Both);
            }
        };
        let spec = ServiceSpec { name: "fake", stack: 512 << 10 };
        let service = Service::new(spec, Arc::new(|| 1000), Arc::new(handler));
        let address = service.listen("127.0.0.1:0".parse().unwrap()).unwrap();
        Self { address, control, service }
    }
    /// Closes every connection and refuses new ones.
    pub fn stop(&self) {
        self.service.stop(Duration::ZERO);
    }
}

struct Open<'a>(&'a Control);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.open.lock().1 -= 1;
    }
}

/// A result of one row, where EOF is deprecated.
const ONE_ROW: &[u8] =
    b"\x01\0\0\x01\x01\x18\0\0\x02\x03def\0\0\0\x01a\x01a\x0C\x2D\0\xFF\xFF\0\0\xFD\0\0\x1F\0\0\
    \x02\0\0\x03\x01x\x07\0\0\x04\xFE\0\0\x02\0\0\0";
/// An error that answers nothing.
const UNASKED: &[u8] = b"\x0D\0\0\0\xFF\xBF\x0F#HY000idle";

struct Conversation<'a> {
    channel: Channel,
    login: Login,
    id: u32,
    control: &'a Control,
    status: StatusFlags,
    schema: String,
    settings: Vec<String>,
    insert_id: String,
    prepared: statements::Prepared,
}

impl<'a> Conversation<'a> {
    fn new(channel: Channel, login: Login, id: u32, control: &'a Control) -> Self {
        let schema = login.database.clone().unwrap_or_default();
        let status = StatusFlags::SERVER_STATUS_AUTOCOMMIT;
        Self {
            channel,
            login,
            id,
            control,
            status,
            schema,
            settings: Vec::new(),
            insert_id: "0".to_owned(),
            prepared: statements::Prepared::default(),
        }
    }
    fn run(mut self) -> Result<(), WireError> {
        loop {
            self.channel.reset_sequence();
            let packet = self.channel.read_packet(64 << 20, PARTIAL)?.to_vec();
            let Some((&code, argument)) = packet.split_first() else { return Ok(()) };
            let text = String::from_utf8_lossy(argument).into_owned();
            match wire::command(code) {
                Some(Command::COM_QUIT) | None => return Ok(()),
                // It reports nothing of its sessions, and does not object.
                Some(Command::COM_QUERY) if text.contains("session_track_") => {
                    self.reply().ok(0, 0, "")?;
                }
                Some(Command::COM_QUERY) => {
                    self.note(text.chars().take(80).collect());
                    if self.control.fatal.lock().is_some_and(|word| text.contains(word)) {
                        return Ok(());
                    }
                    self.query(&text)?;
                }
                Some(Command::COM_INIT_DB) => {
                    self.note(format!("INIT_DB {text}"));
                    self.use_schema(text)?;
                }
                Some(Command::COM_RESET_CONNECTION) => {
                    self.note("RESET".to_owned());
                    self.settings.clear();
                    self.status = StatusFlags::SERVER_STATUS_AUTOCOMMIT;
                    self.reply().ok(0, 0, "")?;
                }
                Some(
                    command @ (Command::COM_STMT_PREPARE
                    | Command::COM_STMT_EXECUTE
                    | Command::COM_STMT_SEND_LONG_DATA
                    | Command::COM_STMT_FETCH
                    | Command::COM_STMT_RESET
                    | Command::COM_STMT_CLOSE),
                ) => self.statement(command, &packet)?,
                Some(other) => {
                    self.note(format!("{other:?}"));
                    self.reply().ok(0, 0, "")?;
                }
            }
        }
    }
    fn note(&self, text: String) {
        self.control.log.lock().push((self.id, text));
    }
    fn reply(&mut self) -> Reply<'_> {
        Reply { capabilities: self.login.capabilities, status: self.status, channel: &mut self.channel }
    }
    fn use_schema(&mut self, schema: String) -> Result<(), WireError> {
        if let Err(error) = known_schema(&schema) {
            return self.reply().error(&error);
        }
        self.schema = schema;
        self.reply().ok(0, 0, "")
    }
    fn query(&mut self, sql: &str) -> Result<(), WireError> {
        let (verb, rest) = sql.split_once(' ').unwrap_or((sql, ""));
        match verb {
            "SELECT" => self.select(rest),
            "USE" => self.use_schema(rest.to_owned()),
            "SET" => {
                if let Some(value) = rest.strip_prefix("autocommit=") {
                    self.status.set(StatusFlags::SERVER_STATUS_AUTOCOMMIT, value == "1");
                }
                self.settings.push(rest.to_owned());
                self.reply().ok(0, 0, "")
            }
            "DO" => {
                let id = rest.strip_prefix("LAST_INSERT_ID(").and_then(|rest| rest.strip_suffix(')'));
                self.insert_id = id.unwrap_or_default().to_owned();
                self.reply().ok(0, 0, "")
            }
            "KILL" => {
                let id: Option<u32> = rest.rsplit(' ').next().and_then(|id| id.parse().ok());
                self.control.killed.lock().extend(id);
                self.control.statement.open();
                self.reply().ok(0, 0, "")
            }
            "SAVEPOINT" | "CREATE" => self.reply().ok(0, 0, ""),
            "BEGIN" | "COMMIT" => {
                self.status.set(StatusFlags::SERVER_STATUS_IN_TRANS, verb == "BEGIN");
                self.reply().ok(0, 0, "")
            }
            "MORE" => {
                let more = self.status | StatusFlags::SERVER_MORE_RESULTS_EXISTS;
                Reply { status: more, ..self.reply() }.ok(0, 0, "")?;
                self.reply().error(&SqlError::new(1064, "42000", "what?"))
            }
            "INSERT" if rest.ends_with("RETURNING id") => {
                self.insert_id = "78".to_owned();
                self.answer("78")
            }
            "INSERT" if rest == "id 5" => self.reply().ok(1, 5, ""),
            "INSERT" => {
                self.insert_id = "77".to_owned();
                self.reply().ok(1, 77, "")
            }
            // Takes the client's file, and dies.
            "LOAD" => {
                self.channel.queue(b"\xFBfile");
                self.channel.flush()?;
                while !self.channel.read_packet(1 << 20, PARTIAL)?.is_empty() {}
                Err(WireError::Closed)
            }
            "READONLY" => self.reply().error(&SqlError::new(1290, "HY000", "running with --read-only")),
            _ => self.reply().error(&SqlError::new(1064, "42000", "what?")),
        }
    }
    fn select(&mut self, what: &str) -> Result<(), WireError> {
        let (word, rest) = what.split_once(' ').unwrap_or((what, ""));
        let number = rest.parse().unwrap_or(0);
        match word {
            "DIE" => {
                self.channel.stream().socket().shutdown(Shutdown::Both);
                Err(WireError::Closed)
            }
            "UNASKED" => {
                self.channel.set_sequence(0);
                self.reply().error(&SqlError::new(4031, "HY000", "disconnected because of inactivity"))
            }
            // Behind the answer, in one write with it, an error that answers nothing.
            "GOODBYE" => self.channel.write_raw(&[ONE_ROW, UNASKED].concat()),
            // A row and a half.
            "TORN" => {
                self.channel.write_raw(&[&ONE_ROW[..39], b"\x02\0\0\x04\x01"].concat())?;
                Err(WireError::Closed)
            }
            // More columns than there can be.
            "COLUMNS" => self.channel.write_raw(b"\x09\0\0\x01\xFE\0\0\0\0\0\0\0\x01"),
            // A row, and what does not follow it.
            "NONSENSE" => self.channel.write_raw(&[&ONE_ROW[..39], b"\x02\0\0\x0C\x01x"].concat()),
            "HALF" => {
                let mut rows = self.reply().rows(&[Column::text("x")])?;
                for _ in 0..100 {
                    rows.row([Some(&[b'x'; 1000][..])])?;
                }
                // Enough was flushed for the client to have begun; the rest never comes.
                Err(WireError::Closed)
            }
            "ROWS" => {
                let row = [b'x'; 1 << 16];
                let mut rows = self.reply().rows(&[Column::text("x")])?;
                for _ in 0..number {
                    rows.row([Some(&row[..])])?;
                }
                rows.finish()
            }
            "LONG" => self.answer(&"x".repeat(number)),
            "LENGTH" => self.answer(&rest.len().to_string()),
            "SLOWLY" => {
                self.control.statement.pass();
                match self.control.killed.lock().contains(&self.id) {
                    true => self.reply().error(&SqlError::new(1317, "70100", "interrupted")),
                    false => self.answer("done"),
                }
            }
            "SCHEMA" => self.answer(&self.schema.clone()),
            "SETTINGS" => self.answer(&self.settings.join(";")),
            "LAST_INSERT_ID(9)" => {
                self.insert_id = "9".to_owned();
                self.answer("9")
            }
            "LAST_INSERT_ID()" => self.answer(&self.insert_id.clone()),
            _ => self.answer(&self.id.to_string()),
        }
    }
    fn answer(&mut self, value: &str) -> Result<(), WireError> {
        let mut rows = self.reply().rows(&[Column::text("x")])?;
        rows.row([Some(value.as_bytes())])?;
        rows.finish()
    }
}
