use super::*;
use proptest::prelude::*;

const EXECUTE: u8 = 0x17;

/// A COM_STMT_EXECUTE of statement 7 with `flags`; what follows the iteration count is `rest`.
fn execute(flags: u8, rest: &[u8]) -> Vec<u8> {
    [&[EXECUTE, 7, 0, 0, 0, flags, 1, 0, 0, 0], rest].concat()
}

fn framed(payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_framed(&mut out, &mut 0, payload);
    out
}

/// What a server is sent for `payload` under id 0x01020304.
fn adapted(payload: &[u8], parameters: u16, client: bool, server: bool, types: &[u8]) -> Vec<u8> {
    let front = Execute::parse(payload, parameters, client).unwrap();
    let (mut with, mut out) = (Replacement::new(), Vec::new());
    let range = front.adapt(types, server, &mut with);
    let framed = framed(payload);
    let rest = rewrite(&framed, 0x0102_0304, range, &with, &mut out);
    out.extend_from_slice(rest);
    joined(&out).into_owned()
}

fn with_id(payload: &[u8]) -> Vec<u8> {
    [&payload[..1], &[4, 3, 2, 1], &payload[5..]].concat()
}

#[test]
fn ids_are_read_and_commands_framed() {
    assert_eq!(statement_id(&execute(0, b"")), Some(7));
    assert_eq!(statement_id(&[EXECUTE, 7, 0]), None);
    assert_eq!(long_data_parameter(b"\x18\x07\0\0\0\x02\x01data"), Some(0x102));
    assert_eq!(long_data_parameter(b"\x18\x07\0\0\0\x02"), None);
    assert_eq!(close(7), *b"\x05\0\0\0\x19\x07\0\0\0");
}

#[test]
fn types_are_put_in_where_a_client_leaves_them_out() {
    // SELECT ?, ? with a VAR_STRING and an unsigned LONGLONG.
    let types = b"\xFD\0\x08\x80";
    let values = b"\x01x\x05\0\0\0\0\0\0\0";
    let full = execute(0, &[b"\0\x01", &types[..], values].concat());
    let bare = execute(0, &[&b"\0\0"[..], values].concat());
    let front = Execute::parse(&full, 2, false).unwrap();
    assert!(front.has_types());
    assert_eq!(front.types().collect::<Vec<_>>().concat(), types);
    assert!(!Execute::parse(&bare, 2, false).unwrap().has_types());
    assert_eq!(adapted(&bare, 2, false, false, types), with_id(&full));
    assert_eq!(adapted(&full, 2, false, false, types), with_id(&full));
}

#[test]
fn a_statement_without_parameters_needs_no_types() {
    let payload = execute(1, b"");
    assert!(Execute::parse(&payload, 0, false).unwrap().has_types());
    assert_eq!(adapted(&payload, 0, false, false, b""), with_id(&payload));
    assert_eq!(adapted(&payload, 0, true, true, b""), with_id(&payload));
}

#[test]
fn query_attributes_pass_or_are_left_out() {
    // One parameter, and an attribute of the name "a".
    let payload = execute(8, b"\x02\0\x01\xFD\0\0\xFD\0\x01a\x01x\x01y");
    let front = Execute::parse(&payload, 1, true).unwrap();
    assert_eq!(front.types().collect::<Vec<_>>(), [*b"\xFD\0"]);
    assert_eq!(adapted(&payload, 1, true, true, b"\xFD\0"), with_id(&payload));
    let plain = execute(0, b"\0\x01\xFD\0\x01x\x01y");
    assert_eq!(adapted(&payload, 1, true, false, b"\xFD\0"), with_id(&plain));
    // Without types the parameter gets an empty name where parameters have names.
    let bare = execute(8, b"\x01\0\0\x01x");
    assert_eq!(adapted(&bare, 1, true, true, b"\xFD\0"), with_id(&execute(8, b"\x01\0\x01\xFD\0\0\x01x")));
    assert_eq!(adapted(&bare, 1, true, false, b"\xFD\0"), with_id(&execute(0, b"\0\x01\xFD\0\x01x")));
    // Attributes alone.
    let alone = execute(8, b"\x01\0\x01\xFD\0\x01a\x01y");
    assert_eq!(adapted(&alone, 0, true, false, b""), with_id(&execute(0, b"\x01y")));
    // Attributes without types are refused by servers; they pass.
    let refused = execute(8, b"\x02\0\0\x01x\x01y");
    assert_eq!(adapted(&refused, 1, true, true, b"\xFD\0"), with_id(&refused));
}

#[test]
fn short_packets_are_malformed() {
    let full = execute(8, b"\x01\0\x01\xFD\0\x01a");
    for length in 0..full.len() {
        assert!(Execute::parse(&full[..length], 1, true).is_err(), "{length}");
    }
    assert!(Execute::parse(&execute(8, b"\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"), 1, true).is_err());
}

#[test]
fn packets_around_the_16_mib_limit_keep_their_values() {
    for length in [MAX_PAYLOAD - 1, MAX_PAYLOAD, MAX_PAYLOAD + 1, 2 * MAX_PAYLOAD] {
        for types in [&b""[..], b"\xFD\0"] {
            let mut payload = execute(0, if types.is_empty() { b"\0\x01\xFD\0" } else { b"\0\0" });
            payload.resize(length, 0x55);
            let sent = adapted(&payload, 1, false, false, types);
            let mut expected = with_id(&payload);
            if !types.is_empty() {
                expected.splice(11..12, *b"\x01\xFD\0");
            }
            assert!(sent == expected, "{length} {types:?}");
        }
    }
}

#[test]
fn a_small_change_to_a_large_packet_copies_its_front_alone() {
    let mut payload = execute(0, b"\0\x01\xFD\0");
    payload.resize(MAX_PAYLOAD + 9, 0x55);
    let (framed, mut out) = (framed(&payload), Vec::new());
    let rest = rewrite(&framed, 1, 0..0, b"", &mut out);
    assert_eq!((out.len(), rest.len()), (9, framed.len() - 9));
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_harm(bytes: Vec<u8>, parameters in 0u16..40, client: bool, server: bool) {
        let payload = [&[EXECUTE][..], &bytes].concat();
        if let Ok(front) = Execute::parse(&payload, parameters, client) {
            let types = vec![0; usize::from(parameters) * 2];
            let (mut with, mut out) = (Replacement::new(), Vec::new());
            let range = front.adapt(&types, server, &mut with);
            let framed = framed(&payload);
            rewrite(&framed, 1, range, &with, &mut out);
            prop_assert!(front.types().count() <= usize::from(parameters));
        }
    }
    #[test]
    fn parts_are_joined(payload in prop::collection::vec(any::<u8>(), 0..99)) {
        let framed = framed(&payload);
        prop_assert_eq!(&joined(&framed)[..], &payload[..]);
    }
}
