//! What a session's answers must be.

use mysql::prelude::Queryable;
use mysql::{ChangeUserOpts, Conn};

use crate::setup::{Lab, Route, connect};

/// Shows all that [`Settings`] has.
pub const SHOW: &str = "SELECT @@time_zone, @@collation_connection, CAST(@@group_concat_max_len AS CHAR), @@sql_mode, \
                        CAST(@@autocommit + 0 AS CHAR), IFNULL(DATABASE(), 'none')";

/// What a session has set, each in the words of [`SHOW`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub time_zone: String,
    pub collation: String,
    pub group_concat_max_len: String,
    pub sql_mode: String,
    pub autocommit: String,
    pub schema: String,
}

impl From<(String, String, String, String, String, String)> for Settings {
    fn from(row: (String, String, String, String, String, String)) -> Self {
        let (time_zone, collation, group_concat_max_len, sql_mode, autocommit, schema) = row;
        Self { time_zone, collation, group_concat_max_len, sql_mode, autocommit, schema }
    }
}

/// How sessions begin on this server, as it is seen without the daemon.
pub struct Starts {
    pub login: Settings,
    /// But for the schema, which stays.
    pub reset: Settings,
    pub change_user: Settings,
}

impl Starts {
    pub fn observe(lab: &Lab, route: &Route) -> Self {
        let mut conn = connect(lab.client_of(route, lab.servers.port(route.kind)));
        let login = Self::settings(&mut conn);
        conn.reset().unwrap();
        let reset = Self::settings(&mut conn);
        conn.change_user(ChangeUserOpts::new()).unwrap();
        Self { login, reset, change_user: Self::settings(&mut conn) }
    }
    fn settings(conn: &mut Conn) -> Settings {
        let row: Option<(String, String, String, String, String, String)> = conn.query_first(SHOW).unwrap();
        row.unwrap().into()
    }
}

/// All that one session must find as it left it.
pub struct Model {
    pub settings: Settings,
    pub insert_id: u64,
    /// Its user variable.
    pub variable: Option<u32>,
    /// The rows of its temporary table.
    pub temporary: Option<u32>,
    pub has_lock: bool,
    /// Its statement that has a name answers this.
    pub named: Option<u32>,
    /// Whether a transaction is open.
    pub in_transaction: bool,
    /// The value of its row, as it sees it.
    pub value: u32,
    /// The same, once what is not committed is undone: this outlives the session.
    pub committed: u32,
}

impl Model {
    /// A session that has just begun.
    pub fn new(settings: &Settings, committed: u32) -> Self {
        Self {
            settings: settings.clone(),
            insert_id: 0,
            variable: None,
            temporary: None,
            has_lock: false,
            named: None,
            in_transaction: false,
            value: committed,
            committed,
        }
    }
    /// A statement on a table: with autocommit off it begins a transaction.
    pub fn touch(&mut self) {
        self.in_transaction |= self.settings.autocommit == "0";
    }
    pub fn set_value(&mut self, value: u32) {
        self.value = value;
        self.touch();
        if !self.in_transaction {
            self.committed = value;
        }
    }
    pub fn commit(&mut self) {
        (self.committed, self.in_transaction) = (self.value, false);
    }
    pub fn roll_back(&mut self) {
        (self.value, self.in_transaction) = (self.committed, false);
    }
}
