mod properties;
mod translation;

use super::*;
use crate::packet::{MAX_PAYLOAD, put_framed, put_lenenc_bytes};
use crate::{CapabilityFlags, SqlError, StatusFlags};
use proptest::prelude::*;

const EOF_MODE: CapabilityFlags = CapabilityFlags::empty();
const OK_MODE: CapabilityFlags = CapabilityFlags::CLIENT_DEPRECATE_EOF;
const AUTOCOMMIT: u16 = 2;
const MORE: u16 = 8;
const CURSOR: u16 = 64;

fn framed(payloads: &[Vec<u8>]) -> Vec<u8> {
    let (mut stream, mut sequence) = (Vec::new(), 1);
    for payload in payloads {
        put_framed(&mut stream, &mut sequence, payload);
    }
    stream
}
fn ok(first: u8, status: u16) -> Vec<u8> {
    let [low, high] = status.to_le_bytes();
    vec![first, 0, 0, low, high, 0, 0]
}
fn eof(status: u16) -> Vec<u8> {
    let [low, high] = status.to_le_bytes();
    vec![0xFE, 0, 0, low, high]
}
fn err() -> Vec<u8> {
    SqlError::new(1064, "42000", "no").to_payload()
}
fn definition() -> Vec<u8> {
    b"\x03def\0\0\0\x01a\x01a\x0C\x2D\0\xFF\xFF\0\0\xFD\0\0\x1F\0\0".to_vec()
}
fn end(capabilities: CapabilityFlags, status: u16) -> Vec<u8> {
    if capabilities == OK_MODE { ok(0xFE, status) } else { eof(status) }
}
fn result_set(capabilities: CapabilityFlags, columns: u8, rows: &[Vec<u8>], status: u16) -> Vec<Vec<u8>> {
    let mut packets = vec![vec![columns]];
    packets.extend((0..columns).map(|_| definition()));
    if capabilities == EOF_MODE {
        packets.push(eof(AUTOCOMMIT));
    }
    packets.extend_from_slice(rows);
    packets.push(end(capabilities, status));
    packets
}
fn text_row(value: &[u8]) -> Vec<u8> {
    let mut row = Vec::new();
    put_lenenc_bytes(&mut row, value);
    row
}

/// Feeds a stream in pieces of the lengths `cuts`, repeated; returns what goes to the client and what was said. Demands that
/// the answer ends where the stream does.
fn relay_in_pieces(command: Command, sides: Sides<'_>, stream: &[u8], cuts: &[usize]) -> (Vec<u8>, Outcome) {
    let mut tracker = ResponseTracker::new(command, sides);
    let (mut rest, mut cuts, mut sent) = (stream, cuts.iter().cycle(), Vec::new());
    loop {
        let (chunk, tail) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
        rest = tail;
        let (mut chunk, mut out) = (chunk.to_vec(), Vec::new());
        let fed = tracker.feed(&mut chunk, &mut out).unwrap();
        sent.extend_from_slice(if fed.rewritten { &out } else { &chunk });
        match fed.progress {
            Progress::More => assert!(!rest.is_empty(), "the answer does not end"),
            Progress::Done(used) => {
                assert_eq!((used, rest.len()), (chunk.len(), 0), "the answer ends too early");
                return (sent, tracker.into_outcome());
            }
            Progress::FileWanted(_) => panic!("no file was asked for"),
        }
    }
}

/// Feeds an answer whole and demands that it passes as it is and ends where its last packet does, even with other bytes behind
/// it.
fn outcome(command: Command, capabilities: CapabilityFlags, packets: &[Vec<u8>]) -> Outcome {
    let mut stream = framed(packets);
    let length = stream.len();
    stream.extend_from_slice(b"\x01\0\0\x01\0");
    let before = stream.clone();
    let mut out = Vec::new();
    let mut tracker = ResponseTracker::new(command, Sides::same(capabilities));
    let fed = tracker.feed(&mut stream, &mut out).unwrap();
    assert_eq!(fed, Fed { progress: Progress::Done(length), rewritten: false });
    assert!(stream == before && out.is_empty());
    tracker.into_outcome()
}
/// What becomes of one chunk that everything is in.
fn feed(tracker: &mut ResponseTracker<'_>, bytes: &[u8]) -> Result<Progress, WireError> {
    let fed = tracker.feed(&mut bytes.to_vec(), &mut Vec::new());
    fed.map(|fed| fed.progress).map_err(|broken| broken.error)
}
fn flags(status: u16) -> Option<StatusFlags> {
    Some(StatusFlags::from_bits_retain(status))
}

#[test]
fn an_error_numbered_0_answers_nothing_in_any_chunking() {
    let goodbye = b"\x0D\0\0\0\xFF\xBF\x0F#HY000idle";
    for cut in 1..goodbye.len() {
        let (front, back) = goodbye.split_at(cut);
        let mut tracker = ResponseTracker::new(Command::COM_QUERY, Sides::same(OK_MODE));
        let said = feed(&mut tracker, front).and_then(|_| feed(&mut tracker, back));
        assert!(matches!(said, Err(WireError::Closed)), "{cut}");
    }
}

#[test]
fn an_end_among_definitions_is_refused() {
    let mut tracker = ResponseTracker::new(Command::COM_QUERY, Sides::same(OK_MODE));
    let answer = b"\x01\0\0\x01\x02\x05\0\0\x02\x03defx\x07\0\0\x03\xFE\0\0\x02\0\0\0";
    assert!(feed(&mut tracker, answer).is_err());
}

#[test]
fn ok_and_err_end_every_simple_command() {
    use Command::*;
    for command in [
        COM_QUERY,
        COM_INIT_DB,
        COM_PING,
        COM_RESET_CONNECTION,
        COM_STMT_EXECUTE,
        COM_STMT_RESET,
        COM_SET_OPTION,
    ] {
        let said = outcome(command, OK_MODE, &[ok(0, AUTOCOMMIT)]);
        assert_eq!(said, Outcome { status: flags(AUTOCOMMIT), ..Outcome::default() }, "{command:?}");
        let said = outcome(command, EOF_MODE, &[err()]);
        assert_eq!(said.error.as_deref(), Some(&SqlError::new(1064, "42000", "no")), "{command:?}");
    }
    assert_eq!(outcome(COM_SET_OPTION, EOF_MODE, &[eof(AUTOCOMMIT)]).status, flags(AUTOCOMMIT));
    assert_eq!(outcome(COM_SET_OPTION, OK_MODE, &[ok(0xFE, AUTOCOMMIT)]).status, flags(AUTOCOMMIT));
    outcome(COM_STATISTICS, OK_MODE, &[b"Uptime: 1".to_vec()]);
}

#[test]
fn an_ok_says_id_and_warnings() {
    let said = outcome(Command::COM_QUERY, OK_MODE, &[vec![0, 1, 42, 2, 0, 3, 0]]);
    assert_eq!((said.affected_rows, said.last_insert_id, said.warnings), (1, 42, 3));
    let later = outcome(Command::COM_QUERY, OK_MODE, &[vec![0, 1, 42, 10, 0, 0, 0], ok(0, AUTOCOMMIT)]);
    assert_eq!((later.affected_rows, later.last_insert_id), (0, 42));
}

#[test]
fn a_file_is_asked_for_amid_an_answer() {
    let asked = framed(&[b"\xFB/tmp/file".to_vec()]);
    let mut guarded = ResponseTracker::new(Command::COM_QUERY, Sides::same(OK_MODE));
    assert!(feed(&mut guarded, &asked).is_err(), "the client offers no files");
    let offering = Sides::same(OK_MODE | CapabilityFlags::CLIENT_LOCAL_FILES);
    let mut tracker = ResponseTracker::new(Command::COM_QUERY, offering);
    assert_eq!(feed(&mut tracker, &asked).unwrap(), Progress::FileWanted(asked.len()));
    let loaded = b"\x07\0\0\x04\0\x02\0\x02\0\0\0";
    assert_eq!(feed(&mut tracker, loaded).unwrap(), Progress::Done(loaded.len()));
    assert_eq!(tracker.outcome().affected_rows, 2);
}

#[test]
fn commands_without_answer_are_done_at_once() {
    for command in [Command::COM_STMT_CLOSE, Command::COM_STMT_SEND_LONG_DATA, Command::COM_QUIT] {
        assert!(!ResponseTracker::expects_answer(command));
        let mut tracker = ResponseTracker::new(command, Sides::same(OK_MODE));
        assert_eq!(feed(&mut tracker, b"x").unwrap(), Progress::Done(0));
    }
}

#[test]
fn result_sets_end_with_eof_or_ok() {
    for capabilities in [EOF_MODE, OK_MODE] {
        let rows = [text_row(b"a"), text_row(b""), vec![0xFB]];
        let packets = result_set(capabilities, 1, &rows, AUTOCOMMIT);
        let said = outcome(Command::COM_QUERY, capabilities, &packets);
        assert_eq!(
            said,
            Outcome { status: flags(AUTOCOMMIT), rows: 3, last_result: Some(3), ..Outcome::default() }
        );
    }
}

#[test]
fn further_results_follow_while_the_status_says_so() {
    for capabilities in [EOF_MODE, OK_MODE] {
        let mut packets = result_set(capabilities, 2, &[text_row(b"a")], AUTOCOMMIT | MORE);
        packets.push(ok(0, AUTOCOMMIT | MORE));
        packets.extend(result_set(capabilities, 1, &[text_row(b"b")], AUTOCOMMIT));
        let said = outcome(Command::COM_QUERY, capabilities, &packets);
        assert_eq!((said.rows, said.status), (2, flags(AUTOCOMMIT)));
    }
}

#[test]
fn an_error_amid_rows_ends_the_answer() {
    for capabilities in [EOF_MODE, OK_MODE] {
        let mut packets = result_set(capabilities, 1, &[text_row(b"a")], AUTOCOMMIT);
        packets.pop();
        packets.push(err());
        let said = outcome(Command::COM_QUERY, capabilities, &packets);
        assert_eq!((said.rows, said.error.map(|e| e.code)), (1, Some(1064)));
    }
}

#[test]
fn a_row_may_begin_like_an_end() {
    // A first value of 16 MiB has the length byte 0xFE, and its packet has several parts.
    let huge = text_row(&vec![b'x'; MAX_PAYLOAD + 1]);
    assert_eq!(huge.first(), Some(&0xFE));
    for capabilities in [EOF_MODE, OK_MODE] {
        let packets = result_set(capabilities, 1, std::slice::from_ref(&huge), AUTOCOMMIT);
        assert_eq!(outcome(Command::COM_QUERY, capabilities, &packets).rows, 1);
    }
    // Without CLIENT_DEPRECATE_EOF nine bytes are enough to be no EOF.
    let packets = result_set(EOF_MODE, 1, &[vec![0xFE; 9]], AUTOCOMMIT);
    assert_eq!(outcome(Command::COM_QUERY, EOF_MODE, &packets).rows, 1);
}

#[test]
fn prepared_statements_are_followed() {
    let prepare_ok = |columns: u8, parameters: u8| vec![0, 1, 0, 0, 0, columns, 0, parameters, 0, 0, 0, 0];
    for (columns, parameters) in [(0, 0), (2, 0), (0, 3), (2, 3)] {
        for capabilities in [EOF_MODE, OK_MODE] {
            let mut packets = vec![prepare_ok(columns, parameters)];
            for count in [parameters, columns] {
                packets.extend((0..count).map(|_| definition()));
                if count > 0 && capabilities == EOF_MODE {
                    packets.push(eof(AUTOCOMMIT));
                }
            }
            let said = outcome(Command::COM_STMT_PREPARE, capabilities, &packets);
            let (columns, parameters) = (columns.into(), parameters.into());
            assert_eq!(said.prepared, Some(Prepared { id: 1, parameters, columns }));
        }
    }
    outcome(Command::COM_STMT_PREPARE, OK_MODE, &[err()]);
}

#[test]
fn a_cursor_keeps_the_rows_for_fetch() {
    for capabilities in [EOF_MODE, OK_MODE] {
        let mut packets = vec![vec![1], definition()];
        packets.push(end(capabilities, AUTOCOMMIT | CURSOR));
        let said = outcome(Command::COM_STMT_EXECUTE, capabilities, &packets);
        assert_eq!((said.status, said.rows), (flags(AUTOCOMMIT | CURSOR), 0));
        let binary_row = vec![0, 0, 1, b'a'];
        let packets = [binary_row.clone(), binary_row, end(capabilities, AUTOCOMMIT | CURSOR)];
        assert_eq!(outcome(Command::COM_STMT_FETCH, capabilities, &packets).rows, 2);
    }
}

#[test]
fn field_lists_end_without_counting_rows() {
    for capabilities in [EOF_MODE, OK_MODE] {
        let packets = [definition(), definition(), end(capabilities, AUTOCOMMIT)];
        assert_eq!(outcome(Command::COM_FIELD_LIST, capabilities, &packets).rows, 0);
    }
}

#[test]
fn what_is_no_answer_is_refused() {
    for payload in [&b""[..], b"\xFE\x01", b"\xFC\0\0", b"\0\0"] {
        let mut tracker = ResponseTracker::new(Command::COM_QUERY, Sides::same(OK_MODE));
        assert!(feed(&mut tracker, &framed(&[payload.to_vec()])).is_err(), "{payload:?}");
    }
    let mut tracker = ResponseTracker::new(Command::COM_PING, Sides::same(OK_MODE));
    assert!(feed(&mut tracker, &framed(&[b"\x01".to_vec()])).is_err());
}

fn any_rows() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::collection::vec(any::<u8>(), 0..700).prop_map(|v| text_row(&v)), 0..8)
}
fn any_answer() -> impl Strategy<Value = (CapabilityFlags, Vec<Vec<u8>>)> {
    let parts = prop::collection::vec((1u8..5, any_rows()), 0..4);
    (any::<bool>(), parts, any::<bool>()).prop_map(|(deprecates, parts, fails)| {
        let capabilities = if deprecates { OK_MODE } else { EOF_MODE };
        let mut packets = Vec::new();
        for (columns, rows) in parts {
            packets.extend(result_set(capabilities, columns, &rows, AUTOCOMMIT | MORE));
        }
        packets.push(if fails { err() } else { ok(0, AUTOCOMMIT) });
        (capabilities, packets)
    })
}

proptest! {
    #[test]
    fn chunking_makes_no_difference(
        (capabilities, packets) in any_answer(),
        cuts in prop::collection::vec(1usize..400, 1..8),
    ) {
        let whole = outcome(Command::COM_QUERY, capabilities, &packets);
        let stream = framed(&packets);
        let sides = Sides::same(capabilities);
        let (sent, said) = relay_in_pieces(Command::COM_QUERY, sides, &stream, &cuts);
        prop_assert_eq!(sent, stream);
        prop_assert_eq!(said, whole);
    }

    #[test]
    fn wild_bytes_never_panic(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..16)) {
        for command in [Command::COM_QUERY, Command::COM_STMT_PREPARE, Command::COM_FIELD_LIST] {
            let mut tracker = ResponseTracker::new(command, Sides::same(OK_MODE));
            for chunk in &chunks {
                if feed(&mut tracker, chunk).is_err() {
                    break;
                }
            }
        }
    }
}
