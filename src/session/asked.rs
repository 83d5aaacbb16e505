//! Simple questions that a server would answer with what is its own: the id of a connection, and its version.

/// What a statement asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// CONNECTION_ID(), which is to be the one of the greeting.
    ConnectionId,
    /// VERSION().
    Version,
    /// @@version.
    VersionVariable,
}

/// Words that cannot be an alias without AS.
const RESERVED: [&str; 13] = [
    "FROM",
    "INTO",
    "UNION",
    "WHERE",
    "FOR",
    "LIMIT",
    "ORDER",
    "GROUP",
    "HAVING",
    "PROCEDURE",
    "LOCK",
    "WINDOW",
    "EXCEPT",
];

/// Reads a statement that asks for one of these alone, in any case and with any white space, an alias, `LIMIT 1` and
/// semicolons; also returns the name that a server gives the column. Anything else is a server's to answer.
pub fn asked(sql: &[u8]) -> Option<(Asked, String)> {
    let mut text = Text::short(sql)?;
    text.space();
    text.word("SELECT")?;
    text.needed_space()?;
    // A SELECT of anything else mostly ends here.
    if !matches!(text.0, [b'@', b'@', ..] | [b'v' | b'V', b'e' | b'E', ..] | [b'c' | b'C', b'o' | b'O', ..]) {
        return None;
    }
    let start = text.0;
    let asked = if text.take(b"@@") {
        text.word("VERSION")?;
        Asked::VersionVariable
    } else {
        let asked = match text.word("VERSION") {
            Some(()) => Asked::Version,
            None => {
                text.word("CONNECTION_ID")?;
                Asked::ConnectionId
            }
        };
        text.space();
        let call = text.take(b"(");
        text.space();
        (call && text.take(b")")).then_some(asked)?
    };
    let written = start.get(..start.len() - text.0.len())?;
    let name = text.alias()?.unwrap_or(written);
    text.end()?;
    Some((asked, String::from_utf8(name.to_vec()).ok()?))
}

/// The statement to prepare in place of one that asks for CONNECTION_ID(), which only the proxy knows: its number as a constant,
/// with as many digits as make the servers describe the column as CONNECTION_ID()'s.
pub fn with_own_id(sql: &[u8], id: u32) -> Option<Vec<u8>> {
    let (Asked::ConnectionId, name) = asked(sql)? else { return None };
    // Other signs may hide the closing quote in some character sets.
    (name.is_ascii() && !name.contains('`'))
        .then(|| format!("SELECT CAST({id:010} AS UNSIGNED) AS `{name}`").into_bytes())
}

/// What is left to read of a text.
pub(super) struct Text<'a>(&'a [u8]);

impl<'a> Text<'a> {
    /// A statement, unless it is longer than a simple question. Nearly every other one is.
    pub fn short(sql: &'a [u8]) -> Option<Self> {
        const LONGEST: usize = 200;
        (sql.len() <= LONGEST).then_some(Self(sql))
    }
    /// Takes these bytes, or nothing.
    pub fn take(&mut self, bytes: &[u8]) -> bool {
        self.0.strip_prefix(bytes).map(|rest| self.0 = rest).is_some()
    }
    fn take_while(&mut self, wanted: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.0.iter().position(|&byte| !wanted(byte)).unwrap_or(self.0.len());
        let (taken, rest) = self.0.split_at(end);
        self.0 = rest;
        taken
    }
    /// Takes white space; whether there was any.
    pub fn space(&mut self) -> bool {
        !self.take_while(|byte| byte.is_ascii_whitespace()).is_empty()
    }
    /// Takes white space, of which there must be some.
    pub fn needed_space(&mut self) -> Option<()> {
        self.space().then_some(())
    }
    /// Takes what a name may be made of.
    pub fn identifier(&mut self) -> &'a [u8] {
        self.take_while(is_of_name)
    }
    /// One word, or nothing is taken.
    pub fn word(&mut self, word: &str) -> Option<()> {
        let (start, rest) = self.0.split_at_checked(word.len())?;
        let ends = !rest.first().copied().is_some_and(is_of_name);
        (start.eq_ignore_ascii_case(word.as_bytes()) && ends).then(|| self.0 = rest)
    }
    /// The alias, if there is one; `None` for what is none.
    fn alias(&mut self) -> Option<Option<&'a [u8]>> {
        let spaced = self.space();
        let before = self.0;
        let named = spaced && self.word("AS").is_some();
        if named {
            self.space();
        }
        if let [quote @ (b'`' | b'\'' | b'"'), ..] = self.0 {
            let quote = *quote;
            self.take(&[quote]);
            let name = self.take_while(|byte| byte != quote && byte != b'\\');
            // A quote inside is doubled.
            let closed = self.take(&[quote]) && !self.0.starts_with(&[quote]);
            return (closed && !name.is_empty()).then_some(Some(name));
        }
        let name = self.identifier();
        let reserved = RESERVED.iter().any(|word| name.eq_ignore_ascii_case(word.as_bytes()));
        match (name.is_empty() || reserved, named) {
            (true, true) => None,
            (true, false) => {
                self.0 = before;
                Some(None)
            }
            (false, _) => (spaced && !name.iter().all(u8::is_ascii_digit)).then_some(Some(name)),
        }
    }
    fn end(&mut self) -> Option<()> {
        self.space();
        if self.word("LIMIT").is_some() {
            self.needed_space()?;
            self.word("1")?;
        }
        self.end_of_statement().then_some(())
    }
    /// Whether nothing follows but semicolons.
    pub fn end_of_statement(&mut self) -> bool {
        self.take_while(|byte| byte.is_ascii_whitespace() || byte == b';');
        self.0.is_empty()
    }
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_own_id_is_a_constant_of_a_prepared_statement() {
        for (sql, expected) in [
            ("SELECT CONNECTION_ID();", Some("SELECT CAST(0000000012 AS UNSIGNED) AS `CONNECTION_ID()`")),
            (
                "select connection_id() as 'my id' limit 1",
                Some("SELECT CAST(0000000012 AS UNSIGNED) AS `my id`"),
            ),
            ("SELECT CONNECTION_ID() AS 'a`b'", None),
            ("SELECT CONNECTION_ID() AS 'Á'", None),
            ("SELECT CONNECTION_ID() + 1", None),
            ("SELECT VERSION()", None),
        ] {
            let told = with_own_id(sql.as_bytes(), 12);
            assert_eq!(told.as_deref(), expected.map(str::as_bytes), "{sql}");
        }
    }

    #[test]
    fn simple_questions_are_understood_with_the_name_of_their_column() {
        use Asked::{ConnectionId, Version, VersionVariable};
        for (sql, what, name) in [
            ("SELECT CONNECTION_ID()", ConnectionId, "CONNECTION_ID()"),
            ("select connection_id();", ConnectionId, "connection_id()"),
            (" \n select\tConnection_Id ( ) ; ", ConnectionId, "Connection_Id ( )"),
            ("SELECT CONNECTION_ID() AS `my id`", ConnectionId, "my id"),
            ("SELECT CONNECTION_ID() id LIMIT 1", ConnectionId, "id"),
            ("SELECT CONNECTION_ID() as 'x'", ConnectionId, "x"),
            ("select version()", Version, "version()"),
            ("SELECT @@version LIMIT 1", VersionVariable, "@@version"),
            ("SELECT VERSION() AS v", Version, "v"),
        ] {
            assert_eq!(asked(sql.as_bytes()), Some((what, name.to_owned())), "{sql}");
        }
    }

    #[test]
    fn anything_else_is_not() {
        for sql in [
            "",
            "SELECT",
            "SELECTCONNECTION_ID()",
            "SELECT CONNECTION_ID",
            "SELECT CONNECTION_ID(), 1",
            "SELECT CONNECTION_ID()+1",
            "SELECT CONNECTION_ID() FROM DUAL",
            "SELECT CONNECTION_ID() FROM",
            "SELECT CONNECTION_ID() AS LIMIT",
            "SELECT CONNECTION_ID() 'a''b'",
            "SELECT CONNECTION_ID() LIMIT 0",
            "SELECT CONNECTION_ID(); SELECT 1",
            "SELECT CONNECTION_ID() 1",
            "SELECT /* x */ VERSION()",
            "SELECT @@version_comment",
            "SELECT @@global.version",
            "SELECT VERSION(1)",
        ] {
            assert_eq!(asked(sql.as_bytes()), None, "{sql}");
        }
        let long = format!("SELECT CONNECTION_ID(){}", " ".repeat(200));
        assert_eq!(asked(long.as_bytes()), None);
    }

    proptest! {
        #[test]
        fn any_bytes_end(rest: Vec<u8>) {
            asked(&[b"SELECT VERSION()", rest.as_slice()].concat());
        }
    }
}
