//! What ROW_COUNT() and FOUND_ROWS() say of the statement before, for where its connection is not at hand any more, or its answer
//! was our own.

use super::classify::{Count, Statement};
use super::local::Answer;
use super::settle::lost_connection;
use wire::WireError;
use wire::reply::Column;
use wire::tracker::Outcome;

/// Both counts, as the last answer told them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    affected: i64,
    found: u64,
    /// The session has asked for one of them: it keeps its connection for a moment after each statement.
    pub asked: bool,
    /// One statement has asked for LAST_INSERT_ID() as well.
    asked_with_id: bool,
    affected_here: bool,
    found_here: bool,
    /// The last result had SQL_CALC_FOUND_ROWS: its connection alone knows FOUND_ROWS().
    found_there: bool,
    /// The connection in hand has another FOUND_ROWS() than the session: no result has come from there.
    found_elsewhere: bool,
}

/// Largest FOUND_ROWS() that a connection is told.
const MOST_FOUND: u64 = 20;

impl Counts {
    /// Takes note of an answer (MySQL manual, "Information Functions"): ROW_COUNT() is -1 after a result set or an error. To prepare a
    /// statement leaves both. `calculated`: the statement had SQL_CALC_FOUND_ROWS.
    pub fn note(&mut self, outcome: &Outcome, calculated: bool) {
        if outcome.prepared.is_some() {
            return;
        }
        self.affected = match (&outcome.error, outcome.last_result) {
            (None, None) => i64::try_from(outcome.affected_rows).unwrap_or(i64::MAX),
            _ => -1,
        };
        self.affected_here = false;
        if let Some(rows) = outcome.last_result {
            (self.found, self.found_here, self.found_elsewhere) = (rows, false, false);
            self.found_there = calculated;
        }
    }
    /// Takes note of what a statement asks for.
    pub fn note_question(&mut self, statement: &Statement) {
        self.asked |= statement.reads_counts;
        self.asked_with_id |= statement.reads_counts && statement.reads_insert_id;
    }
    /// Whether a connection is to know LAST_INSERT_ID() before the statement runs, since a later one may ask for it together with a count
    /// of this one: to tell an id takes the counts away, and not all counts can be told.
    pub fn needs_id_before(&self, statement: &Statement) -> bool {
        self.asked_with_id && !(statement.reads_counts || statement.reads_diagnostics)
    }
    /// Whether FOUND_ROWS() is yet to be asked for.
    pub fn is_found_there(&self) -> bool {
        self.found_there
    }
    /// FOUND_ROWS() as a server has said.
    pub fn learn_found(&mut self, rows: u64) {
        (self.found, self.found_there) = (rows, false);
    }
    /// Takes note of an answer of our own, of which no connection knows: what ROW_COUNT() is after it, and FOUND_ROWS(), if that is
    /// another than before.
    pub fn note_here(&mut self, affected: i64, found: Option<u64>) {
        (self.affected, self.affected_here) = (affected, true);
        if let Some(rows) = found {
            (self.found, self.found_here, self.found_there) = (rows, true, false);
        }
    }
    /// The session has another connection than the last answer came from. What was left it is told, if it can be.
    pub fn moved(&mut self) {
        let tellable = self.are_tellable();
        (self.affected_here, self.found_here, self.found_elsewhere) = (tellable, tellable, true);
    }
    /// Whether the connection in hand would answer with another session's count.
    pub fn is_elsewhere(&self, count: Count) -> bool {
        count == Count::Found && self.found_elsewhere
    }
    /// Whether a connection can be told both.
    pub fn are_tellable(&self) -> bool {
        self.affected <= 0 && self.found <= MOST_FOUND && !self.found_there
    }
    /// Whether one of them is of an answer of our own.
    pub fn are_here(&self) -> bool {
        self.affected_here || self.found_here
    }
    /// A connection that is told so has the counts that our own last answer has left: ROW_COUNT(), and FOUND_ROWS() if that is another
    /// than the server's last answer has left. `None` where the server has answered since.
    pub fn take_here(&mut self) -> Option<(i64, Option<u64>)> {
        let found = std::mem::take(&mut self.found_here).then_some(self.found);
        std::mem::take(&mut self.affected_here).then_some((self.affected, found))
    }
    /// Answers one of the functions, written as `name`, unless it was lost with its connection.
    pub fn answer(&mut self, count: Count, name: String) -> Answer {
        let value = match count {
            Count::Found if self.found_there => return Answer::Error(lost_connection(&WireError::Closed)),
            Count::Affected => self.affected.to_string(),
            Count::Found => self.found.to_string(),
        };
        self.asked = true;
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
        counts.note(&Outcome { last_result: Some(7), ..Outcome::default() }, false);
        assert_eq!(value(&mut counts.clone(), Count::Found), "7");
        assert_eq!(value(&mut counts.clone(), Count::Affected), "-1");
        counts.note(&Outcome { affected_rows: 3, ..Outcome::default() }, false);
        assert_eq!(value(&mut counts.clone(), Count::Found), "7");
        assert_eq!(value(&mut counts, Count::Affected), "3");
        assert!(counts.asked);
        let error = Some(Box::new(SqlError::new(1, "HY000", "x")));
        counts.note(&Outcome { error, affected_rows: 5, ..Outcome::default() }, false);
        assert_eq!(value(&mut counts, Count::Affected), "-1");
    }

    #[test]
    fn calculated_rows_are_known_when_they_were_asked_for() {
        let mut counts = Counts::default();
        let outcome = Outcome { last_result: Some(2), ..Outcome::default() };
        counts.note(&outcome, true);
        counts.note(&Outcome::default(), false);
        assert!(counts.is_found_there() && !counts.are_tellable());
        assert!(
            matches!(counts.answer(Count::Found, "f()".to_owned()), Answer::Error(error) if error.code == 2013)
        );
        counts.learn_found(9);
        assert_eq!(value(&mut counts.clone(), Count::Found), "9");
        counts.note(&outcome, true);
        counts.note_here(-1, Some(1));
        assert_eq!(value(&mut counts, Count::Found), "1");
    }

    #[test]
    fn what_was_answered_here_a_connection_is_told() {
        let mut counts = Counts::default();
        counts.note(&Outcome { last_result: Some(7), ..Outcome::default() }, false);
        assert_eq!(counts.clone().take_here(), None);
        counts.note_here(0, None);
        assert_eq!(counts.clone().take_here(), Some((0, None)));
        counts.note_here(-1, Some(1));
        assert_eq!(value(&mut counts.clone(), Count::Found), "1");
        // A statement without rows leaves FOUND_ROWS() as it is, and one that is prepared both.
        counts.note(&Outcome { affected_rows: 3, ..Outcome::default() }, false);
        let prepared = wire::tracker::Prepared { id: 1, parameters: 0, columns: 0 };
        counts.note(&Outcome { prepared: Some(prepared), ..Outcome::default() }, false);
        assert_eq!(value(&mut counts.clone(), Count::Affected), "3");
        assert_eq!(counts.clone().take_here(), None);
        counts.note_here(0, None);
        assert_eq!(counts.take_here(), Some((0, Some(1))));
        assert_eq!(counts.take_here(), None);
    }

    #[test]
    fn rows_found_before_a_move_are_not_the_new_connections() {
        let mut counts = Counts::default();
        counts.note(&Outcome { last_result: Some(1), ..Outcome::default() }, false);
        counts.moved();
        counts.note(&Outcome { affected_rows: 3, ..Outcome::default() }, false);
        assert!(counts.is_elsewhere(Count::Found) && !counts.is_elsewhere(Count::Affected));
        counts.note(&Outcome { last_result: Some(2), ..Outcome::default() }, false);
        assert!(!counts.is_elsewhere(Count::Found));
    }

    #[test]
    fn an_id_is_told_early_to_who_has_asked_for_it_beside_a_count() {
        let mut counts = Counts::default();
        let (count, id) = (Statement { reads_counts: true, ..Statement::default() }, Statement::default());
        counts.note_question(&count);
        counts.note_question(&Statement { reads_insert_id: true, ..id.clone() });
        assert!(counts.asked && !counts.needs_id_before(&id));
        counts.note_question(&Statement { reads_insert_id: true, ..count.clone() });
        assert!(counts.needs_id_before(&id) && !counts.needs_id_before(&count));
    }

    #[test]
    fn another_connection_is_told_what_it_can_be() {
        let mut counts = Counts::default();
        counts.note(&Outcome { last_result: Some(7), ..Outcome::default() }, false);
        counts.moved();
        assert_eq!(counts.take_here(), Some((-1, Some(7))));
        for outcome in [
            Outcome { last_result: Some(MOST_FOUND + 1), ..Outcome::default() },
            Outcome { affected_rows: 1, ..Outcome::default() },
        ] {
            counts.note(&outcome, false);
            counts.moved();
            assert_eq!(counts.take_here(), None);
        }
    }
}
