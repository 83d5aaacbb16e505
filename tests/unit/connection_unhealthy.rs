//! A connection that is retired while it is in use never comes back, whichever way it goes: reset, kept by its session, or given back to
//! the pool. Contract: RDS_BGD_Monitor.md, "Connection Retirement". The pool, its sessions and their sockets are the daemon's own.
//!
//! A TAP program of the group cluster_sim_rds_bgd-g1, and part of `cargo test`.

mod world;

use mysql::prelude::Queryable;
use mysql::{ChangeUserOpts, Conn};
use std::io::Stdout;
use std::process::ExitCode;
use tap::emitter::Emitter;
use world::{Outcome, World};

type Tap = Emitter<Stdout>;

fn main() -> ExitCode {
    let mut tap = Emitter::stdout();
    tap.plan(43);
    if let Err(error) = run(&mut tap) {
        // The tests that did not run leave the plan unmet, so this is a failure.
        tap.diag(&format!("stopped: {error}"));
    }
    tap.exit_status()
}

fn run(tap: &mut Tap) -> Outcome {
    test_free(tap)?;
    for retired in [false, true] {
        test_pool_return(tap, retired)?;
        test_reset(tap, retired)?;
        test_local_return(tap, retired)?;
        test_kept_by_session(tap, retired)?;
        for (what, ends) in SESSION_ENDS {
            test_session(tap, retired, what, ends)?;
        }
    }
    test_opening(tap)
}

fn test_free(tap: &mut Tap) -> Outcome {
    let world = World::new(true)?;
    world.release(world.lease()?.0);
    tap.ok(world.settles(0, 1), "a free connection");
    world.drain();
    tap.is(world.pooled(), (0, 0), "drained: it is gone at once");
    tap.ok(world.settles(0, 0), "drained: it is closed");
    Ok(())
}

/// A connection that is being opened is retired at birth.
fn test_opening(tap: &mut Tap) -> Outcome {
    let world = World::new(true)?;
    let ticket = world.ticket()?;
    world.drain();
    let lease = world.open(ticket)?;
    tap.ok(lease.is_retired(), "being opened: retired when it is open");
    world.release(lease);
    tap.ok(world.settles(0, 0), "being opened: destroyed when it is released");
    Ok(())
}

/// Four tests: it is marked and still used, and whether it comes back.
fn test_pool_return(tap: &mut Tap, retired: bool) -> Outcome {
    let world = World::new(true)?;
    let (lease, _) = world.lease()?;
    retire(&world, retired);
    tap.is(lease.is_retired(), retired, &named(retired, &format!("in use: marked {retired}")));
    tap.is(world.pooled(), (1, 0), &named(retired, "in use: it stays with who uses it"));
    world.release(lease);
    expect_end(tap, &world, retired, "pool return");
    let (_, reused) = world.lease()?;
    tap.is(reused, !retired, &named(retired, &format!("pool return: used again {}", !retired)));
    Ok(())
}

/// Three tests: COM_RESET_CONNECTION changes nothing of it.
fn test_reset(tap: &mut Tap, retired: bool) -> Outcome {
    let world = World::new(true)?;
    let (mut lease, _) = world.lease()?;
    retire(&world, retired);
    tap.is(world.reset(&mut lease)?, 1, &named(retired, "reset: the server has reset it"));
    tap.is(lease.is_retired(), retired, &named(retired, "reset: as before"));
    world.release(lease);
    expect_end(tap, &world, retired, "reset, then pool return");
    Ok(())
}

/// Two tests: a session takes up the connection that it has given back.
fn test_local_return(tap: &mut Tap, retired: bool) -> Outcome {
    let world = World::new(true)?;
    let (lease, _) = world.lease()?;
    let id = lease.id();
    retire(&world, retired);
    world.release(lease);
    let had = named(retired, &format!("local return: had again {}", !retired));
    tap.is(world.reclaim(id).is_some(), !retired, &had);
    tap.ok(world.settles(0, 0), &named(retired, "local return: closed in the end"));
    Ok(())
}

/// Two tests: the connection that a session keeps between its statements.
fn test_kept_by_session(tap: &mut Tap, retired: bool) -> Outcome {
    let world = World::new(false)?;
    let mut client = world.client()?;
    let first = connection_id(&mut client)?;
    retire(&world, retired);
    let second = connection_id(&mut client)?;
    let serves = named(retired, &format!("kept by its session: serves the next statement {}", !retired));
    tap.is(first == second, !retired, &serves);
    tap.ok(world.settles(1, 0), &named(retired, "kept by its session: one connection is open"));
    Ok(())
}

/// How a session parts with the connection that its transaction is on.
type End = fn(&mut Option<Conn>) -> Outcome;

const SESSION_ENDS: [(&str, End); 4] = [
    ("COMMIT", |client| Ok(client.as_mut().map_or(Ok(()), |client| client.query_drop("COMMIT"))?)),
    ("COM_RESET_CONNECTION", |client| Ok(client.as_mut().map_or(Ok(()), Conn::reset)?)),
    ("COM_CHANGE_USER", |client| {
        Ok(client.as_mut().map_or(Ok(()), |client| client.change_user(ChangeUserOpts::new()))?)
    }),
    ("the client's end", |client| {
        *client = None;
        Ok(())
    }),
];

/// Two tests: a transaction goes on after a drain, and its connection ends with it.
fn test_session(tap: &mut Tap, retired: bool, what: &str, end: End) -> Outcome {
    let world = World::new(true)?;
    let mut client = world.client()?;
    client.query_drop("BEGIN")?;
    let first = connection_id(&mut client)?;
    retire(&world, retired);
    let second = connection_id(&mut client)?;
    tap.is(second, first, &named(retired, &format!("{what}: until then the transaction goes on")));
    end(&mut Some(client))?;
    expect_end(tap, &world, retired, what);
    Ok(())
}

fn retire(world: &World, retired: bool) {
    if retired {
        world.drain();
    }
}

/// One test: the connection is destroyed if it was retired, and free otherwise.
fn expect_end(tap: &mut Tap, world: &World, retired: bool, after: &str) {
    let what = if retired { "destroyed" } else { "free" };
    tap.ok(world.settles(0, usize::from(!retired)), &named(retired, &format!("{after}: {what}")));
}

fn named(retired: bool, what: &str) -> String {
    format!("{}: {what}", if retired { "retired" } else { "healthy" })
}

fn connection_id(client: &mut Conn) -> Outcome<u32> {
    client.query_first("SELECT ID")?.ok_or_else(|| "no row".into())
}
