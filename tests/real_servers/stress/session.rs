//! One client: how it begins, speaks and ends.

use std::cell::RefCell;

use mysql::prelude::{FromRow, Queryable};
use mysql::{ChangeUserOpts, Conn, Error};

use super::model::{Model, Starts};
use super::steps::{BINDING, FREE, settings};
use crate::setup::{Lab, Route};
use crate::statements::Raw;

/// A login that needs no connection to the server: its session may hold one while all others are taken.
pub fn connect(lab: &Lab, route: &Route) -> Conn {
    let options = lab.client_of(route, lab.daemon.traffic_port);
    crate::setup::connect(options.max_allowed_packet(Some(1 << 24)))
}

/// A parameter sent in pieces by a client that then leaves without a word. The session itself has no connection now.
fn pieces(session: &mut Session) {
    let mut raw = Raw::new(session.lab, session.route);
    let echo = raw.prepare("SELECT ?");
    for _ in 0..session.random.u8(..3) {
        raw.long_data(echo, b"piece ");
        raw.long_data(echo, session.number.to_string().as_bytes());
        let text = format!("piece {}", session.number);
        assert_eq!(raw.echo(echo), [&[text.len() as u8], text.as_bytes()].concat());
    }
    raw.long_data(echo, b"lost");
}

pub struct Session<'a> {
    pub lab: &'a Lab,
    pub route: &'a Route,
    pub starts: &'a Starts,
    /// Names what is its own on the server.
    pub number: u32,
    pub random: fastrand::Rng,
    pub conn: Conn,
    pub model: Model,
    said: &'a RefCell<Vec<String>>,
}

impl<'a> Session<'a> {
    pub fn new(
        lab: &'a Lab,
        route: &'a Route,
        starts: &'a Starts,
        number: u32,
        random: fastrand::Rng,
        said: &'a RefCell<Vec<String>>,
    ) -> Self {
        let model = Model::new(&starts.login, 0);
        let mut session = Self { lab, route, starts, number, random, conn: connect(lab, route), model, said };
        session.run(&format!("INSERT INTO app.stress VALUES ({number}, 0)"));
        session
    }

    /// From a beginning to the next one. Only some lives bind a connection: all would have the others wait.
    pub fn live(&mut self) {
        let binds = self.random.u8(..3) == 0;
        for _ in 0..self.random.u8(3..12) {
            let steps = if binds && self.random.bool() { BINDING } else { FREE };
            steps[self.random.usize(..steps.len())](self);
            if self.random.u8(..4) == 0 {
                settings(self);
            }
        }
        let committed = self.model.committed;
        let (how, settings) = match self.random.u8(..4) {
            0 => {
                self.conn.reset().unwrap();
                let schema = self.model.settings.schema.clone();
                ("COM_RESET_CONNECTION", super::model::Settings { schema, ..self.starts.reset.clone() })
            }
            1 => {
                self.conn.change_user(ChangeUserOpts::new()).unwrap();
                ("COM_CHANGE_USER", self.starts.change_user.clone())
            }
            _ => {
                // The new one is there before the old one is gone.
                self.conn = connect(self.lab, self.route);
                pieces(self);
                ("another login", self.starts.login.clone())
            }
        };
        self.note(how);
        self.model = Model::new(&settings, committed);
    }

    pub fn note(&self, what: &str) {
        self.said.borrow_mut().push(what.to_owned());
    }
    /// A statement that must succeed.
    pub fn run(&mut self, sql: &str) {
        self.note(sql);
        self.conn.query_drop(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    /// The first row of a statement that must have one, over the text or the binary protocol.
    pub fn row<T: FromRow>(&mut self, sql: &str) -> T {
        let prepared = self.random.bool();
        self.note(&format!("{sql}{}", if prepared { " (prepared)" } else { "" }));
        let row = if prepared { self.conn.exec_first(sql, ()) } else { self.conn.query_first(sql) };
        row.unwrap_or_else(|error| panic!("{sql}: {error}")).unwrap_or_else(|| panic!("{sql}: no row"))
    }
    /// The error of a statement that must fail.
    pub fn code(&mut self, sql: &str) -> u16 {
        self.note(sql);
        match self.conn.query_drop(sql) {
            Err(Error::MySqlError(error)) => error.code,
            other => panic!("{sql}: {other:?}"),
        }
    }
}
