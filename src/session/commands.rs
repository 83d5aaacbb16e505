//! What is counted of statements by the words they begin with (`stats_mysql_commands_counters`), and of other commands.
//!
//! Sessions count without a lock, each in one of a few copies of all counters, so that they seldom write to the same memory.
//! Whoever reads adds the copies up.

use admin::Value;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use wire::Command;

/// Copies of the counters.
const SHARDS: usize = 8;

/// Limits of the columns `cnt_100us` to `cnt_10s`; what took longer is in `cnt_INFs`.
const LIMITS_US: [u64; 11] =
    [100, 500, 1_000, 5_000, 10_000, 50_000, 100_000, 500_000, 1_000_000, 5_000_000, 10_000_000];

macro_rules! kinds {
    ($($kind:ident $name:literal,)*) => {
        /// What a statement is, by its first words.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[allow(missing_docs, reason = "variants are the names that are shown")]
        #[repr(u8)]
        pub enum Kind { $($kind,)* #[default] None }

        /// Names by number, in the order in which they are shown.
        const NAMES: &[&str] = &[$($name,)*];
    };
}

kinds! {
    AlterTable "ALTER_TABLE", AlterView "ALTER_VIEW", AnalyzeTable "ANALYZE_TABLE", Begin "BEGIN",
    CallProcedure "CALL_PROCEDURE", ChangeMaster "CHANGE_MASTER", Commit "COMMIT", CreateDatabase "CREATE_DATABASE",
    CreateIndex "CREATE_INDEX", CreateTable "CREATE_TABLE", CreateTemporary "CREATE_TEMPORARY",
    CreateTrigger "CREATE_TRIGGER", CreateUser "CREATE_USER", CreateView "CREATE_VIEW", Deallocate "DEALLOCATE",
    Delete "DELETE", Describe "DESCRIBE", DropDatabase "DROP_DATABASE", DropIndex "DROP_INDEX", DropTable "DROP_TABLE",
    DropTrigger "DROP_TRIGGER", DropUser "DROP_USER", DropView "DROP_VIEW", Execute "EXECUTE", Explain "EXPLAIN",
    Flush "FLUSH", Grant "GRANT", Insert "INSERT", Kill "KILL", Load "LOAD", LockTable "LOCK_TABLE",
    Optimize "OPTIMIZE", Prepare "PREPARE", Purge "PURGE", ReleaseSavepoint "RELEASE_SAVEPOINT",
    RenameTable "RENAME_TABLE", Replace "REPLACE", ResetMaster "RESET_MASTER", ResetSlave "RESET_SLAVE",
    Revoke "REVOKE", Rollback "ROLLBACK", RollbackSavepoint "ROLLBACK_SAVEPOINT", Savepoint "SAVEPOINT",
    Select "SELECT", SelectForUpdate "SELECT_FOR_UPDATE", Set "SET", Show "SHOW", ShowTableStatus "SHOW_TABLE_STATUS",
    StartTransaction "START_TRANSACTION", TruncateTable "TRUNCATE_TABLE", Unknown "UNKNOWN",
    UnlockTables "UNLOCK_TABLES", Update "UPDATE", Use "USE",
}

impl Kind {
    /// From the first word of a statement, in upper case, and the one after it that says more, in any case.
    pub fn of(first: &[u8], second: &[u8]) -> Self {
        let about = |word: &str| second.eq_ignore_ascii_case(word.as_bytes());
        match first {
            b"SELECT" | b"WITH" | b"TABLE" | b"VALUES" => Self::Select,
            b"INSERT" => Self::Insert,
            b"UPDATE" => Self::Update,
            b"DELETE" => Self::Delete,
            b"BEGIN" => Self::Begin,
            b"COMMIT" => Self::Commit,
            b"SET" => Self::Set,
            b"ROLLBACK" if about("TO") => Self::RollbackSavepoint,
            b"ROLLBACK" => Self::Rollback,
            b"START" if about("TRANSACTION") => Self::StartTransaction,
            b"SHOW" if about("TABLE") => Self::ShowTableStatus,
            b"SHOW" => Self::Show,
            b"USE" => Self::Use,
            b"REPLACE" => Self::Replace,
            b"SAVEPOINT" => Self::Savepoint,
            b"RELEASE" => Self::ReleaseSavepoint,
            b"CREATE" => Self::one_of(&about, &CREATE),
            b"DROP" => Self::one_of(&about, &DROP),
            b"ALTER" => Self::one_of(&about, &[("TABLE", Self::AlterTable), ("VIEW", Self::AlterView)]),
            b"ANALYZE" => Self::AnalyzeTable,
            b"CALL" => Self::CallProcedure,
            b"CHANGE" => Self::ChangeMaster,
            b"DEALLOCATE" => Self::Deallocate,
            b"DESC" | b"DESCRIBE" => Self::Describe,
            b"EXECUTE" => Self::Execute,
            b"EXPLAIN" => Self::Explain,
            b"FLUSH" => Self::Flush,
            b"GRANT" => Self::Grant,
            b"KILL" => Self::Kill,
            b"LOAD" => Self::Load,
            b"LOCK" => Self::LockTable,
            b"OPTIMIZE" => Self::Optimize,
            b"PREPARE" => Self::Prepare,
            b"PURGE" => Self::Purge,
            b"RENAME" => Self::RenameTable,
            b"RESET" => Self::one_of(&about, &[("MASTER", Self::ResetMaster), ("SLAVE", Self::ResetSlave)]),
            b"REVOKE" => Self::Revoke,
            b"TRUNCATE" => Self::TruncateTable,
            b"UNLOCK" => Self::UnlockTables,
            _ => Self::Unknown,
        }
    }
    fn one_of(about: &dyn Fn(&str) -> bool, known: &[(&str, Self)]) -> Self {
        known.iter().find(|(word, _)| about(word)).map_or(Self::Unknown, |(_, kind)| *kind)
    }
}

const CREATE: [(&str, Kind); 8] = [
    ("DATABASE", Kind::CreateDatabase),
    ("SCHEMA", Kind::CreateDatabase),
    ("INDEX", Kind::CreateIndex),
    ("TABLE", Kind::CreateTable),
    ("TEMPORARY", Kind::CreateTemporary),
    ("TRIGGER", Kind::CreateTrigger),
    ("USER", Kind::CreateUser),
    ("VIEW", Kind::CreateView),
];
const DROP: [(&str, Kind); 8] = [
    ("DATABASE", Kind::DropDatabase),
    ("SCHEMA", Kind::DropDatabase),
    ("INDEX", Kind::DropIndex),
    ("TABLE", Kind::DropTable),
    ("TEMPORARY", Kind::DropTable),
    ("TRIGGER", Kind::DropTrigger),
    ("USER", Kind::DropUser),
    ("VIEW", Kind::DropView),
];

/// Whether a word in a CREATE, DROP or ALTER says what that is about.
pub fn is_object(word: &[u8]) -> bool {
    CREATE.iter().any(|(known, _)| known.as_bytes().eq_ignore_ascii_case(word))
}

/// Statements of one kind.
#[derive(Default)]
struct Counter {
    time_us: AtomicU64,
    by_time: [AtomicU64; LIMITS_US.len() + 1],
}

/// Codes of commands are below this.
const CODES: usize = 32;

/// One copy of all counters.
struct Shard {
    kinds: Vec<Counter>,
    commands: [AtomicU64; CODES],
}

impl Default for Shard {
    fn default() -> Self {
        Self { kinds: NAMES.iter().map(|_| Counter::default()).collect(), commands: Default::default() }
    }
}

/// All counters. Who counts gives a number, by which those part who run at once: of its processor, or of its session.
#[derive(Default)]
pub struct Commands([Shard; SHARDS]);

impl Commands {
    /// Counts a statement that took so long.
    pub fn count(&self, number: u32, kind: Kind, time: Duration) {
        let counter = self.shard(number).and_then(|shard| shard.kinds.get(kind as usize));
        let Some(Counter { time_us, by_time }) = counter else { return };
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        time_us.fetch_add(us, Ordering::Relaxed);
        if let Some(count) = by_time.get(LIMITS_US.partition_point(|limit| *limit < us)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
    /// Counts a command that has no text.
    pub fn count_command(&self, number: u32, command: Command) {
        if let Some(count) = self.shard(number).and_then(|shard| shard.commands.get(command as usize)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
    fn shard(&self, number: u32) -> Option<&Shard> {
        self.0.get(number as usize % SHARDS)
    }
    fn sum<'a>(&'a self, of: impl Fn(&'a Shard) -> Option<&'a AtomicU64>) -> u64 {
        let counts = self.0.iter().filter_map(of);
        counts.map(|count| count.load(Ordering::Relaxed)).fold(0, u64::wrapping_add)
    }
    /// How often a command without text has come.
    pub fn of_command(&self, command: Command) -> u64 {
        self.sum(|shard| shard.commands.get(command as usize))
    }
    /// How many statements of a kind were counted.
    pub fn of_kind(&self, kind: Kind) -> u64 {
        self.by_time(kind as usize).iter().sum()
    }
    fn by_time(&self, kind: usize) -> Vec<u64> {
        let places = 0..=LIMITS_US.len();
        places.map(|place| self.sum(|shard| shard.kinds.get(kind)?.by_time.get(place))).collect()
    }
    /// Rows of stats_mysql_commands_counters.
    pub fn rows(&self) -> Vec<Vec<Value>> {
        let number = |n: u64| Value::Int(i64::try_from(n).unwrap_or(i64::MAX));
        let row = |(kind, name): (usize, &&str)| {
            let by_time = self.by_time(kind);
            let time = self.sum(|shard| Some(&shard.kinds.get(kind)?.time_us));
            let mut row = vec![Value::Text((*name).to_owned()), number(time), number(by_time.iter().sum())];
            row.extend(by_time.into_iter().map(number));
            row
        };
        NAMES.iter().enumerate().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quoting::Quoting;
    use crate::session::classify::classify;

    #[test]
    fn statements_are_known_by_their_first_words() {
        for (sql, expected) in [
            ("SELECT 1", "SELECT"),
            ("/* app */ (select a from t) union (select 2)", "SELECT"),
            ("SELECT a FROM t WHERE b = 1 FOR UPDATE", "SELECT_FOR_UPDATE"),
            ("insert into t values (1)", "INSERT"),
            ("INSERT INTO t SELECT a FROM u FOR UPDATE", "INSERT"),
            ("SET @a = 1", "SET"),
            ("START TRANSACTION READ ONLY", "START_TRANSACTION"),
            ("START SLAVE", "UNKNOWN"),
            ("ROLLBACK", "ROLLBACK"),
            ("ROLLBACK TO SAVEPOINT a", "ROLLBACK_SAVEPOINT"),
            ("SHOW TABLES", "SHOW"),
            ("SHOW TABLE STATUS", "SHOW_TABLE_STATUS"),
            ("CREATE TABLE t (a INT)", "CREATE_TABLE"),
            ("CREATE TEMPORARY TABLE t (a INT)", "CREATE_TEMPORARY"),
            ("CREATE UNIQUE INDEX i ON t (a)", "CREATE_INDEX"),
            ("CREATE OR REPLACE DEFINER = 'a'@'b' VIEW v AS SELECT 1", "CREATE_VIEW"),
            ("CREATE SCHEMA a", "CREATE_DATABASE"),
            ("DROP TEMPORARY TABLE t", "DROP_TABLE"),
            ("ALTER TABLE t ADD INDEX (a)", "ALTER_TABLE"),
            ("ALTER EVENT e ENABLE", "UNKNOWN"),
            ("USE a", "USE"),
            ("BEGIN; DELETE FROM t", "BEGIN"),
            ("frobnicate", "UNKNOWN"),
            ("'text'", "UNKNOWN"),
        ] {
            let kind = classify(sql.as_bytes(), Quoting::default()).kind;
            assert_eq!(NAMES.get(kind as usize), Some(&expected), "{sql}");
        }
        assert!(NAMES.is_sorted());
    }

    #[test]
    fn sessions_count_together() {
        let commands = Commands::default();
        for (session, us) in [(1, 100), (2, 101), (9, 20_000_000), (1, 0)] {
            commands.count(session, Kind::Select, Duration::from_micros(us));
        }
        commands.count(1, Kind::None, Duration::ZERO);
        let rows = commands.rows();
        let counted: Vec<_> = rows.iter().filter(|row| row[2] != Value::Int(0)).collect();
        let mut expected = vec![Value::Int(0); 15];
        expected[..5].clone_from_slice(&[
            Value::Text("SELECT".into()),
            Value::Int(20_000_201),
            Value::Int(4),
            Value::Int(2),
            Value::Int(1),
        ]);
        expected[14] = Value::Int(1);
        assert_eq!(counted, [&expected]);
    }
}
