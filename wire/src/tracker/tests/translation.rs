//! Answers as MySQL 9.7 and MariaDB 10.11 send them, and what clients of other capabilities must see.

use super::super::*;
use super::{framed, relay_in_pieces};
use crate::CapabilityFlags;
use crate::packet::{MAX_PAYLOAD, put_lenenc_bytes};
use Command::*;

pub(super) const NONE: CapabilityFlags = CapabilityFlags::empty();
pub(super) const DEPRECATES: CapabilityFlags = CapabilityFlags::CLIENT_DEPRECATE_EOF;
pub(super) const TRACKS: CapabilityFlags = CapabilityFlags::CLIENT_SESSION_TRACK;
pub(super) const BOTH: CapabilityFlags = DEPRECATES.union(TRACKS);
/// One column, a: as MySQL defines it, without names of schema and table.
pub(super) const COLUMN: &[u8] = b"\x03def\0\0\0\x01a\x01a\x0c?\0\x0b\0\0\0\x03\0\0\0\0\0";

pub(super) fn sides(server: CapabilityFlags, client: CapabilityFlags) -> Sides<'static> {
    Sides { server, client, ..Sides::same(NONE) }
}
fn stream(packets: &[&[u8]]) -> Vec<u8> {
    framed(&packets.iter().map(|packet| packet.to_vec()).collect::<Vec<_>>())
}
/// Demands that the answer `from` becomes `to`, in one piece and in pieces of all small sizes; returns what it said.
#[track_caller]
fn becomes(command: Command, sides: Sides<'_>, from: &[&[u8]], to: &[&[u8]]) -> Outcome {
    let (from, to) = (stream(from), stream(to));
    let (sent, said) = relay_in_pieces(command, sides, &from, &[from.len()]);
    assert_eq!(sent.escape_ascii().to_string(), to.escape_ascii().to_string());
    for piece in 1..=12 {
        let (sent, said_in_pieces) = relay_in_pieces(command, sides, &from, &[piece]);
        assert_eq!(sent, to, "in pieces of {piece}");
        assert_eq!(said_in_pieces, said, "in pieces of {piece}");
    }
    said
}

#[test]
fn result_sets_get_and_lose_their_eof() {
    let modern: &[&[u8]] = &[b"\x01", COLUMN, b"\x017", b"\xfe\0\0\x0a\0\0\0", b"\0\x01\0\x02\0\0\0"];
    let classic: &[&[u8]] =
        &[b"\x01", COLUMN, b"\xfe\0\0\x02\0", b"\x017", b"\xfe\0\0\x0a\0", b"\0\x01\0\x02\0\0\0"];
    let said = becomes(COM_QUERY, sides(DEPRECATES, NONE), modern, classic);
    assert_eq!((said.rows, said.affected_rows, said.last_result), (1, 1, None));
    assert_eq!(becomes(COM_QUERY, sides(NONE, DEPRECATES), classic, modern), said);
    assert_eq!(becomes(COM_QUERY, sides(NONE, NONE), classic, classic), said);
}

#[test]
fn an_eof_before_rows_has_the_status_of_before_unless_the_end_is_known_with_them() {
    // The end tells of a transaction that was not there before.
    let (row, end): (&[u8], &[u8]) = (b"\0\0\x07\0\0\0", b"\xfe\0\0\x03\0\0\0");
    for (command, rows, status) in [
        (COM_QUERY, 0, b"\x03"),
        (COM_QUERY, 1, b"\x02"),
        (COM_STMT_EXECUTE, 0, b"\x03"),
        (COM_STMT_EXECUTE, 1, b"\x03"),
        (COM_STMT_EXECUTE, 2, b"\x02"),
    ] {
        let before = [b"\xfe\0\0", &status[..], b"\0"].concat();
        let rows = vec![if command == COM_QUERY { b"\x017" } else { row }; rows];
        let modern = [&[b"\x01", COLUMN], &rows[..], &[end]].concat();
        let classic = [&[b"\x01", COLUMN, &before], &rows[..], &[b"\xfe\0\0\x03\0"]].concat();
        becomes(command, sides(DEPRECATES, NONE), &modern, &classic);
    }
}

#[test]
fn an_eof_before_rows_promises_what_is_to_come() {
    let ended: &[u8] = b"\xfe\0\0\x0a\0\0\0";
    let modern: &[&[u8]] =
        &[b"\x01", COLUMN, b"\x017", ended, b"\x01", COLUMN, b"\x018", b"\xfe\0\0\x02\0\0\0"];
    let classic = |before_the_last: &'static [u8]| -> Vec<&[u8]> {
        let first: [&[u8]; 5] = [b"\x01", COLUMN, b"\xfe\0\0\x0a\0", b"\x017", b"\xfe\0\0\x0a\0"];
        let last: [&[u8]; 5] = [b"\x01", COLUMN, before_the_last, b"\x018", b"\xfe\0\0\x02\0"];
        [first, last].concat()
    };
    let answers = |answers| Sides { answers, ..sides(DEPRECATES, NONE) };
    becomes(COM_QUERY, answers(2), modern, &classic(b"\xfe\0\0\x02\0"));
    becomes(COM_QUERY, answers(usize::MAX), modern, &classic(b"\xfe\0\0\x0a\0"));
}

#[test]
fn an_empty_result_has_the_status_of_its_end_twice() {
    let modern: &[&[u8]] = &[b"\x01", COLUMN, b"\xfe\0\0\x22\0\x03\0"];
    let classic: &[&[u8]] = &[b"\x01", COLUMN, b"\xfe\0\0\x22\0", b"\xfe\x03\0\x22\0"];
    becomes(COM_QUERY, sides(DEPRECATES, NONE), modern, classic);
}

#[test]
fn an_eof_that_claims_session_data_has_none() {
    // SELECT with autocommit=0 on MariaDB.
    let classic: &[&[u8]] = &[b"\x01", COLUMN, b"\xfe\0\0\x21\x40", b"\x012", b"\xfe\0\0\x21\x40"];
    let modern: &[&[u8]] = &[b"\x01", COLUMN, b"\x012", b"\xfe\0\0\x21\0\0\0"];
    becomes(COM_QUERY, sides(TRACKS, BOTH), classic, modern);
    let nothing = Notices::new("", "0", "0", "OFF");
    let hidden: &[&[u8]] = &[b"\x01", COLUMN, b"\xfe\0\0\x21\x40", b"\x012", b"\xfe\0\0\x21\0"];
    becomes(COM_QUERY, Sides { notices: Some(&nothing), ..sides(TRACKS, TRACKS) }, classic, hidden);
}

#[test]
fn an_error_comes_where_rows_are_expected() {
    let error: &[u8] = b"\xff\xda\x04#21000Subquery returns more than 1 row";
    let modern: &[&[u8]] = &[b"\x01", COLUMN, error];
    let classic: &[&[u8]] = &[b"\x01", COLUMN, b"\xfe\0\0\x02\0", error];
    assert_eq!(becomes(COM_QUERY, sides(DEPRECATES, NONE), modern, classic).error.unwrap().code, 1242);
    becomes(COM_QUERY, sides(NONE, DEPRECATES), classic, modern);
    becomes(COM_QUERY, sides(DEPRECATES, NONE), &[error], &[error]);
}

#[test]
fn prepared_statements_have_an_eof_after_each_list() {
    let parameter: &[u8] = b"\x03def\0\0\0\x01?\0\x0c?\0\x15\0\0\0\x08\x80\0\0\0\0";
    let eof: &[u8] = b"\xfe\0\0\x02\0";
    for (columns, parameters) in [(0, 0), (1, 0), (0, 2), (2, 1)] {
        let (mut modern, mut classic) = (Vec::new(), Vec::new());
        for (count, definition) in [(parameters, parameter), (columns, COLUMN)] {
            for packets in [&mut modern, &mut classic] {
                packets.extend(std::iter::repeat_n(definition, count));
            }
            classic.extend((count > 0).then_some(eof));
        }
        let (columns, parameters) = (columns as u8, parameters as u8);
        let [theirs, ours] = [1, 0x2A].map(|id| [0, id, 0, 0, 0, columns, 0, parameters, 0, 0, 0, 0]);
        let [mut sent, mut expected] = [vec![&theirs[..]], vec![&ours[..]]];
        sent.extend_from_slice(&modern);
        expected.extend_from_slice(&classic);
        let renumbered = Sides { statement: Some(0x2A), ..sides(BOTH, NONE) };
        let said = becomes(COM_STMT_PREPARE, renumbered, &sent, &expected);
        assert_eq!(
            said.prepared,
            Some(Prepared { id: 1, parameters: parameters.into(), columns: columns.into() })
        );
        becomes(COM_STMT_PREPARE, Sides { statement: Some(1), ..sides(NONE, BOTH) }, &expected, &sent);
    }
}

#[test]
fn a_cursor_leaves_one_eof_and_fetch_another() {
    let modern: &[&[u8]] = &[b"\x01", COLUMN, b"\xfe\0\0\x62\0\0\0"];
    let classic: &[&[u8]] = &[b"\x01", COLUMN, b"\xfe\0\0\x62\0"];
    becomes(COM_STMT_EXECUTE, sides(DEPRECATES, NONE), modern, classic);
    becomes(COM_STMT_EXECUTE, sides(NONE, DEPRECATES), classic, modern);
    let modern: &[&[u8]] = &[b"\0\0\x01\0\0\0", b"\0\0\x02\0\0\0", b"\xfe\0\0\x82\0\0\0"];
    let classic: &[&[u8]] = &[b"\0\0\x01\0\0\0", b"\0\0\x02\0\0\0", b"\xfe\0\0\x82\0"];
    assert_eq!(becomes(COM_STMT_FETCH, sides(DEPRECATES, NONE), modern, classic).rows, 2);
    becomes(COM_STMT_FETCH, sides(NONE, DEPRECATES), classic, modern);
}

#[test]
fn out_parameters_are_told_before_their_row() {
    // CALL of a procedure with a SELECT and an OUT parameter; MySQL's last EOF of the parameters promises nothing.
    let modern: &[&[u8]] = &[
        b"\x01",
        COLUMN,
        b"\0\0\x07\0\0\0",
        b"\xfe\0\0\x0a\0\0\0",
        b"\x01",
        COLUMN,
        b"\0\0\x05\0\0\0",
        b"\xfe\0\0\x0a\x10\0\0",
        b"\0\0\0\x02\0\0\0",
    ];
    let classic = |last: &'static [u8]| -> Vec<&[u8]> {
        vec![
            b"\x01",
            COLUMN,
            b"\xfe\0\0\x0a\0",
            b"\0\0\x07\0\0\0",
            b"\xfe\0\0\x0a\0",
            b"\x01",
            COLUMN,
            b"\xfe\0\0\x0a\x10",
            b"\0\0\x05\0\0\0",
            last,
            b"\0\0\0\x02\0\0\0",
        ]
    };
    let said = becomes(COM_STMT_EXECUTE, sides(DEPRECATES, NONE), modern, &classic(b"\xfe\0\0\x0a\x10"));
    assert_eq!((said.rows, said.last_result), (2, None));
    becomes(COM_STMT_EXECUTE, sides(NONE, DEPRECATES), &classic(b"\xfe\0\0\x02\0"), modern);
    becomes(COM_STMT_EXECUTE, sides(NONE, DEPRECATES), &classic(b"\xfe\0\0\x0a\x10"), modern);
}

#[test]
fn lone_endings_change_their_form() {
    for command in [COM_SET_OPTION, COM_DEBUG] {
        becomes(command, sides(DEPRECATES, NONE), &[b"\xfe\0\0\x02\0\x01\0"], &[b"\xfe\x01\0\x02\0"]);
        becomes(command, sides(NONE, DEPRECATES), &[b"\xfe\x01\0\x02\0"], &[b"\xfe\0\0\x02\0\x01\0"]);
    }
    let modern: &[&[u8]] = &[COLUMN, COLUMN, b"\xfe\0\0\x02\0\0\0"];
    becomes(COM_FIELD_LIST, sides(DEPRECATES, NONE), modern, &[COLUMN, COLUMN, b"\xfe\0\0\x02\0"]);
    let text: &[u8] = b"Uptime: 982  Threads: 2";
    becomes(COM_STATISTICS, sides(BOTH, NONE), &[text], &[text]);
}

/// SET sql_mode='', time_zone='+01:00' with everything tracked, on MySQL and on MariaDB.
pub(super) const SET: [&[u8]; 2] = [
    b"\0\0\0\x02@\0\0\x004\0\n\x08sql_mode\0\0\x10\x0cstatement_id\x0222\0\x11\ttime_zone\x06+01:00\x02\x011",
    b"\0\0\0\x02@\0\0\0\"\0\n\x08sql_mode\0\0\x11\ttime_zone\x06+01:00\x02\x011",
];

#[test]
fn a_client_is_told_of_what_it_would_be_told() {
    let usual = Notices::new("time_zone,autocommit,character_set_client", "1", "0", "OFF");
    let nothing = Notices::new("", "0", "0", "OFF");
    for set in SET {
        let filtered = |notices| Sides { notices: Some(notices), ..Sides::same(BOTH) };
        let to: &[u8] = b"\0\0\0\x02@\0\0\0\x13\0\x11\ttime_zone\x06+01:00";
        let said = becomes(COM_QUERY, filtered(&usual), &[set], &[to]);
        let variables = [("sql_mode", ""), ("time_zone", "+01:00")];
        assert_eq!(
            said.changes.variables,
            variables.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        assert!(said.changes.state_changed);
        becomes(COM_QUERY, filtered(&nothing), &[set], &[b"\0\0\0\x02\0\0\0"]);
        becomes(COM_QUERY, sides(BOTH, DEPRECATES), &[set], &[b"\0\0\0\x02\0\0\0"]);
        assert_eq!(becomes(COM_QUERY, Sides::same(BOTH), &[set], &[set]), said);
    }
}

#[test]
fn an_ok_that_claims_session_data_and_has_none_claims_none() {
    let quiet: &[u8] = b"\0\0\0\x02\0\0\0";
    let nothing = Notices::new("", "0", "0", "OFF");
    for tail in [&b""[..], b"\0", b"\0\0"] {
        let claiming = [b"\0\0\0\x02\x40\0\0", tail].concat();
        for notices in [None, Some(&nothing)] {
            for client in [TRACKS, BOTH] {
                let sides = Sides { notices, ..sides(BOTH, client) };
                let said = becomes(COM_QUERY, sides, &[&claiming], &[quiet]);
                assert_eq!(said.changes, SessionChanges::default());
            }
        }
    }
    // A server that cannot track has no data where the flag is.
    becomes(COM_QUERY, sides(DEPRECATES, BOTH), &[b"\0\0\0\x02\x40\0\0"], &[quiet]);
    becomes(COM_QUERY, sides(DEPRECATES, BOTH), &[b"\0\0\0\x02\x40\0\0\x02hi"], &[b"\0\0\0\x02\0\0\0\x02hi"]);
}

#[test]
fn texts_stay_where_session_data_go() {
    let nothing = Notices::new("", "0", "0", "OFF");
    let from: &[u8] =
        b"\0\x02\x01\x02@\0\0&Records: 2  Duplicates: 0  Warnings: 0\x12\0\x10\x0cstatement_id\x0226";
    let to: &[u8] = b"\0\x02\x01\x02\0\0\0&Records: 2  Duplicates: 0  Warnings: 0";
    let said = becomes(COM_QUERY, Sides { notices: Some(&nothing), ..Sides::same(BOTH) }, &[from], &[to]);
    assert_eq!((said.affected_rows, said.last_insert_id), (2, 1));
    becomes(COM_QUERY, sides(BOTH, NONE), &[from], &[to]);
    becomes(COM_QUERY, sides(NONE, BOTH), &[to], &[to]);
    // A server that takes the manual at its word.
    becomes(
        COM_QUERY,
        sides(NONE, BOTH),
        &[b"\0\x02\x01\x02\0\0\0Records: 2"],
        &[b"\0\x02\x01\x02\0\0\0\x0aRecords: 2"],
    );
}

#[test]
fn session_data_at_the_end_of_rows_go_with_the_ok() {
    let from: &[&[u8]] = &[
        b"\x01",
        COLUMN,
        b"\x012",
        b"\xfe\0\0\x01@\0\0\0\x1d\0\x10\x0cstatement_id\x0231\x05\t\x08I_R___S_",
    ];
    let usual = Notices::new("autocommit", "1", "0", "STATE");
    let filtered = Sides { notices: Some(&usual), ..Sides::same(BOTH) };
    let to: &[&[u8]] = &[b"\x01", COLUMN, b"\x012", b"\xfe\0\0\x01@\0\0\0\x0b\x05\t\x08I_R___S_"];
    let said = becomes(COM_QUERY, filtered, from, to);
    assert_eq!(said.changes.transaction_state.as_deref(), Some("I_R___S_"));
    // MariaDB flags the EOF, MySQL does not, and there is no flag where the client is told nothing.
    let nothing = Notices::new("", "0", "0", "OFF");
    for (notices, flags) in [(&usual, b'@'), (&usual.clone().of_mysql(), 0), (&nothing, 0)] {
        let end = [0xfe, 0, 0, 1, flags];
        let classic: &[&[u8]] = &[b"\x01", COLUMN, b"\xfe\0\0\x02\0", b"\x012", &end];
        becomes(COM_QUERY, Sides { notices: Some(notices), ..sides(BOTH, TRACKS) }, from, classic);
    }
}

#[test]
fn mysql_tells_of_transactions_that_a_statement_begins() {
    let mut off = Notices::new("", "0", "0", "OFF").of_mysql();
    let begin: &[u8] = b"\0\0\0\x0b@\0\0\0 \x05\t\x08T_______\x04\x13\x12START TRANSACTION;";
    let told: &[u8] = b"\0\0\0\x0b@\0\0\0\x0b\x05\t\x08T_______";
    let write: &[u8] = b"\0\x01\0\x0b@\0\0\0\x0b\x05\t\x08T___W___";
    let untold: &[u8] = b"\0\x01\0\x0b\0\0\0";
    let end: &[u8] = b"\0\0\0\x02@\0\0\0\x0b\x05\t\x08________";
    let plain: &[u8] = b"\0\0\0\x02\0\0\0";
    fn of(notices: &Notices) -> Sides<'_> {
        Sides { notices: Some(notices), ..Sides::same(BOTH) }
    }
    becomes(COM_QUERY, of(&off), &[begin, write, end], &[told, untold, end]);
    // COMMIT of a transaction that began by itself, and of one that an earlier answer told of.
    becomes(COM_QUERY, of(&off), &[end], &[plain]);
    let alone: &[u8] = b"\0\0\0\x03@\0\0\0\x0b\x05\t\x08T_______";
    let said = becomes(COM_QUERY, of(&off), &[alone], &[alone]);
    off.follow(&said.changes);
    becomes(COM_QUERY, of(&off), &[end], &[end]);
    // COMMIT AND CHAIN in that transaction, which has written or has not: a change without data.
    let chained: &[u8] = b"\0\0\0\x03@\0\0\0 \x05\t\x08T_______\x04\x13\x12START TRANSACTION;";
    let empty: &[u8] = b"\0\0\0\x03@\0\0\0\0";
    becomes(COM_QUERY, of(&off), &[chained], &[empty]);
    let untouched: &[u8] = b"\0\0\0\x03@\0\0\0\x15\x04\x13\x12START TRANSACTION;";
    becomes(COM_QUERY, of(&off), &[untouched], &[empty]);
}

#[test]
fn unknown_entries_pass_and_wrong_ones_are_refused() {
    let from: &[u8] = b"\0\0\0\x02@\0\0\0\x0b\x2a\x03abc\x01\x04\x03app";
    let nothing = Notices::new("", "0", "0", "OFF");
    let filtered = Sides { notices: Some(&nothing), ..Sides::same(BOTH) };
    let said = becomes(COM_INIT_DB, filtered, &[from], &[b"\0\0\0\x02@\0\0\0\x05\x2a\x03abc"]);
    assert_eq!(said.changes.schema.as_deref(), Some("app"));
    for wrong in [&b"\0\0\0\x02@\0\0\0\x0b\x01\x04\x03app"[..], b"\0\0\0\x02@\0\0\0\x06\x01\x04\x09app"] {
        let mut tracker = ResponseTracker::new(COM_QUERY, filtered);
        assert!(tracker.feed(&mut stream(&[wrong]), &mut Vec::new()).is_err(), "{wrong:?}");
    }
}

#[test]
fn packets_of_more_than_16_mib_are_renumbered_part_by_part() {
    let mut row = Vec::new();
    put_lenenc_bytes(&mut row, &vec![b'x'; 2 * MAX_PAYLOAD]);
    let modern: &[&[u8]] = &[b"\x01", COLUMN, &row, &row, b"\xfe\0\0\x02\0\0\0"];
    let classic: &[&[u8]] = &[b"\x01", COLUMN, b"\xfe\0\0\x02\0", &row, &row, b"\xfe\0\0\x02\0"];
    for (sides, from, to) in
        [(sides(DEPRECATES, NONE), modern, classic), (sides(NONE, DEPRECATES), classic, modern)]
    {
        let (from, to) = (stream(from), stream(to));
        for cut in [from.len(), 99_991, MAX_PAYLOAD + 3] {
            let (sent, said) = relay_in_pieces(COM_QUERY, sides, &from, &[cut]);
            assert!(sent == to, "in pieces of {cut}");
            assert_eq!(said.rows, 2);
        }
    }
}

#[test]
fn a_file_comes_amid_an_answer_that_is_renumbered() {
    let mut tracker = ResponseTracker::new(COM_QUERY, sides(DEPRECATES, CapabilityFlags::CLIENT_LOCAL_FILES));
    let mut out = Vec::new();
    let from: &[&[u8]] = &[b"\x01", COLUMN, b"\x011", b"\xfe\0\0\x0a\0\0\0", b"\xfbx"];
    let to: &[&[u8]] = &[b"\x01", COLUMN, b"\xfe\0\0\x02\0", b"\x011", b"\xfe\0\0\x0a\0", b"\xfbx"];
    let mut from = stream(from);
    let fed = tracker.feed(&mut from, &mut out).unwrap();
    assert_eq!(fed, Fed { progress: Progress::FileWanted(from.len()), rewritten: true });
    assert_eq!((out, tracker.shift(), tracker.next_number()), (stream(to), 1, 7));
    // The client's data were packets 7 and 8, for the server 6 and 7.
    let mut end = b"\x07\0\0\x08\0\x01\0\x02\0\0\0".to_vec();
    let fed = tracker.feed(&mut end, &mut Vec::new()).unwrap();
    assert_eq!(fed, Fed { progress: Progress::Done(end.len()), rewritten: false });
    assert_eq!(end.get(3), Some(&9));
}

#[test]
fn an_error_can_take_the_place_of_any_packet_but_a_definition() {
    let modern: &[&[u8]] = &[b"\x01", COLUMN, b"\x017", b"\x018", b"\xfe\0\0\x02\0\0\0"];
    let classic: &[&[u8]] = &[b"\x01", COLUMN, b"\xfe\0\0\x02\0", b"\x017", b"\x018", b"\xfe\0\0\x02\0"];
    for (server, from) in [(DEPRECATES, modern), (NONE, classic)] {
        for (client, to) in [(DEPRECATES, modern), (NONE, classic)] {
            let definitions = stream(&from[..from.len() - 3]).len();
            let (from, expected) = (stream(from), stream(to));
            for cut in 0..from.len() {
                let mut tracker = ResponseTracker::new(COM_QUERY, sides(server, client));
                let (mut bytes, mut sent) = (from[..cut].to_vec(), Vec::new());
                if !tracker.feed(&mut bytes, &mut sent).unwrap().rewritten {
                    sent = bytes;
                }
                let number = tracker.break_off(&mut sent);
                assert!(expected.starts_with(&sent), "{cut}");
                let whole = (0..=to.len()).find(|count| stream(&to[..*count]) == sent);
                let possible = whole.filter(|count| *count == 0 || cut >= definitions);
                assert_eq!(number.map(usize::from), possible.map(|count| count + 1), "{cut} of {from:?}");
            }
        }
    }
}

#[test]
fn what_is_good_of_a_broken_answer_passes() {
    let mut bytes = [stream(&[b"\x01", COLUMN, b"\x017"]), b"\x02\0\0\x0C\x018".to_vec()].concat();
    let good = bytes.len() - 6;
    let mut tracker = ResponseTracker::new(COM_QUERY, sides(DEPRECATES, DEPRECATES));
    let broken = tracker.feed(&mut bytes, &mut Vec::new()).unwrap_err();
    assert_eq!((broken.used, broken.rewritten), (good, false));
    assert_eq!(tracker.break_off(&mut Vec::new()), Some(4));
}

#[test]
fn rows_may_begin_with_other_numbers_for_the_client() {
    let numbers = [(7, 1_000_000), (12, 3)];
    // The text of a statement may be long.
    for (client, length) in [(NONE, 300), (DEPRECATES, 300), (NONE, 100_000)] {
        let text = vec![b'x'; length];
        let row = |id: &[u8]| {
            let mut row = Vec::new();
            put_lenenc_bytes(&mut row, id);
            put_lenenc_bytes(&mut row, &text);
            row
        };
        let sides = Sides { numbers: &numbers, ..sides(DEPRECATES, client) };
        let (first, other, last) = (row(b"12"), row(b"8"), row(b"7"));
        let (first_told, last_told) = (row(b"3"), row(b"1000000"));
        let end: &[u8] = b"\xfe\0\0\x02\0\0\0";
        let from: &[&[u8]] = &[b"\x02", COLUMN, COLUMN, &first, &other, &last, b"\xfb\xfb", end];
        let to: &[&[u8]] = match client == NONE {
            true => &[
                b"\x02",
                COLUMN,
                COLUMN,
                b"\xfe\0\0\x02\0",
                &first_told,
                &other,
                &last_told,
                b"\xfb\xfb",
                b"\xfe\0\0\x02\0",
            ],
            false => &[b"\x02", COLUMN, COLUMN, &first_told, &other, &last_told, b"\xfb\xfb", end],
        };
        let said = becomes(COM_QUERY, sides, from, to);
        assert_eq!(said.rows, 4);
    }
}
