//! The sql_mode of a session, as far as it decides how the text of a statement is read.

/// Modes that change how quotes are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SqlMode {
    /// ANSI_QUOTES: what stands in double quotes is a name.
    pub ansi_quotes: bool,
    /// NO_BACKSLASH_ESCAPES: a backslash in quotes is a byte like any other.
    pub no_backslash_escapes: bool,
}

/// ANSI_QUOTES, and modes that have it in them. Servers report both; a SET statement says one.
const ANSI_QUOTES: [&str; 7] = ["ANSI_QUOTES", "ANSI", "DB2", "MAXDB", "MSSQL", "ORACLE", "POSTGRESQL"];

impl SqlMode {
    /// Reads the names of modes, whatever stands between them.
    pub fn read(text: &str) -> Self {
        let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
        words.fold(Self::default(), |mode, word| Self {
            ansi_quotes: mode.ansi_quotes || ANSI_QUOTES.iter().any(|name| word.eq_ignore_ascii_case(name)),
            no_backslash_escapes: mode.no_backslash_escapes
                || word.eq_ignore_ascii_case("NO_BACKSLASH_ESCAPES"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_that_decide_about_quotes_are_known() {
        for (text, ansi_quotes, no_backslash_escapes) in [
            ("'ANSI_QUOTES'", true, false),
            ("REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ANSI", true, false),
            ("'ansi'", true, false),
            ("STRICT_TRANS_TABLES,ORACLE", true, false),
            ("'STRICT_TRANS_TABLES,NO_BACKSLASH_ESCAPES'", false, true),
            ("ANSI_QUOTES,NO_BACKSLASH_ESCAPES", true, true),
            ("NO_ANSI_THING", false, false),
            ("", false, false),
        ] {
            assert_eq!(SqlMode::read(text), SqlMode { ansi_quotes, no_backslash_escapes }, "{text}");
        }
    }
}
