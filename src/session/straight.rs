//! The short way of a session that keeps its connection (fast_forward): a plain statement is sent without looking what its connection
//! lacks, and an answer that is seen at a glance is not followed packet by packet. What is not so plain takes the long way.

use super::classify::Statement;
use super::forward::Last;
use super::hold::Reason;
use super::state::{Pending, Session};
use crate::pool::Lease;
use wire::channel::Channel;
use wire::tracker::{LASTING, Outcome, Whole};
use wire::{CapabilityFlags, Command, StatusFlags, WireError};

/// Whether a text is certainly one statement of the commonest kinds, and the server's to answer: it is neither about the proxy, nor to be
/// looked into for what it does beside changing rows.
pub fn is_the_servers(sql: &[u8]) -> bool {
    const LOWER: u8 = b'a' - b'A';
    let text = sql.trim_ascii_start();
    let begins_so = match text.split_first_chunk() {
        Some((verb, rest)) => match &verb.map(|byte: u8| byte | LOWER) {
            // A system variable, VERSION(), CONNECTION_ID() or USER().
            b"select " => !matches!(
                rest.trim_ascii_start(),
                [b'@', ..]
                    | [b'v' | b'V', b'e' | b'E', ..]
                    | [b'c' | b'C', b'o' | b'O', ..]
                    | [b'u' | b'U', b's' | b'S', ..]
            ),
            b"insert " | b"update " | b"delete " | b"replace" => true,
            _ => text.eq_ignore_ascii_case(b"ROLLBACK"),
        },
        None => text.eq_ignore_ascii_case(b"BEGIN") || text.eq_ignore_ascii_case(b"COMMIT"),
    };
    begins_so && memchr::memchr(b';', sql).is_none()
}

impl Session<'_> {
    /// Whether the next statement may read what the connection in hand does not know: of an answer of our own, or from before it was taken.
    pub(super) fn has_untold(&self) -> bool {
        self.unseen.is_some() || self.counts.are_here()
    }
    /// Whether the connection in hand is the session's for good, nothing speaks against it, and nothing is to be done there before or
    /// after this statement.
    #[inline]
    pub(super) fn goes_straight(&self, command: Command, statement: &Statement) -> bool {
        let good = |lease: &Lease<'_>| !(lease.is_retired() || lease.has_surplus());
        let runs = matches!(command, Command::COM_QUERY | Command::COM_STMT_EXECUTE);
        let plain = || runs && statement.is_plain() && statement.answers() <= 1;
        self.user.fast_forward && plain() && self.lease.as_ref().is_some_and(good)
    }
    /// Takes the answer to a plain statement, if it is there and can be seen at a glance. `None`: it is still to be followed.
    pub(super) fn glance(
        &mut self,
        client: &mut Channel,
        pending: &Pending,
    ) -> Option<Result<(Outcome, Last), WireError>> {
        let &Pending { command, sent, straight, .. } = pending;
        let lease = self.lease.as_mut().filter(|_| straight)?;
        let backend = lease.backend();
        let (server, before) = (backend.capabilities, backend.status & LASTING);
        let bytes = match backend.channel.fill() {
            Ok(bytes) => bytes,
            // A pause is looked after on the long way, which reads again.
            Err(error) if error.is_timeout() => return None,
            Err(error) => return Some(Err(error)),
        };
        let whole = Whole::see(bytes, server.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF))?;
        let waits_for_end = command == Command::COM_STMT_EXECUTE;
        let sides = (server, self.capabilities);
        let rewritten = whole.translate(sides, before, waits_for_end, bytes, client.output())?;
        let last = Last { used: bytes.len(), rewritten };
        lease.count(command, sent, last.used as u64);
        Some(Ok((whole.outcome(), last)))
    }
    /// Takes note of the answer to a plain statement, if that has left nothing but counts, and took nothing away that was left before it
    /// or waits for the end of a transaction. False: there is more to take note of.
    pub(super) fn settle_straight(&mut self, pending: &Pending, outcome: &Outcome) -> bool {
        let Some(lease) = self.lease.as_mut().filter(|_| pending.straight) else { return false };
        let Some(status) = outcome.status else { return false };
        let left = outcome.error.is_some()
            || outcome.warnings != 0
            || outcome.last_insert_id != 0
            || outcome.changes.state_changed;
        let as_before = status & LASTING == self.status
            && status.contains(StatusFlags::SERVER_STATUS_AUTOCOMMIT)
            && lease.backend().sql_mode == self.sql_mode;
        let waits = !self.hold.is_only(Reason::FastForward) || self.counts.asked || self.unseen.is_some();
        if left || waits || !as_before {
            return false;
        }
        lease.backend().status = status;
        self.warnings = 0;
        self.counts.note(outcome, false);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quoting::Quoting;
    use crate::session::classify::classify;
    use proptest::prelude::*;

    #[test]
    fn what_may_be_the_proxys_is_not_taken_for_the_servers() {
        for sql in [
            "SELECT c FROM t",
            " select 1",
            "INSERT INTO t VALUES (1)",
            "update t set a = 1",
            "delete from t",
            "REPLACE t VALUES (1)",
            "begin",
            "COMMIT",
            "Rollback",
            "SELECT /* x */ VERSION()",
        ] {
            assert!(is_the_servers(sql.as_bytes()), "{sql}");
        }
        for sql in [
            "",
            "SELECT",
            "select @@version_comment limit 1",
            "select USER()",
            "SELECT  VERSION()",
            "select connection_id()",
            "SHOW STATUS LIKE 'Ssl_cipher'",
            "KILL 5",
            "/* x */ KILL 5",
            "SELECT 1; KILL 5",
            "PREPARE s FROM 'KILL 5'",
            "EXECUTE IMMEDIATE 'KILL 5'",
            "BEGIN NOT ATOMIC KILL 5; END",
            "USE shop",
            "CREATE DATABASE shop",
            "DROP DATABASE shop",
            "CALL p()",
            "u",
            "ROLLBACK TO SAVEPOINT a",
        ] {
            assert!(!is_the_servers(sql.as_bytes()), "{sql}");
        }
    }

    proptest! {
        /// Whatever a statement that is read is known to be about, this must know without.
        #[test]
        fn nothing_about_the_proxy_is_the_servers(
            before in "[ \n]{0,2}", verb in "(?i)select|kill|show|insert|begin", rest in "(?i) {0,2}(@@version|version\\(\\)|connection_id\\(\\)|user\\(\\)|status|1|c)"
        ) {
            let sql = format!("{before}{verb}{rest}");
            let asked = super::super::asked::asked(sql.as_bytes()).is_some();
            let kill = classify(sql.as_bytes(), Quoting::default()).kind == super::super::commands::Kind::Kill;
            prop_assert!(!((asked || kill) && is_the_servers(sql.as_bytes())), "{}", sql);
        }
    }
}
