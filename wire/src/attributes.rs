//! Query attributes: names and values that a client sends along with a statement. With CLIENT_QUERY_ATTRIBUTES they stand
//! before the text of each COM_QUERY, even if there are none (MySQL protocol, "COM_QUERY"). For COM_STMT_EXECUTE, where they
//! follow the statement's own parameters, see [`Execute`](crate::statement::Execute).

use crate::packet::{Fields, put_framed};
use crate::statement::joined;
use crate::{CapabilityFlags, ColumnType, Command, WireError};
use std::borrow::Cow;

/// What stands before the text of a statement without attributes: none of them, in one set.
pub(crate) const NONE: &[u8] = &[0, 1];

/// The text in a COM_QUERY's argument, which is all after the command byte, from a peer with `capabilities`.
#[inline]
pub fn sql(argument: &[u8], capabilities: CapabilityFlags) -> Result<&[u8], WireError> {
    match capabilities.contains(CapabilityFlags::CLIENT_QUERY_ATTRIBUTES) {
        true => behind_attributes(argument),
        false => Ok(argument),
    }
}

fn behind_attributes(argument: &[u8]) -> Result<&[u8], WireError> {
    let mut fields = Fields::new(argument);
    skip(&mut fields)?;
    Ok(fields.rest())
}

/// A client's framed command as a server takes it: the attributes of a COM_QUERY are left out for a server without
/// CLIENT_QUERY_ATTRIBUTES. Either side is given by its capabilities.
#[inline]
pub fn adapt(
    framed: &[u8],
    client: CapabilityFlags,
    server: CapabilityFlags,
) -> Result<Cow<'_, [u8]>, WireError> {
    const FLAG: CapabilityFlags = CapabilityFlags::CLIENT_QUERY_ATTRIBUTES;
    if !client.contains(FLAG) || server.contains(FLAG) {
        return Ok(Cow::Borrowed(framed));
    }
    without_attributes(framed, client)
}

fn without_attributes(framed: &[u8], client: CapabilityFlags) -> Result<Cow<'_, [u8]>, WireError> {
    let payload = joined(framed);
    match payload.split_first() {
        Some((&code, argument)) if code == Command::COM_QUERY as u8 => {
            let plain = [&[code], sql(argument, client)?].concat();
            let mut out = Vec::with_capacity(framed.len());
            put_framed(&mut out, &mut 0, &plain);
            Ok(Cow::Owned(out))
        }
        _ => Ok(Cow::Borrowed(framed)),
    }
}

fn skip(fields: &mut Fields<'_>) -> Result<(), WireError> {
    let count = usize::try_from(fields.lenenc_int()?).unwrap_or(usize::MAX);
    if fields.lenenc_int()? != 1 {
        return Err(WireError::Malformed("not one set of query attributes"));
    }
    if count == 0 {
        return Ok(());
    }
    let nulls = fields.bytes(count.div_ceil(8))?;
    if fields.u8()? != 1 {
        return Err(WireError::Malformed("query attributes without types"));
    }
    let mut types = Vec::new();
    for _ in 0..count {
        let [kind, _unsigned] = fields.u16()?.to_le_bytes();
        types.push(kind);
        let _name = fields.lenenc_bytes()?;
    }
    for (at, kind) in types.into_iter().enumerate() {
        let is_null = nulls.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 != 0);
        if !is_null {
            skip_value(fields, kind)?;
        }
    }
    Ok(())
}

/// A value in the form of the binary protocol (MySQL protocol, "Binary Protocol Value").
fn skip_value(fields: &mut Fields<'_>, kind: u8) -> Result<(), WireError> {
    let unknown = WireError::Malformed("a query attribute of an unknown type");
    let length = match ColumnType::try_from(kind).map_err(|_| unknown)? {
        ColumnType::MYSQL_TYPE_NULL => 0,
        ColumnType::MYSQL_TYPE_TINY => 1,
        ColumnType::MYSQL_TYPE_SHORT | ColumnType::MYSQL_TYPE_YEAR => 2,
        ColumnType::MYSQL_TYPE_LONG | ColumnType::MYSQL_TYPE_INT24 | ColumnType::MYSQL_TYPE_FLOAT => 4,
        ColumnType::MYSQL_TYPE_LONGLONG | ColumnType::MYSQL_TYPE_DOUBLE => 8,
        // Texts, and times, whose length of one byte looks the same.
        _ => return fields.lenenc_bytes().map(drop),
    };
    fields.bytes(length).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::MAX_PAYLOAD;
    use proptest::prelude::*;

    const WITH: CapabilityFlags = CapabilityFlags::CLIENT_QUERY_ATTRIBUTES;
    const WITHOUT: CapabilityFlags = CapabilityFlags::empty();
    /// `query_attributes n1 v1 n2 v2` in MySQL 9.7's client, before `SELECT 1`.
    const TWO: &[u8] = b"\x02\x01\0\x01\xfe\0\x02n1\xfe\0\x02n2\x02v1\x02v2SELECT 1";
    /// Attributes of many types, the second of them NULL.
    const MANY: &[u8] =
        b"\x07\x01\x02\x01\x08\x80\x01a\xfd\0\0\x01\0\x01c\x0c\0\x01d\x05\0\x01e\x06\0\0\x02\0\x01g\
        \x01\0\0\0\0\0\0\0\x7f\x04\xe8\x07\x01\x02\0\0\0\0\0\0\xf0\x3f\x05\0SELECT 1";

    fn framed(argument: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        put_framed(&mut out, &mut 0, &[b"\x03", argument].concat());
        out
    }

    #[test]
    fn the_text_follows_the_attributes() {
        for argument in [b"\0\x01SELECT 1", TWO, MANY] {
            assert_eq!(sql(argument, WITH).unwrap(), b"SELECT 1", "{}", argument.escape_ascii());
            assert_eq!(sql(argument, WITHOUT).unwrap(), argument);
            assert_eq!(*adapt(&framed(argument), WITH, WITHOUT).unwrap(), framed(b"SELECT 1"));
            assert_eq!(*adapt(&framed(argument), WITH, WITH).unwrap(), framed(argument));
        }
        assert_eq!(sql(NONE, WITH).unwrap(), b"");
    }

    #[test]
    fn what_is_not_in_the_form_is_refused() {
        for argument in [
            &b""[..],
            b"\0",
            b"\0\x02SELECT 1",
            b"\x01\x01\0\0\xfe\0\x01a\x01b",
            b"\x01\x01\0\x01\xf0\0\x01a\x01b",
            b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01SELECT 1",
            TWO.get(..15).unwrap(),
        ] {
            assert!(sql(argument, WITH).is_err(), "{}", argument.escape_ascii());
            assert!(adapt(&framed(argument), WITH, WITHOUT).is_err());
        }
    }

    #[test]
    fn only_statements_have_them() {
        let ping = b"\x01\0\0\0\x0e";
        assert_eq!(*adapt(ping, WITH, WITHOUT).unwrap(), ping[..]);
    }

    #[test]
    fn a_statement_of_several_packets_is_packed_anew() {
        let text = vec![b'x'; MAX_PAYLOAD];
        let long = framed(&[NONE, &text].concat());
        assert!(*adapt(&long, WITH, WITHOUT).unwrap() == framed(&text));
    }

    proptest! {
        #[test]
        fn wild_bytes_never_panic(argument in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(text) = sql(&argument, WITH) {
                prop_assert!(argument.ends_with(text));
            }
        }
    }
}
