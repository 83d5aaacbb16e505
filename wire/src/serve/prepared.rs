//! Prepared statements of simple servers: what a session has prepared, and the values it is run with.

use crate::packet::Fields;
use crate::statement::{Execute, long_data_parameter, statement_id};
use crate::{CapabilityFlags, ColumnType, SqlError, WireError};
use std::collections::HashMap;

/// Most statements that a session may have open, and most bytes of their texts and of data sent ahead.
const MOST_STATEMENTS: usize = 16_382;
const MOST_BYTES: usize = 64 << 20;
/// Second byte of a parameter's type: the number has no sign.
const UNSIGNED: u8 = 0x80;

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Parameter {
    /// NULL
    Null,
    /// A whole number.
    Integer(i64),
    /// A whole number that may be larger than any with a sign.
    Unsigned(u64),
    /// A number with a fraction.
    Real(f64),
    /// A text, as are dates and times, or bytes.
    Bytes(Vec<u8>),
}

/// The statements of one session.
#[derive(Default)]
pub(super) struct Statements {
    open: HashMap<u32, Statement>,
    last: u32,
    bytes: usize,
}

struct Statement {
    sql: String,
    parameters: u16,
    /// Types sent last: clients need not send them again.
    types: Vec<[u8; 2]>,
    /// Data of parameters that was sent ahead.
    ahead: HashMap<u16, Vec<u8>>,
}

impl Statement {
    fn size(&self) -> usize {
        self.sql.len() + self.ahead.values().map(Vec::len).sum::<usize>()
    }
}

impl Statements {
    /// Keeps a statement; its id.
    pub(super) fn add(&mut self, sql: &str, parameters: u16) -> Result<u32, SqlError> {
        if self.open.len() >= MOST_STATEMENTS || self.bytes + sql.len() > MOST_BYTES {
            let text = format!(
                "Can't create more than {MOST_STATEMENTS} prepared statements, nor of more than {MOST_BYTES} bytes"
            );
            return Err(SqlError::new(1461, "42000", text));
        }
        self.last = self.last.wrapping_add(1);
        self.bytes += sql.len();
        let statement =
            Statement { sql: sql.to_owned(), parameters, types: Vec::new(), ahead: HashMap::new() };
        self.open.insert(self.last, statement);
        Ok(self.last)
    }
    /// COM_STMT_CLOSE.
    pub(super) fn close(&mut self, payload: &[u8]) {
        if let Some(closed) = statement_id(payload).and_then(|id| self.open.remove(&id)) {
            self.bytes -= closed.size();
        }
    }
    /// COM_STMT_RESET.
    pub(super) fn reset(&mut self, payload: &[u8]) -> Result<(), SqlError> {
        let (_, statement) = find(&mut self.open, payload, "mysqld_stmt_reset")?;
        self.bytes -= statement.size() - statement.sql.len();
        statement.ahead.clear();
        Ok(())
    }
    /// COM_STMT_SEND_LONG_DATA, which has no answer: what cannot be kept is told when the statement is run.
    pub(super) fn send_ahead(&mut self, payload: &[u8]) {
        let (Some(id), Some(parameter), Some(data)) =
            (statement_id(payload), long_data_parameter(payload), payload.get(7..))
        else {
            return;
        };
        if let Some(statement) = self.open.get_mut(&id)
            && self.bytes + data.len() <= MOST_BYTES
            && parameter < statement.parameters
        {
            self.bytes += data.len();
            statement.ahead.entry(parameter).or_default().extend_from_slice(data);
        }
    }
    /// The statement and the values of a COM_STMT_EXECUTE.
    pub(super) fn execute(
        &mut self,
        payload: &[u8],
        capabilities: CapabilityFlags,
    ) -> Result<(String, Vec<Parameter>), SqlError> {
        let (id, statement) = find(&mut self.open, payload, "mysqld_stmt_execute")?;
        let named = capabilities.contains(CapabilityFlags::CLIENT_QUERY_ATTRIBUTES);
        let ahead = std::mem::take(&mut statement.ahead);
        self.bytes -= ahead.values().map(Vec::len).sum::<usize>();
        let values = values(statement, payload, named, ahead).map_err(|_| {
            SqlError::new(1210, "HY000", format!("Incorrect arguments to mysqld_stmt_execute ({id})"))
        })?;
        Ok((statement.sql.clone(), values))
    }
}

fn find<'a>(
    open: &'a mut HashMap<u32, Statement>,
    payload: &[u8],
    command: &str,
) -> Result<(u32, &'a mut Statement), SqlError> {
    let id = statement_id(payload).ok_or_else(SqlError::malformed_packet)?;
    let unknown = || {
        SqlError::new(1243, "HY000", format!("Unknown prepared statement handler ({id}) given to {command}"))
    };
    open.get_mut(&id).map(|statement| (id, statement)).ok_or_else(unknown)
}

fn values(
    statement: &mut Statement,
    payload: &[u8],
    named: bool,
    mut ahead: HashMap<u16, Vec<u8>>,
) -> Result<Vec<Parameter>, WireError> {
    let front = Execute::parse(payload, statement.parameters, named)?;
    if front.lacks_parameters() {
        return Err(WireError::Malformed("fewer values than parameters"));
    }
    if front.has_types() {
        statement.types = front.types().collect();
    }
    if statement.types.len() != usize::from(statement.parameters) {
        return Err(WireError::Malformed("values without types"));
    }
    let mut fields = Fields::new(front.value_bytes());
    let types = statement.types.iter().zip(0..);
    let values = types.map(|(kind, index)| match ahead.remove(&index) {
        _ if front.is_null(index) => Ok(Parameter::Null),
        Some(data) => Ok(Parameter::Bytes(data)),
        None => value(*kind, &mut fields),
    });
    values.collect()
}

/// Protocol::BinaryValue.
fn value([kind, flags]: [u8; 2], fields: &mut Fields<'_>) -> Result<Parameter, WireError> {
    use ColumnType::*;
    let unsigned = flags & UNSIGNED != 0;
    let integer = |signed: i64, bits: u64| match unsigned {
        true => Parameter::Unsigned(bits),
        false => Parameter::Integer(signed),
    };
    let kind = ColumnType::try_from(kind).map_err(|_| WireError::Malformed("unknown type"))?;
    Ok(match kind {
        MYSQL_TYPE_NULL => Parameter::Null,
        MYSQL_TYPE_TINY => {
            let byte = fields.u8()?;
            integer(byte.cast_signed().into(), byte.into())
        }
        MYSQL_TYPE_SHORT | MYSQL_TYPE_YEAR => {
            let word = fields.u16()?;
            integer(word.cast_signed().into(), word.into())
        }
        MYSQL_TYPE_LONG | MYSQL_TYPE_INT24 => {
            let word = u32::from_le_bytes(array(fields)?);
            integer(word.cast_signed().into(), word.into())
        }
        MYSQL_TYPE_LONGLONG => {
            let word = u64::from_le_bytes(array(fields)?);
            integer(word.cast_signed(), word)
        }
        MYSQL_TYPE_FLOAT => Parameter::Real(f32::from_le_bytes(array(fields)?).into()),
        MYSQL_TYPE_DOUBLE => Parameter::Real(f64::from_le_bytes(array(fields)?)),
        MYSQL_TYPE_DATE | MYSQL_TYPE_DATETIME | MYSQL_TYPE_TIMESTAMP => {
            let length = fields.u8()?;
            Parameter::Bytes(date(fields.bytes(length.into())?)?.into_bytes())
        }
        MYSQL_TYPE_TIME => {
            let length = fields.u8()?;
            Parameter::Bytes(time(fields.bytes(length.into())?)?.into_bytes())
        }
        _ => Parameter::Bytes(fields.lenenc_bytes()?.to_vec()),
    })
}

fn array<const N: usize>(fields: &mut Fields<'_>) -> Result<[u8; N], WireError> {
    fields.bytes(N)?.try_into().map_err(|_| WireError::Malformed("a value is cut"))
}

/// `YYYY-MM-DD[ hh:mm:ss[.ffffff]]`
fn date(bytes: &[u8]) -> Result<String, WireError> {
    let mut fields = Fields::new(bytes);
    if bytes.is_empty() {
        return Ok("0000-00-00".into());
    }
    let (year, month, day) = (fields.u16()?, fields.u8()?, fields.u8()?);
    let date = format!("{year:04}-{month:02}-{day:02}");
    if fields.is_empty() {
        return Ok(date);
    }
    Ok(format!("{date} {}", clock(&mut fields, 0)?))
}

/// `[-]hh:mm:ss[.ffffff]`
fn time(bytes: &[u8]) -> Result<String, WireError> {
    if bytes.is_empty() {
        return Ok("00:00:00".into());
    }
    let mut fields = Fields::new(bytes);
    let sign = if fields.u8()? == 0 { "" } else { "-" };
    let days = u32::from_le_bytes(array(&mut fields)?);
    Ok(format!("{sign}{}", clock(&mut fields, u64::from(days) * 24)?))
}

fn clock(fields: &mut Fields<'_>, hours: u64) -> Result<String, WireError> {
    let (hour, minute, second) = (fields.u8()?, fields.u8()?, fields.u8()?);
    let text = format!("{:02}:{minute:02}:{second:02}", hours + u64::from(hour));
    if fields.is_empty() {
        return Ok(text);
    }
    Ok(format!("{text}.{:06}", u32::from_le_bytes(array(fields)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NONE: CapabilityFlags = CapabilityFlags::empty();

    /// COM_STMT_EXECUTE of statement 1.
    fn execute(rest: &[u8]) -> Vec<u8> {
        [&b"\x17\x01\0\0\0\0\x01\0\0\0"[..], rest].concat()
    }
    fn run(parameters: u16, rest: &[u8]) -> Result<Vec<Parameter>, SqlError> {
        let mut statements = Statements::default();
        statements.add("x", parameters).unwrap();
        statements.execute(&execute(rest), NONE).map(|(_, values)| values)
    }
    fn one(kind: u8, flags: u8, value: &[u8]) -> Parameter {
        let mut values = run(1, &[&[0, 1, kind, flags], value].concat()).unwrap();
        values.pop().unwrap()
    }
    fn text(text: &str) -> Parameter {
        Parameter::Bytes(text.into())
    }

    #[test]
    fn values_of_every_kind_are_read() {
        use Parameter::{Integer, Real, Unsigned};
        assert_eq!(one(1, 0, b"\xFF"), Integer(-1));
        assert_eq!(one(1, 0x80, b"\xFF"), Unsigned(255));
        assert_eq!(one(2, 0, b"\xFE\xFF"), Integer(-2));
        assert_eq!(one(3, 0, b"\x01\0\0\x80"), Integer(-2_147_483_647));
        assert_eq!(one(8, 0x80, &[0xFF; 8]), Unsigned(u64::MAX));
        assert_eq!(one(5, 0, &1.5f64.to_le_bytes()), Real(1.5));
        assert_eq!(one(4, 0, &0.5f32.to_le_bytes()), Real(0.5));
        assert_eq!(one(0xFD, 0, b"\x02hi"), text("hi"));
        assert_eq!(one(6, 0, b""), Parameter::Null);
        assert_eq!(one(12, 0, b"\0"), text("0000-00-00"));
        assert_eq!(one(10, 0, b"\x04\xEA\x07\x0B\x1E"), text("2026-11-30"));
        assert_eq!(one(12, 0, b"\x07\xEA\x07\x0B\x1E\x01\x02\x03"), text("2026-11-30 01:02:03"));
        let micros = one(7, 0, b"\x0B\xEA\x07\x0B\x1E\x01\x02\x03\x05\0\0\0");
        assert_eq!(micros, text("2026-11-30 01:02:03.000005"));
        assert_eq!(one(11, 0, b"\0"), text("00:00:00"));
        assert_eq!(one(11, 0, b"\x08\x01\x01\0\0\0\x01\x02\x03"), text("-25:02:03"));
    }

    #[test]
    fn nulls_take_no_value_and_types_are_remembered() {
        let mut statements = Statements::default();
        statements.add("x", 2).unwrap();
        let first = execute(b"\x01\x01\xFD\0\x08\0\x07\0\0\0\0\0\0\0");
        let values = statements.execute(&first, NONE).unwrap().1;
        assert_eq!(values, [Parameter::Null, Parameter::Integer(7)]);
        let again = statements.execute(&execute(b"\0\0\x01a\x08\0\0\0\0\0\0\0"), NONE).unwrap().1;
        assert_eq!(again, [text("a"), Parameter::Integer(8)]);
    }

    #[test]
    fn data_sent_ahead_is_used_once() {
        let mut statements = Statements::default();
        statements.add("x", 1).unwrap();
        statements.send_ahead(b"\x18\x01\0\0\0\0\0ab");
        statements.send_ahead(b"\x18\x01\0\0\0\0\0cd");
        statements.send_ahead(b"\x18\x01\0\0\0\x01\0of no parameter");
        assert_eq!(statements.bytes, 5);
        assert_eq!(statements.execute(&execute(b"\0\x01\xFC\0"), NONE).unwrap().1, [text("abcd")]);
        assert_eq!(statements.bytes, 1);
        statements.send_ahead(b"\x18\x01\0\0\0\0\0zz");
        statements.reset(b"\x1A\x01\0\0\0").unwrap();
        assert_eq!(statements.execute(&execute(b"\0\x01\xFC\0\x01q"), NONE).unwrap().1, [text("q")]);
        statements.close(b"\x19\x01\0\0\0");
        assert_eq!((statements.bytes, statements.open.len()), (0, 0));
        assert_eq!(statements.execute(&execute(b""), NONE).unwrap_err().code, 1243);
        assert_eq!(statements.reset(b"\x1A\x01\0\0\0").unwrap_err().code, 1243);
    }

    #[test]
    fn what_is_cut_or_without_types_is_refused() {
        for rest in
            [&b""[..], b"\0", b"\0\0\x01a", b"\0\x01\x08\0\x01", b"\0\x01\xFD\0\x05ab", b"\0\x01\x0A\0\x02ab"]
        {
            assert_eq!(run(1, rest).unwrap_err().code, 1210, "{rest:?}");
        }
    }

    #[test]
    fn a_session_keeps_only_so_much() {
        let mut statements = Statements::default();
        let half = "x".repeat(MOST_BYTES / 2 + 1);
        statements.add(&half, 1).unwrap();
        assert_eq!(statements.add(&half, 1).unwrap_err().code, 1461);
        let data = [&b"\x18\x01\0\0\0\0\0"[..], &vec![0; MOST_BYTES / 2]].concat();
        statements.send_ahead(&data);
        assert_eq!(statements.bytes, half.len());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(bytes: Vec<u8>, parameters in 0u16..20, attributes: bool) {
            let mut statements = Statements::default();
            statements.add("x", parameters).unwrap();
            let flag = CapabilityFlags::CLIENT_QUERY_ATTRIBUTES;
            let _ = statements.execute(&execute(&bytes), if attributes { flag } else { NONE });
        }
    }
}
