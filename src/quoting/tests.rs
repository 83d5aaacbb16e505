use super::*;
use proptest::prelude::*;

/// Any quoting.
pub fn any_quoting() -> impl Strategy<Value = Quoting> {
    use Characters::*;
    let characters = prop::sample::select(vec![Plain, Big5, Gb18030, Gbk, Sjis]);
    (any::<bool>(), any::<bool>(), characters).prop_map(|(plain_backslash, ansi_quotes, characters)| {
        Quoting { plain_backslash, ansi_quotes, characters }
    })
}

#[test]
fn character_sets_are_known_by_their_names() {
    for (name, expected) in [
        ("gbk", Characters::Gbk),
        ("GBK COLLATE gbk_bin", Characters::Gbk),
        ("gbk_chinese_nopad_ci", Characters::Gbk),
        ("sjis_japanese_ci", Characters::Sjis),
        ("cp932", Characters::Sjis),
        ("big5", Characters::Big5),
        ("gb18030", Characters::Gb18030),
        ("gb2312", Characters::Plain),
        ("utf8mb4", Characters::Plain),
        ("DEFAULT", Characters::Plain),
        ("", Characters::Plain),
    ] {
        assert_eq!(Characters::of(name), expected, "{name}");
    }
}

#[test]
fn second_bytes_of_characters_are_no_symbols() {
    use Characters::*;
    for (characters, bytes, quote, expected) in [
        (Plain, &b"\xa8\\' x'"[..], b'\'', 5),
        (Gbk, b"\xa8\\' x'", b'\'', 2),
        (Gb18030, b"\xa8\\' x'", b'\'', 2),
        (Sjis, b"\x95\\' x'", b'\'', 2),
        (Big5, b"\xb3\\' x'", b'\'', 2),
        (Plain, b"\xa8`` x`", b'`', 5),
        (Gbk, b"\xa8`` x`", b'`', 2),
        // A first byte that no second follows.
        (Gbk, b"\xa8' x'", b'\'', 1),
        (Sjis, b"\xb1\\' x'", b'\'', 5),
        // A first byte that is escaped itself.
        (Gbk, b"\\\xa8\\' x'", b'\'', 6),
        (Gb18030, b"\x810\x810'", b'\'', 4),
        (Gbk, b"a''b", b'\'', 4),
    ] {
        let quoting = Quoting { characters, ..Quoting::default() };
        assert_eq!(quoting.length(bytes, quote), expected, "{characters:?} {bytes:?}");
    }
}

proptest! {
    #[test]
    fn a_quoted_piece_ends_within_its_bytes(
        bytes in prop::collection::vec(prop::sample::select(b"\\'\"`a0\x81\xa8\xb1".to_vec()), 0..12),
        quoting in any_quoting(),
    ) {
        for quote in *b"'\"`" {
            let length = quoting.length(&bytes, quote);
            prop_assert!(length == bytes.len() || bytes[length] == quote && bytes.get(length + 1) != Some(&quote));
        }
    }
}
