//! The ids in a process list. Servers list their own; a client knows those that pointsman gives, and its KILL means them.

use super::classify::Statement;
use super::commands::Kind;
use super::state::Session;
use crate::quoting::Quoting;
use crate::tokens::{Token, Tokens};
use wire::channel::Channel;
use wire::{Command, attributes};

impl Session<'_> {
    /// What the ids in the answer to the client's last command are for it, sorted by the server's: those of connections that sessions
    /// have in hand. Empty if the answer is no process list.
    pub(super) fn process_ids(
        &self,
        client: &Channel,
        command: Command,
        statement: &Statement,
    ) -> Vec<(u64, u64)> {
        let lists = match command {
            Command::COM_PROCESS_INFO => true,
            Command::COM_QUERY => statement.kind == Kind::Show && self.shows_processes(client),
            _ => false,
        };
        let Some(lease) = self.lease.as_ref().filter(|_| lists) else { return Vec::new() };
        let entries = self.shared.registry.entries();
        let of = |peer: &crate::pool::Peer, id: u32| (u64::from(peer.connection_id), u64::from(id));
        let mut ids: Vec<_> = entries
            .iter()
            .filter_map(|entry| {
                let peer = entry.server(&entry.activity()).cloned()?;
                (peer.endpoint == *lease.endpoint()).then(|| of(&peer, entry.id))
            })
            .collect();
        ids.sort_unstable();
        ids
    }
    fn shows_processes(&self, client: &Channel) -> bool {
        let command = client.last_command().filter(|command| command.head.len() == command.length);
        let argument = command.and_then(|command| command.head.get(1..)).unwrap_or_default();
        attributes::sql(argument, self.capabilities).is_ok_and(is_process_list)
    }
}

/// Whether a statement is `SHOW [FULL] PROCESSLIST` and nothing else.
fn is_process_list(sql: &[u8]) -> bool {
    let mut words = Vec::with_capacity(3);
    for token in Tokens::new(sql, Quoting::default()).filter(|token| *token != Token::Symbol(b';')) {
        match token {
            Token::Word(word) if words.len() < 3 => words.push(word.to_ascii_uppercase()),
            _ => return false,
        }
    }
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    matches!(words.as_slice(), [b"SHOW", b"PROCESSLIST"] | [b"SHOW", b"FULL", b"PROCESSLIST"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_lists_are_known_by_their_words() {
        for (sql, expected) in [
            ("SHOW PROCESSLIST", true),
            ("show full processlist;", true),
            ("/* app */ SHOW /* x */ PROCESSLIST -- end", true),
            ("SHOW TABLES", false),
            ("SHOW FULL TABLES", false),
            ("SHOW PROCESSLIST; SELECT 1", false),
            ("SHOW PROCESSLIST WHERE 1", false),
            ("SELECT * FROM information_schema.PROCESSLIST", false),
            ("", false),
        ] {
            assert_eq!(is_process_list(sql.as_bytes()), expected, "{sql}");
        }
    }
}
