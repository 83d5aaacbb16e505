//! What ROW_COUNT() and FOUND_ROWS() say of the statement before, for where its connection is not at hand any more.

use super::classify::Count;
use super::local::Answer;
use wire::reply::Column;
use wire::tracker::Outcome;

/// Both counts, as the last answer told them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    affected: i64,
    found: u64,
    /// The session has asked for one of them: it keeps its connection for a moment after each statement.
    pub asked: bool,
}

impl Counts {
    /// Takes note of an answer (MySQL manual, "Information Functions"): ROW_COUNT() is -1 after a result set or an error.
    pub fn note(&mut self, outcome: &Outcome) {
        self.affected = match (&outcome.error, outcome.last_result) {
            (None, None) => i64::try_from(outcome.affected_rows).unwrap_or(i64::MAX),
            _ => -1,
        };
        self.found = outcome.last_result.unwrap_or(self.found);
    }
    /// Answers one of the functions, written as `name`. As a statement of its own it counts for the other.
    pub fn answer(&mut self, count: Count, name: String) -> Answer {
        let value = match count {
            Count::Affected => self.affected.to_string(),
            Count::Found => self.found.to_string(),
        };
        (self.affected, self.found, self.asked) = (-1, 1, true);
        Answer::Row(Column::function(name), value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::SqlError;

    fn value(counts: &mut Counts, count: Count) -> String {
        match counts.answer(count, "f()".to_owned()) {
            Answer::Row(_, value) => value,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn counts_follow_the_answers() {
        let mut counts = Counts::default();
        counts.note(&Outcome { last_result: Some(7), ..Outcome::default() });
        assert_eq!(value(&mut counts.clone(), Count::Found), "7");
        assert_eq!(value(&mut counts.clone(), Count::Affected), "-1");
        counts.note(&Outcome { affected_rows: 3, ..Outcome::default() });
        assert_eq!(value(&mut counts.clone(), Count::Found), "7");
        assert_eq!(value(&mut counts, Count::Affected), "3");
        assert!(counts.asked);
        assert_eq!(
            (value(&mut counts, Count::Affected), value(&mut counts, Count::Found)),
            ("-1".into(), "1".into())
        );
        let error = Some(SqlError::new(1, "HY000", "x"));
        counts.note(&Outcome { error, affected_rows: 5, ..Outcome::default() });
        assert_eq!(value(&mut counts, Count::Affected), "-1");
    }
}
