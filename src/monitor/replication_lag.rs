//! The replication lag check, apart from its IO: which statement asks for it, and what an answer means.

use admin::variables::kind::parse_table;
use wire::backend::TextResult;
use wire::version::is_mariadb;

/// How far a server is behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lag {
    /// It is nobody's replica.
    NoReplica,
    /// It does not know: it is a replica that does not replicate.
    Unknown,
    /// By so many seconds.
    Seconds(u32),
}

/// The columns that tell, by whom: MySQL's SHOW REPLICA STATUS, SHOW SLAVE STATUS and MariaDB's, and ours.
const COLUMNS: [&str; 3] = ["Seconds_Behind_Source", "Seconds_Behind_Master", "seconds_behind"];

/// The statement for a server of that version. `heartbeat` is the table that pt-heartbeat writes the source's time to, if it
/// is to tell.
pub fn statement(version: &str, heartbeat: &str) -> String {
    match parse_table(heartbeat) {
        Some((schema, table)) => format!(
            "SELECT MIN(GREATEST(0, ROUND(TIMESTAMPDIFF(MICROSECOND, ts, SYSDATE(6))/1000000))) seconds_behind \
             FROM `{schema}`.`{table}`"
        ),
        None if says_replica(version) => "SHOW REPLICA STATUS".into(),
        None => "SHOW SLAVE STATUS".into(),
    }
}

/// MySQL knows replicas by this name from 8.0.22 on, and by no other from 8.4 on. MariaDB keeps the other.
fn says_replica(version: &str) -> bool {
    let mut numbers =
        version.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().unwrap_or(0));
    let version_number = [0; 3].map(|none| numbers.next().unwrap_or(none));
    !is_mariadb(version) && version_number >= [8, 0, 22]
}

/// What an answer tells. A replica with several sources is as late as the latest of them. An error says what is missing.
pub fn read(answer: &TextResult) -> Result<Lag, String> {
    if answer.rows.is_empty() {
        return Ok(Lag::NoReplica);
    }
    let tells = |name: &String| COLUMNS.iter().any(|column| column.eq_ignore_ascii_case(name));
    let column = answer.columns.iter().position(tells);
    let column = column.ok_or_else(|| format!("the answer has no column {}", COLUMNS.join(" or ")))?;
    let mut latest = 0;
    for row in &answer.rows {
        let Some(text) = row.get(column).and_then(Option::as_deref) else { return Ok(Lag::Unknown) };
        let seconds = str::from_utf8(text).ok().and_then(|text| text.parse::<u32>().ok());
        let shown = || String::from_utf8_lossy(text).chars().take(32).collect::<String>();
        latest = latest.max(seconds.ok_or_else(|| format!("'{}' is no number of seconds", shown()))?);
    }
    Ok(Lag::Seconds(latest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_follow_the_server() {
        for (version, replica) in [
            ("9.7.0", true),
            ("8.4.3-3", true),
            ("8.0.22-log", true),
            ("8.0.21", false),
            ("8.1", true),
            ("5.7.44", false),
            ("10.11.14-MariaDB-0+deb12u2", false),
            ("5.5.5-10.6.22-MariaDB", false),
            ("", false),
        ] {
            let expected = if replica { "SHOW REPLICA STATUS" } else { "SHOW SLAVE STATUS" };
            assert_eq!(statement(version, ""), expected, "{version}");
        }
        let sql = statement("9.7.0", "percona.`heart-beat`");
        assert!(sql.ends_with("FROM `percona`.`heart-beat`"), "{sql}");
    }

    #[test]
    fn answers_are_read() {
        let answer = |column: &str, cells: &[Option<&str>]| TextResult {
            columns: vec!["Source_Host".into(), column.into()],
            rows: cells.iter().map(|cell| vec![None, cell.map(|cell| cell.as_bytes().to_vec())]).collect(),
            ..TextResult::default()
        };
        for (column, cells, expected) in [
            ("Seconds_Behind_Source", &[Some("7")][..], Ok(Lag::Seconds(7))),
            ("seconds_behind_master", &[Some("3"), Some("9"), Some("4")], Ok(Lag::Seconds(9))),
            ("Seconds_Behind_Source", &[Some("3"), None], Ok(Lag::Unknown)),
            ("Seconds_Behind_Source", &[], Ok(Lag::NoReplica)),
            ("other", &[], Ok(Lag::NoReplica)),
            ("other", &[Some("1")], Err(())),
            ("Seconds_Behind_Source", &[Some("-1")], Err(())),
        ] {
            assert_eq!(read(&answer(column, cells)).map_err(drop), expected, "{column} {cells:?}");
        }
        assert_eq!(
            read(&TextResult {
                columns: vec!["seconds_behind".into()],
                rows: vec![vec![]],
                ..TextResult::default()
            }),
            Ok(Lag::Unknown)
        );
    }
}
