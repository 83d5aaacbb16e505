//! stats_mysql_errors: errors by server, user, schema and code.
//!
//! Memory is bounded: of too many rows the half that was seen longest ago is forgotten.

use crate::hostgroups::{Endpoint, HostgroupId};
use admin::Value;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use wire::SqlError;

/// Most rows that are kept.
const MOST: usize = 4_096;
/// How much of a message is kept, in bytes.
const MESSAGE: usize = 512;

/// Whose error it was.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// Where the statement went or would have gone.
    pub hostgroup: HostgroupId,
    /// The server; `None` for what pointsman itself has told a client.
    pub endpoint: Option<Endpoint>,
    /// The client's user.
    pub user: Arc<str>,
    /// The client's schema.
    pub schema: Option<Arc<str>>,
}

#[derive(Debug, Clone)]
struct Count {
    count: u64,
    first_seen: u64,
    last_seen: u64,
    /// Whose the last one was.
    client: IpAddr,
    last_error: Arc<str>,
}

type Counts = BTreeMap<(Origin, u16), Count>;

/// All errors.
#[derive(Default)]
pub struct Errors(Mutex<Counts>);

impl Errors {
    /// Counts an error that a client has met. Clients of one user share a row, as in ProxySQL.
    pub fn count(&self, origin: Origin, client: IpAddr, error: &SqlError) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let message = &error.message;
        let last_error = Arc::from(start(message));
        let mut counts = self.0.lock();
        let key = (origin, error.code);
        if let Some(known) = counts.get_mut(&key) {
            known.count += 1;
            (known.last_seen, known.client, known.last_error) = (now, client, last_error);
            return;
        }
        if counts.len() >= MOST {
            forget_half(&mut counts);
        }
        counts.insert(key, Count { count: 1, first_seen: now, last_seen: now, client, last_error });
    }
    /// Rows of stats_mysql_errors.
    pub fn rows(&self) -> Vec<Vec<Value>> {
        let counts = self.0.lock().clone();
        rows(&counts)
    }
    /// The same, and counting begins anew.
    pub fn take_rows(&self) -> Vec<Vec<Value>> {
        let counts = std::mem::take(&mut *self.0.lock());
        rows(&counts)
    }
}

/// As much of a message as is kept.
fn start(message: &str) -> &str {
    let end = (0..=MESSAGE).rev().find(|end| message.is_char_boundary(*end));
    end.and_then(|end| message.get(..end)).unwrap_or(message)
}

/// Forgets those that were seen longest ago; of the last second that has to go in part, any.
fn forget_half(counts: &mut Counts) {
    let mut seen: Vec<_> = counts.values().map(|count| count.last_seen).collect();
    let half = seen.len() / 2;
    seen.sort_unstable();
    let Some(&middle) = seen.get(half) else { return };
    let mut left = half - seen.partition_point(|seen| *seen < middle);
    counts.retain(|_, count| {
        let goes = count.last_seen == middle && left > 0;
        left -= usize::from(goes);
        count.last_seen >= middle && !goes
    });
}

fn rows(counts: &Counts) -> Vec<Vec<Value>> {
    let row = |((origin, code), count): (&(Origin, u16), &Count)| {
        let (host, port) = match &origin.endpoint {
            Some(Endpoint { host, port }) => (&**host, *port),
            None => ("", 0),
        };
        vec![
            Value::from(origin.hostgroup),
            host.into(),
            port.into(),
            (*origin.user).into(),
            count.client.to_string().into(),
            origin.schema.as_deref().unwrap_or_default().into(),
            (*code).into(),
            count.count.into(),
            count.first_seen.into(),
            count.last_seen.into(),
            (*count.last_error).into(),
        ]
    };
    counts.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn origin(user: &str) -> Origin {
        Origin {
            hostgroup: 3,
            endpoint: Some(Endpoint::new("db", 3306)),
            user: user.into(),
            schema: Some("shop".into()),
        }
    }

    #[test]
    fn errors_add_up_and_the_last_text_counts() {
        let errors = Errors::default();
        for (text, client) in [("one", [10, 0, 0, 1]), ("two", [127, 0, 0, 1])] {
            errors.count(origin("app"), client.into(), &SqlError::new(1062, "23000", text));
        }
        errors.count(
            Origin { endpoint: None, schema: None, ..origin("app") },
            CLIENT,
            &SqlError::new(9001, "HY000", "x"),
        );
        let rows = errors.take_rows();
        let texts =
            |row: &[Value]| row.iter().map(|value| format!("{value:?}")).collect::<Vec<_>>().join(" ");
        assert_eq!(rows.len(), 2);
        assert!(texts(&rows[0]).starts_with(
            r#"Int(3) Text("") Int(0) Text("app") Text("127.0.0.1") Text("") Int(9001) Int(1)"#
        ));
        let known = texts(&rows[1]);
        assert!(known.starts_with(
            r#"Int(3) Text("db") Int(3306) Text("app") Text("127.0.0.1") Text("shop") Int(1062) Int(2)"#
        ));
        assert!(known.ends_with(r#"Text("two")"#));
        assert!(errors.rows().is_empty());
    }

    #[test]
    fn memory_is_bounded_and_the_newest_stay() {
        let errors = Errors::default();
        for number in 0..3 * MOST {
            let text = "é".repeat(MESSAGE);
            errors.count(origin(&number.to_string()), CLIENT, &SqlError::new(1064, "42000", text));
        }
        let rows = errors.rows();
        assert!(rows.len() > MOST / 2 && rows.len() <= MOST, "{}", rows.len());
        let Some(Value::Text(text)) = rows[0].last() else { panic!("{:?}", rows[0]) };
        assert_eq!(text.len(), MESSAGE);
    }

    #[test]
    fn those_seen_longest_ago_are_forgotten_first() {
        let mut counts = Counts::new();
        for number in 0..MOST as u64 {
            let seen = number % 7;
            let count =
                Count { count: 1, first_seen: 0, last_seen: seen, client: CLIENT, last_error: "".into() };
            counts.insert((origin(&number.to_string()), 1), count);
        }
        forget_half(&mut counts);
        assert_eq!(counts.len(), MOST / 2);
        assert!(counts.values().all(|count| count.last_seen >= 3));
    }
}
