//! The pool's logic, over connections without a transport.

use super::connection::{Connection, Served, Trash, Usage};
use super::inner::{Acquired, Inner, Keep, Opening, Slot, Terms};
use super::statement_cache::StatementCache;
use super::*;
use crate::hostgroups::{Recovery, ServerStatus, Unavailable};
use crate::locality::Snapshot;
use admin::Value;
use admin::rows::{HostgroupAttributesRow, ServerRow, ServersConfig};
use std::net::IpAddr;
use wire::CapabilityFlags;
use wire::auth::Secret;

const SECOND: Duration = Duration::from_secs(1);
const AS_NEEDED: Opening = Opening { warm_pct: 0, per_second: u32::MAX };
const ALL_MAY_BE_FREE: Keep = Keep { free_pct: 100, awaited: false, max_age: Duration::ZERO };

fn row(hostgroup_id: u32, max_connections: u32) -> ServerRow {
    ServerRow { max_connections, ..ServerRow::new(hostgroup_id, "db", 3306) }
}

fn rest() -> Recovery {
    Recovery { pause: 5 * SECOND, everywhere: false }
}

fn db() -> Endpoint {
    Endpoint::new("db", 3306)
}

fn want(user: &str, schema: Option<&str>) -> Want {
    let identity = Identity::new(user, Secret::Empty, CapabilityFlags::empty());
    Want {
        identity: Arc::new(identity),
        profile: Arc::new(Profile::login(schema, 45)),
        ahead: None,
        last: None,
        processor: Processor::default(),
        session: 0,
    }
}

/// A pool, its clock, and what it has closed.
struct Fixture {
    inner: Inner<u32>,
    now: Instant,
    trash: Trash<u32>,
    opening: Opening,
    random: u64,
    locality: Snapshot,
}

impl Fixture {
    /// Hostgroups 0 and 1 with the same server.
    fn new(max_connections: u32) -> Self {
        let mut inner = Inner::default();
        let servers = vec![row(0, max_connections), row(1, max_connections)];
        inner.hostgroups.load(&ServersConfig { servers, ..ServersConfig::default() });
        let (now, trash, locality) = (Instant::now(), Vec::new(), Snapshot::default());
        Self { inner, now, trash, opening: AS_NEEDED, random: 0, locality }
    }
    fn acquire(&mut self, want: &Want) -> Result<Acquired<u32>, Refusal> {
        let terms = Terms { now: self.now, random: self.random, opening: self.opening };
        self.inner.acquire(0, want, terms, self.locality.of(0), rest, &mut self.trash)
    }
    /// A new connection named `name`.
    fn open(&mut self, want: &Want, name: u32) -> (Slot, Box<Connection<u32>>) {
        match self.acquire(want) {
            Ok(Acquired::Open(slot, _)) => {
                assert!(!self.inner.connected(&slot, false).closed);
                let (identity, profile) = (Arc::clone(&want.identity), want.profile.clone());
                let (opened, shared) = (self.now, Arc::clone(&slot.shared));
                let statements = StatementCache::default();
                let connection = Connection {
                    transport: name,
                    identity,
                    profile,
                    opened,
                    usage: Usage::default(),
                    statements,
                    touched: None,
                    served: Served::default(),
                    schemas: 0,
                    init_connect: None,
                    processor: Processor::default(),
                    shared,
                };
                (slot, Box::new(connection))
            }
            Ok(Acquired::Reuse(..)) => panic!("a free connection"),
            Err(refusal) => panic!("{refusal:?}"),
        }
    }
    /// The name of a free connection, taken.
    fn reuse(&mut self, want: &Want) -> (Slot, Box<Connection<u32>>) {
        match self.acquire(want) {
            Ok(Acquired::Reuse(slot, connection, _)) => (slot, connection),
            Ok(Acquired::Open(..)) => panic!("none free"),
            Err(refusal) => panic!("{refusal:?}"),
        }
    }
    fn release(&mut self, (slot, connection): (Slot, Box<Connection<u32>>)) {
        self.inner.release(&slot, connection, self.now, ALL_MAY_BE_FREE, &mut self.trash);
    }
    fn closed(&self) -> Vec<u32> {
        self.trash.iter().map(|connection| connection.transport).collect()
    }
    /// Rows of stats_mysql_connection_pool.
    fn rows(&self) -> Vec<Vec<Value>> {
        self.inner.servers().iter().map(ServerFigures::row).collect()
    }
    /// (status, ConnUsed, ConnFree) of hostgroup 0's server.
    fn row(&self) -> Option<(String, i64, i64)> {
        let rows = self.rows();
        match rows.first()?.as_slice() {
            [Value::Int(0), _, _, Value::Text(status), Value::Int(used), Value::Int(free), ..] => {
                Some((status.clone(), *used, *free))
            }
            _ => None,
        }
    }
}

fn online(used: i64, free: i64) -> Option<(String, i64, i64)> {
    Some(("ONLINE".into(), used, free))
}

#[test]
fn new_and_free_connections_go_by_the_same_factors() {
    let mut pool = Fixture::new(10);
    let servers = vec![row(0, 10), ServerRow::new(0, "far", 3306)];
    pool.inner.hostgroups.load(&ServersConfig { servers, ..ServersConfig::default() });
    let want = want("a", None);
    let host = |(slot, _): &(Slot, Box<Connection<u32>>)| slot.shared.endpoint.host.to_string();
    for (factor, expected) in [(3.0, ["db", "db", "db", "far"]), (1.0, ["db", "far", "db", "far"])] {
        pool.locality = Snapshot::new([(0, vec![(db(), factor)])]);
        for round in 0..2 {
            let take = |random| {
                pool.random = random;
                if round == 0 { pool.open(&want, 0) } else { pool.reuse(&want) }
            };
            let taken: Vec<_> = (0..4).map(take).collect();
            assert_eq!(taken.iter().map(host).collect::<Vec<_>>(), expected, "{factor}, round {round}");
            taken.into_iter().for_each(|taken| pool.release(taken));
        }
        pool.inner.drain(None, &db(), &mut pool.trash);
        pool.inner.drain(None, &Endpoint::new("far", 3306), &mut pool.trash);
    }
}

#[test]
fn a_session_gets_the_connection_that_it_used_last_if_another_fits_no_better() {
    let mut pool = Fixture::new(10);
    let mut want = want("a", Some("x"));
    let first = pool.open(&want, 1);
    let second = pool.open(&want, 2);
    want.last = Some(first.0.id);
    pool.release(first);
    pool.release(second);
    assert_eq!(pool.reuse(&want).1.transport, 1);
    assert_eq!(pool.reuse(&want).1.transport, 2, "its own is taken");
}

#[test]
fn among_those_that_fit_one_is_preferred_whose_packets_arrive_where_the_session_runs() {
    let mut pool = Fixture::new(10);
    let mut here = want("a", Some("x"));
    let elsewhere = want("a", Some("y"));
    let on = |number| {
        let mut processor = Processor::default();
        processor.follow(Instant::now(), || Some(number));
        processor
    };
    let open = [(&here, 1), (&here, 0), (&here, 0), (&elsewhere, 0), (&here, 1)].into_iter().zip(0..);
    let open: Vec<_> = open
        .map(|((want, processor), name)| {
            let (slot, connection) = pool.open(want, name);
            let served = Served::Several;
            (slot, Box::new(Connection { processor: on(processor), served, ..*connection }))
        })
        .collect();
    here.processor = on(0);
    here.last = open.first().map(|(slot, _)| slot.id);
    open.into_iter().for_each(|lease| pool.release(lease));
    let order = [(); 5].map(|()| pool.reuse(&here).1.transport);
    assert_eq!(order, [2, 1, 0, 4, 3], "near and the newest, near, its own, the newest, what must change");
}

#[test]
fn a_connection_that_has_served_nobody_else_is_its_sessions_wherever_its_packets_arrive() {
    let mut pool = Fixture::new(10);
    let mut here = want("a", Some("x"));
    let (own, near) = (pool.open(&here, 1), pool.open(&here, 2));
    here.processor.follow(Instant::now(), || Some(0));
    here.last = Some(own.0.id);
    pool.release((near.0, Box::new(Connection { processor: here.processor, ..*near.1 })));
    pool.release((own.0, Box::new(Connection { served: Served::One(here.session), ..*own.1 })));
    assert_eq!(pool.reuse(&here).1.transport, 1);
}

#[test]
fn the_best_fit_is_used_again_and_the_newest_among_equals() {
    let mut pool = Fixture::new(10);
    let wants = [want("a", Some("x")), want("a", Some("y")), want("a", Some("x")), want("b", Some("x"))];
    let open: Vec<_> = wants.iter().zip(0..).map(|(want, name)| pool.open(want, name)).collect();
    assert_eq!(pool.row(), online(4, 0));
    open.into_iter().for_each(|lease| pool.release(lease));
    assert_eq!(pool.row(), online(0, 4));
    assert_eq!(pool.reuse(&wants[0]).1.transport, 2);
    assert_eq!(pool.reuse(&wants[0]).1.transport, 0);
    // Only another schema is left: it will be changed.
    assert_eq!(pool.reuse(&wants[0]).1.transport, 1);
    pool.open(&wants[0], 9);
    assert_eq!(pool.reuse(&wants[3]).1.transport, 3);
}

#[test]
fn a_connection_is_not_shared_across_logins_or_from_a_schema_to_none() {
    let mut pool = Fixture::new(10);
    let plain = want("a", None);
    let mut set = want("a", Some("x"));
    Arc::make_mut(&mut set.profile).set_names("latin1");
    let lease = pool.open(&set, 1);
    pool.release(lease);
    pool.open(&plain, 2);
    let other_secret = Identity { secret: Secret::Clear("s".into()), ..Identity::clone(&plain.identity) };
    pool.open(&Want { identity: Arc::new(other_secret), ..set.clone() }, 3);
    // Character sets can be set.
    assert_eq!(pool.reuse(&want("a", Some("x"))).1.transport, 1);
}

#[test]
fn tickets_count_and_a_free_connection_of_another_makes_room() {
    let mut pool = Fixture::new(2);
    let (a, b) = (want("a", None), want("b", None));
    let first = pool.open(&a, 1);
    let second = pool.open(&a, 2);
    assert!(matches!(pool.acquire(&a), Err(Refusal::Unavailable(Unavailable::Full))));
    pool.release(first);
    pool.open(&b, 3);
    assert_eq!(pool.closed(), [1]);
    assert!(matches!(pool.acquire(&b), Err(Refusal::Unavailable(Unavailable::Full))));
    pool.inner.discard(&second.0);
    assert_eq!(pool.row(), online(1, 0));
}

#[test]
fn a_drain_closes_what_is_free_and_retires_what_is_used_or_being_opened() {
    let mut pool = Fixture::new(10);
    let a = want("a", None);
    let (free, used, reset) = (pool.open(&a, 1), pool.open(&a, 2), pool.open(&a, 3));
    pool.release(free);
    let Ok(Acquired::Open(ticket, _)) = pool.acquire(&want("b", None)) else { panic!("no ticket") };
    pool.inner.drain(Some(1), &db(), &mut pool.trash);
    assert_eq!(pool.row(), online(3, 1));
    pool.inner.drain(None, &db(), &mut pool.trash);
    assert_eq!(pool.row(), online(3, 0));
    assert!(used.0.shared.is_retired() && ticket.shared.is_retired());
    // What is opened now is not concerned.
    let fresh = pool.open(&a, 4);
    pool.release(used);
    // A reset changes what a connection carries, not that it is retired.
    let (slot, connection) = reset;
    pool.release((slot, Box::new(Connection { profile: Arc::new(Profile::login(None, 45)), ..*connection })));
    pool.release(fresh);
    assert_eq!(pool.closed(), [1, 2, 3]);
    assert_eq!(pool.reuse(&a).1.transport, 4);
}

/// Notes which address a connection leads to.
fn lead(slot: &Slot, address: [u8; 4]) {
    slot.shared.set_peer(Peer {
        hostgroup: 0,
        endpoint: db(),
        address: (address, 3306).into(),
        local: (address, 1).into(),
        tls: None,
        connection_id: 0,
        identity: Arc::clone(&want("app", None).identity),
        server_version: String::new(),
    });
}

#[test]
fn connections_to_an_address_that_their_name_has_left_are_retired_and_no_others() {
    const OLD: [u8; 4] = [10, 0, 0, 1];
    const NEW: [u8; 4] = [10, 0, 0, 2];
    let mut fixture = Fixture::new(9);
    let want = want("app", None);
    let held: Vec<_> = [OLD, OLD, NEW, NEW]
        .into_iter()
        .zip(1..)
        .map(|(address, name)| {
            let held = fixture.open(&want, name);
            lead(&held.0, address);
            held
        })
        .collect();
    let mut held = held.into_iter();
    let (free_old, used_old, free_new, used_new) =
        (held.next().unwrap(), held.next().unwrap(), held.next().unwrap(), held.next().unwrap());
    let Ok(Acquired::Open(opening, _)) = fixture.acquire(&want) else { panic!("none is free") };
    fixture.release(free_old);
    fixture.release(free_new);
    let old = |address| address == IpAddr::from(OLD);
    assert_eq!(fixture.inner.drain_strays("other", old, &mut fixture.trash), 0);
    assert_eq!(fixture.inner.drain_strays("db", old, &mut fixture.trash), 3);
    assert_eq!((fixture.closed(), fixture.row()), (vec![1], online(3, 1)));
    assert!(opening.shared.is_retired(), "it may be on its way to the old address");
    assert_eq!(fixture.inner.drain_strays("db", old, &mut fixture.trash), 0, "once");
    fixture.release(used_old);
    fixture.release(used_new);
    assert_eq!((fixture.closed(), fixture.row()), (vec![1, 2], online(1, 2)));
}

#[test]
fn connections_of_servers_out_of_use_do_not_come_back() {
    let mut pool = Fixture::new(10);
    let a = want("a", None);
    let (free, used) = (pool.open(&a, 1), pool.open(&a, 2));
    pool.release(free);
    assert!(pool.inner.hostgroups.shun_aws_bgd(0, &db()));
    pool.inner.sweep(&mut pool.trash);
    assert_eq!(pool.row(), Some(("SHUNNED_AWS_BGD".into(), 1, 0)));
    assert!(used.0.shared.is_retired(), "it does not come back with its server");
    assert!(matches!(pool.acquire(&a), Err(Refusal::Unavailable(Unavailable::NoServer))));
    pool.release(used);
    assert_eq!(pool.closed(), [1, 2]);
}

#[test]
fn a_demoted_server_is_shown_until_its_last_connection_is_gone() {
    let mut pool = Fixture::new(10);
    let used = pool.open(&want("a", None), 1);
    pool.inner.hostgroups.demote(0, 1, &db());
    pool.inner.sweep(&mut pool.trash);
    assert_eq!(pool.row(), Some(("OFFLINE_HARD".into(), 1, 0)));
    assert!(used.0.shared.is_retired());
    pool.release(used);
    assert_eq!(pool.row(), None);
    assert_eq!(pool.inner.hostgroups.server(0, &db()).map(|server| server.status), None::<ServerStatus>);
}

#[test]
fn free_lists_are_bounded_and_keep_the_newest() {
    let mut pool = Fixture::new(10);
    let a = want("a", None);
    let open: Vec<_> = (0..4).map(|name| pool.open(&a, name)).collect();
    for (slot, connection) in open {
        pool.inner.release(
            &slot,
            connection,
            pool.now,
            Keep { free_pct: 20, ..ALL_MAY_BE_FREE },
            &mut pool.trash,
        );
    }
    assert_eq!(pool.row(), online(0, 2));
    assert_eq!(pool.closed(), [0, 1]);
    let (slot, connection) = pool.reuse(&a);
    pool.inner.release(&slot, connection, pool.now, Keep { free_pct: 0, ..ALL_MAY_BE_FREE }, &mut pool.trash);
    assert_eq!(pool.row(), online(0, 1), "one may always be free");
}

#[test]
fn failures_within_a_second_shun_a_server_until_the_time_is_over() {
    let mut pool = Fixture::new(10);
    let a = want("a", None);
    let (slot, _) = pool.open(&a, 1);
    let fail = |pool: &mut Fixture, against, now| pool.inner.failed(&slot, against, now, 3, &mut Vec::new());
    let start = pool.now;
    assert!(!fail(&mut pool, true, start));
    assert!(!fail(&mut pool, false, start));
    assert!(!fail(&mut pool, true, start));
    assert!(!fail(&mut pool, true, start + SECOND), "the window is over");
    assert!(!fail(&mut pool, true, start + SECOND));
    assert!(fail(&mut pool, true, start + SECOND));
    let none = Err(Unavailable::NoServer);
    let acquired = |pool: &mut Fixture| match pool.acquire(&a) {
        Err(Refusal::Unavailable(unavailable)) => Err(unavailable),
        other => other.map(drop).map_err(|refusal| panic!("{refusal:?}")),
    };
    assert_eq!(acquired(&mut pool), none);
    assert_eq!(pool.rows()[0][7], Value::Int(6));
    // It is the last server, so it is tried after a tenth of its rest; a failure has the rest begin anew.
    pool.now = start + SECOND + SECOND / 2;
    assert_eq!(acquired(&mut pool), Ok(()));
    assert!(!fail(&mut pool, true, start + 2 * SECOND));
    pool.now = start + 2 * SECOND + SECOND / 4;
    assert_eq!(acquired(&mut pool), none);
    pool.now = start + 3 * SECOND;
    pool.open(&a, 2);
    assert_eq!(pool.rows()[0][3], Value::Text("ONLINE".into()));
}

#[test]
fn a_server_that_answers_no_ping_loses_its_connections() {
    let mut pool = Fixture::new(10);
    let a = want("a", None);
    let (free, used) = (pool.open(&a, 1), pool.open(&a, 2));
    pool.release(free);
    pool.inner.hostgroups.shun_aws_bgd(1, &db());
    let (cut, new) = pool.inner.shun_unresponsive(&db(), pool.now, &mut pool.trash);
    assert!(new && cut.len() == 1 && Arc::ptr_eq(&cut[0], &used.0.shared));
    assert_eq!(pool.closed(), [1]);
    let statuses: Vec<_> = pool.rows().iter().map(|row| row[3].clone()).collect();
    assert_eq!(statuses, ["SHUNNED", "SHUNNED_AWS_BGD"].map(|text| Value::Text(text.into())));
    assert!(!pool.inner.shun_unresponsive(&db(), pool.now, &mut pool.trash).1);
}

#[test]
fn a_closed_pool_gives_nothing_and_keeps_nothing() {
    let mut pool = Fixture::new(10);
    let a = want("a", None);
    let (free, used) = (pool.open(&a, 1), pool.open(&a, 2));
    pool.release(free);
    let cut = pool.inner.close(&mut pool.trash);
    assert!(cut.len() == 1 && Arc::ptr_eq(&cut[0], &used.0.shared));
    assert!(matches!(pool.acquire(&a), Err(Refusal::Closed)));
    assert!(pool.inner.connected(&used.0, false).closed);
    pool.release(used);
    assert_eq!(pool.closed(), [1, 2]);
}

#[test]
fn rows_count_traffic_and_the_most_used_at_once() {
    let mut pool = Fixture::new(10);
    let a = want("a", None);
    let (one, two) = (pool.open(&a, 1), pool.open(&a, 2));
    one.0.shared.count(wire::Command::COM_QUERY, 100, 1000);
    two.0.shared.count(wire::Command::COM_QUERY, 1, 2);
    pool.release(one);
    pool.release(two);
    let numbers: Vec<_> = pool.rows()[0][4..].to_vec();
    let expected = [0, 2, 2, 0, 2, 2, 0, 101, 1002, 0].map(Value::Int);
    assert_eq!(numbers, expected);
    pool.inner.drain(None, &db(), &mut pool.trash);
    assert_eq!(pool.rows()[0][9..], expected[5..], "connections that are gone have been there");
    assert_eq!(pool.rows().len(), 2, "servers without connections are shown too");
}

#[test]
fn a_reset_counts_servers_anew_and_keeps_the_totals() {
    let mut pool = Fixture::new(10);
    let a = want("a", None);
    let (one, two) = (pool.open(&a, 1), pool.open(&a, 2));
    one.0.shared.count(wire::Command::COM_QUERY, 100, 1000);
    pool.inner.failed(&two.0, false, pool.now, 3, &mut Vec::new());
    pool.release(one);
    pool.inner.reset_servers();
    assert_eq!(pool.rows()[0][4..], [1, 1, 0, 0, 1, 0, 0, 0, 0, 0].map(Value::Int));
    two.0.shared.count(wire::Command::COM_QUERY, 1, 2);
    assert_eq!(pool.rows()[0][9..13], [1, 0, 1, 2].map(Value::Int));
    let totals = pool.inner.totals();
    assert_eq!((totals.sent, totals.received, totals.opened, totals.failed), (101, 1002, 2, 1));
}

#[test]
fn a_hostgroup_counts_what_it_gave_out_even_by_servers_that_are_gone() {
    let mut pool = Fixture::new(10);
    let a = want("a", None);
    let lease = pool.open(&a, 1);
    let id = lease.0.id;
    pool.release(lease);
    let lease = pool.inner.reclaim(0, id).unwrap();
    assert_eq!((lease.1.usage.taken, lease.1.usage.returned), (1, 1));
    pool.release(lease);
    let lease = pool.reuse(&a);
    pool.inner.hostgroups.load(&ServersConfig::default());
    pool.inner.sweep(&mut pool.trash);
    pool.release(lease);
    assert_eq!(pool.rows().len(), 0);
    assert_eq!(pool.inner.given_out(true).into_iter().collect::<Vec<_>>(), [(0, 3)]);
    assert!(pool.inner.given_out(false).is_empty());
}

#[test]
fn a_connection_is_had_again_until_somebody_else_has_used_it() {
    let mut pool = Fixture::new(10);
    let a = want("a", None);
    let (first, second) = (pool.open(&a, 1), pool.open(&a, 2));
    let ids = [first.0.id, second.0.id];
    pool.release(first);
    pool.release(second);
    let (slot, connection) = pool.inner.reclaim(0, ids[0]).unwrap();
    assert_eq!((connection.transport, pool.row()), (1, online(1, 1)));
    assert!(pool.inner.reclaim(0, ids[0]).is_none(), "it is in use");
    let id = slot.id;
    pool.release((slot, connection));
    assert!(pool.inner.reclaim(0, ids[0]).is_none(), "it was used since");
    assert!(pool.inner.reclaim(1, id).is_none(), "another hostgroup");
    assert!(pool.inner.reclaim(0, id).is_some());
}

#[test]
fn old_connections_are_not_kept() {
    let mut pool = Fixture::new(10);
    let lease = pool.open(&want("a", None), 1);
    pool.now += SECOND;
    let keep = Keep { max_age: SECOND, ..ALL_MAY_BE_FREE };
    pool.inner.release(&lease.0, lease.1, pool.now, keep, &mut pool.trash);
    let lease = pool.reuse(&want("a", None));
    pool.now += SECOND;
    pool.inner.release(&lease.0, lease.1, pool.now, keep, &mut pool.trash);
    assert_eq!(pool.closed(), [1]);
}

#[test]
fn a_server_that_is_added_gets_its_share_although_another_has_free_connections() {
    let mut pool = Fixture::new(10);
    let a = want("a", None);
    let open: Vec<_> = (0..5).map(|name| pool.open(&a, name)).collect();
    open.into_iter().for_each(|lease| pool.release(lease));
    let servers = vec![row(0, 10), ServerRow::new(0, "new", 3306)];
    pool.inner.hostgroups.load(&ServersConfig { servers, ..ServersConfig::default() });
    let mut fresh = 0;
    for random in 0..10 {
        match pool.inner.acquire(
            0,
            &a,
            Terms { now: pool.now, random, opening: AS_NEEDED },
            Snapshot::default().of(0),
            rest,
            &mut pool.trash,
        ) {
            Ok(Acquired::Open(slot, _)) => {
                fresh += usize::from(&*slot.shared.endpoint.host == "new");
                pool.inner.discard(&slot);
            }
            Ok(Acquired::Reuse(slot, connection, _)) => pool.release((slot, connection)),
            Err(refusal) => panic!("{refusal:?}"),
        }
    }
    assert_eq!(fresh, 5, "half of the statements, by weight");
}

#[test]
fn warming_opens_connections_until_there_are_as_many_as_may_be_free() {
    let mut pool = Fixture::new(10);
    pool.opening = Opening { warm_pct: 20, ..AS_NEEDED };
    let a = want("a", None);
    let first = pool.open(&a, 1);
    pool.release(first);
    let second = pool.open(&a, 2);
    pool.release(second);
    assert_eq!(pool.reuse(&a).1.transport, 2, "two are a fifth of ten");
    // What may not be opened yet is not waited for while one is free.
    pool.opening = Opening { warm_pct: 100, per_second: 2 };
    assert_eq!(pool.reuse(&a).1.transport, 1);
}

#[test]
fn no_more_connections_are_opened_in_a_second_than_may_be() {
    let mut pool = Fixture::new(10);
    pool.opening.per_second = 1;
    let a = want("a", None);
    let first = pool.open(&a, 1);
    assert!(matches!(pool.acquire(&a), Err(Refusal::Unavailable(Unavailable::Throttled))));
    pool.release(first);
    let first = pool.reuse(&a);
    pool.now += SECOND;
    pool.open(&a, 2);
    pool.release(first);
}

#[test]
fn free_connections_that_are_silent_are_taken_to_be_pinged() {
    let mut pool = Fixture::new(10);
    let a = want("a", None);
    let (first, second) = (pool.open(&a, 1), pool.open(&a, 2));
    let (then, oldest) = (pool.now, first.0.id);
    pool.release(first);
    pool.now += SECOND;
    pool.release(second);
    assert_eq!(pool.inner.silent_since(then), [(0, db(), oldest)]);
    let (slot, mut idle) = pool.inner.take_to_ping(0, &db(), oldest).unwrap();
    assert_eq!(idle.connection.transport, 1);
    assert!(pool.inner.take_to_ping(0, &db(), oldest).is_none(), "it is taken");
    assert_eq!(pool.row(), online(1, 1));
    idle.pinged = Some(pool.now);
    pool.inner.put_back(&slot, idle, &mut pool.trash);
    assert!(pool.inner.silent_since(then).is_empty());
    assert_eq!(pool.inner.silent_since(pool.now).len(), 2);
    assert_eq!(pool.reuse(&a).1.transport, 2, "a ping is no use: the one used last comes first");
    assert_eq!(pool.inner.reclaim(0, oldest).unwrap().1.transport, 1, "its session still knows it");
    assert!(pool.closed().is_empty());
}

#[test]
fn a_connection_that_is_drained_while_it_is_pinged_does_not_come_back() {
    let mut pool = Fixture::new(10);
    let first = pool.open(&want("a", None), 1);
    let id = first.0.id;
    pool.release(first);
    let (slot, idle) = pool.inner.take_to_ping(0, &db(), id).unwrap();
    pool.inner.drain(None, &db(), &mut pool.trash);
    pool.inner.put_back(&slot, idle, &mut pool.trash);
    assert_eq!((pool.row(), pool.closed()), (online(0, 0), vec![1]));
}

#[test]
fn a_load_of_the_same_leaves_connections_alone_and_undoes_moves() {
    let mut pool = Fixture::new(10);
    let app = want("app", None);
    let used = pool.open(&app, 1);
    let free = pool.open(&app, 2);
    pool.release(free);
    let load = |pool: &mut Fixture, servers: Vec<ServerRow>| {
        pool.inner.hostgroups.load(&ServersConfig { servers, ..ServersConfig::default() });
        pool.inner.sweep(&mut pool.trash);
    };
    let same = vec![row(0, 10), row(1, 10)];
    for _ in 0..3 {
        load(&mut pool, same.clone());
        assert_eq!((pool.row(), pool.closed()), (online(1, 1), vec![]));
    }
    // A change of anything but the place is none for connections.
    load(&mut pool, vec![ServerRow { weight: 9, comment: "x".into(), ..row(0, 10) }, row(1, 10)]);
    assert_eq!((pool.row(), pool.closed()), (online(1, 1), vec![]));
    assert!(!used.0.shared.is_retired());
    pool.release(used);
    assert_eq!((pool.row(), pool.closed()), (online(0, 2), vec![]));
    // What was moved meanwhile is back, with other connections.
    pool.inner.hostgroups.demote(0, 1, &db());
    pool.inner.sweep(&mut pool.trash);
    assert_eq!((pool.row(), pool.closed()), (None, vec![2, 1]));
    load(&mut pool, same);
    assert_eq!(pool.row(), online(0, 0));
}

#[test]
fn what_is_said_of_a_hostgroup_goes_before_variables() {
    let mut pool = Fixture::new(10);
    let said = HostgroupAttributesRow {
        throttle_connections_per_sec: 2,
        connection_warming: true,
        free_connections_pct: 20,
        ..HostgroupAttributesRow::new(0)
    };
    let config = ServersConfig {
        servers: vec![row(0, 10)],
        hostgroup_attributes: vec![said],
        ..ServersConfig::default()
    };
    pool.inner.hostgroups.load(&config);
    let a = want("a", None);
    let first = pool.open(&a, 1);
    pool.release(first);
    pool.open(&a, 2);
    pool.reuse(&a);
    assert!(matches!(pool.acquire(&a), Err(Refusal::Unavailable(Unavailable::Throttled))));
}
