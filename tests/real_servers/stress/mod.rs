//! Many sessions on few connections, each doing at random what sets, uses and leaves state; every answer is compared with what
//! the session's own history says it must be.

mod model;
mod session;
mod steps;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

use mysql::prelude::Queryable;

use crate::setup::{Lab, Route};
use crate::state::narrow;
use model::Starts;
use session::Session;

const SESSIONS: u32 = 24;
const CONNECTIONS: u32 = 3;
/// How often each session begins anew.
const LIVES: u32 = 20;
const DEFAULT_SEED: u64 = 20_250_601;
/// Another seed than the fixed one, to search.
const SEED: &str = "POINTSMAN_STRESS_SEED";

/// Sessions that take turns at random, over three connections to each server.
pub fn sessions_at_random(lab: &Lab) {
    let seed = std::env::var(SEED).map_or(DEFAULT_SEED, |seed| seed.parse().unwrap());
    let mut admin = lab.admin();
    let mut set = |name: &str, value: &str| {
        admin.query_drop(format!("SET {name}='{value}'")).unwrap();
        admin.query_drop("LOAD MYSQL VARIABLES TO RUNTIME").unwrap();
    };
    // A slow machine makes sessions wait long for their turns.
    set("mysql-connect_timeout_server_max", "60000");
    for route in narrow(lab, "stress", CONNECTIONS) {
        let mut dba = lab.servers.dba(route.kind);
        for sql in [
            "CREATE TABLE app.stress (id INT PRIMARY KEY, v INT UNSIGNED) ENGINE=InnoDB",
            "CREATE TABLE app.stress_ids (id INT PRIMARY KEY AUTO_INCREMENT, tag INT) ENGINE=InnoDB",
        ] {
            dba.query_drop(sql).unwrap();
        }
        // There may be no connection that tells which server it is.
        let version: Option<String> = dba.query_first("SELECT VERSION()").unwrap();
        set("mysql-server_version", &version.unwrap());
        let starts = Starts::observe(lab, &route);
        thread::scope(|scope| {
            let running: Vec<_> = (0..SESSIONS)
                .map(|number| {
                    let (route, starts) = (&route, &starts);
                    scope.spawn(move || live(lab, route, starts, number, seed))
                })
                .collect();
            // All are waited for before the first failure is told.
            let ends: Vec<_> = running.into_iter().map(thread::ScopedJoinHandle::join).collect();
            ends.into_iter().for_each(|end| end.unwrap_or_else(|panic| resume_unwind(panic)));
        });
        dba.query_drop("DROP TABLE app.stress, app.stress_ids").unwrap();
    }
    set("mysql-connect_timeout_server_max", "10000");
    set("mysql-server_version", "8.0.11");
}

/// All lives of one session. What it did last is told if an answer is wrong.
fn live(lab: &Lab, route: &Route, starts: &Starts, number: u32, seed: u64) {
    let said = RefCell::new(Vec::new());
    let random = fastrand::Rng::with_seed(seed.wrapping_add(u64::from(number)));
    let end = catch_unwind(AssertUnwindSafe(|| {
        let mut session = Session::new(lab, route, starts, number, random, &said);
        for _ in 0..LIVES {
            session.live();
        }
    }));
    if let Err(panic) = end {
        let said = said.borrow();
        let last = said.iter().rev().take(40).rev().cloned().collect::<Vec<String>>().join("\n  ");
        crate::tell(&format!("{SEED}={seed}, {}, session {number}, after:\n  {last}", route.user));
        resume_unwind(panic);
    }
}
