//! What holds for any answer, in any chunking.

use super::super::*;
use super::translation::{BOTH, COLUMN, DEPRECATES, NONE, SET, TRACKS, sides};
use super::{framed, relay_in_pieces};
use crate::packet::put_lenenc_bytes;
use crate::{SqlError, StatusFlags};
use Command::*;
use proptest::prelude::*;

fn rows() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let row = prop::collection::vec(any::<u8>(), 0..300).prop_map(|value| {
        let mut row = Vec::new();
        put_lenenc_bytes(&mut row, &value);
        row
    });
    prop::collection::vec(row, 0..5)
}
/// One result, in the form of a server of both capabilities. `more`: it is not the last.
#[derive(Debug, Clone)]
enum AnyResult {
    Set { columns: u8, rows: Vec<Vec<u8>>, state: bool },
    Ok { text: String, state: bool },
    Err,
}
fn any_result() -> impl Strategy<Value = AnyResult> {
    prop_oneof![
        4 => (1u8..4, rows(), any::<bool>()).prop_map(|(columns, rows, state)| AnyResult::Set { columns, rows, state }),
        3 => ("[a-z]{0,20}", any::<bool>()).prop_map(|(text, state)| AnyResult::Ok { text, state }),
        1 => Just(AnyResult::Err),
    ]
}
fn ok(first: u8, text: &str, state: bool, more: bool) -> Vec<u8> {
    let mut payload = vec![first, 1, 0, if more { 0x0a } else { 2 }, if state { 0x40 } else { 0 }, 0, 0];
    if state || !text.is_empty() {
        put_lenenc_bytes(&mut payload, text.as_bytes());
    }
    if state {
        payload.extend_from_slice(&SET[0][8..]);
    }
    payload
}
fn packets(results: &[AnyResult]) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    for (at, result) in results.iter().enumerate() {
        let more = at + 1 < results.len();
        match result {
            AnyResult::Set { columns, rows, state } => {
                packets.push(vec![*columns]);
                packets.extend((0..*columns).map(|_| COLUMN.to_vec()));
                packets.extend_from_slice(rows);
                packets.push(ok(0xFE, "", *state, more));
            }
            AnyResult::Ok { text, state } => packets.push(ok(0, text, *state, more)),
            AnyResult::Err => {
                packets.push(SqlError::new(1064, "42000", "no").to_payload());
                break;
            }
        }
    }
    packets
}

proptest! {
    #[test]
    fn translation_is_the_same_in_any_chunking_and_keeps_the_meaning(
        results in prop::collection::vec(any_result(), 1..5),
        deprecates: bool, tracks: bool, filters: bool, binary: bool,
        cuts in prop::collection::vec(1usize..200, 1..8),
    ) {
        let mut client = NONE;
        client.set(DEPRECATES, deprecates);
        client.set(TRACKS, tracks);
        let notices = Notices::new("time_zone", "0", "0", "OFF");
        let sides = Sides { notices: filters.then_some(&notices), ..sides(BOTH, client) };
        let command = if binary { COM_STMT_EXECUTE } else { COM_QUERY };
        let from = framed(&packets(&results));
        let (whole, said) = relay_in_pieces(command, sides, &from, &[from.len()]);
        let (sent, said_in_pieces) = relay_in_pieces(command, sides, &from, &cuts);
        prop_assert_eq!(&sent, &whole);
        prop_assert_eq!(&said, &said_in_pieces);

        // What the client reads says the same, but for what it must not be told.
        let (_, read) = relay_in_pieces(command, Sides::same(client), &whole, &cuts);
        let told = |mut outcome: Outcome| {
            outcome.changes = SessionChanges::default();
            outcome.affected_rows = 0;
            outcome.status = outcome.status.map(|s| s.difference(StatusFlags::SERVER_SESSION_STATE_CHANGED));
            outcome
        };
        prop_assert_eq!(told(read), told(said));

        // And back: only session data and first EOFs can be lost.
        if tracks && !filters {
            let (there_and_back, _) = relay_in_pieces(command, Sides { server: client, client: BOTH, ..sides }, &whole, &cuts);
            if deprecates {
                prop_assert_eq!(there_and_back, from);
            }
        }
    }

    #[test]
    fn wild_bytes_never_panic_in_translation(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..16),
        server_bits in 0u8..4, client_bits in 0u8..4,
    ) {
        let capabilities = |bits: u8| {
            let mut flags = NONE;
            flags.set(DEPRECATES, bits & 1 != 0);
            flags.set(TRACKS, bits & 2 != 0);
            flags
        };
        let notices = Notices::new("a", "1", "0", "STATE");
        for command in [COM_QUERY, COM_STMT_PREPARE, COM_STMT_EXECUTE, COM_FIELD_LIST] {
            let sides = Sides { notices: Some(&notices), statement: Some(7), ..sides(capabilities(server_bits), capabilities(client_bits)) };
            let mut tracker = ResponseTracker::new(command, sides);
            for chunk in &chunks {
                if tracker.feed(&mut chunk.clone(), &mut Vec::new()).is_err() {
                    break;
                }
            }
        }
    }
}
