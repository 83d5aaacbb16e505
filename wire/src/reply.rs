//! Answers a server writes: OK, ERR, EOF and result sets.

use crate::channel::Channel;
use crate::packet::{Counts, eof, put_lenenc_bytes, put_lenenc_int, put_ok};
use crate::{CapabilityFlags, ColumnFlags, ColumnType, SqlError, StatusFlags, UTF8MB4_GENERAL_CI, WireError};

/// Bytes queued before rows are written out.
const FLUSH_AT: usize = 16 * 1024;

/// Writes the answer to one command. Consumed by the call that completes the answer, so that an answer cannot be
/// left half written.
pub struct Reply<'a> {
    /// Where to write.
    pub channel: &'a mut Channel,
    /// Capabilities in force.
    pub capabilities: CapabilityFlags,
    /// Status flags to report.
    pub status: StatusFlags,
}

/// One result column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Name.
    pub name: String,
    /// Type as MySQL names it.
    pub kind: ColumnType,
    /// How it is described, where that is not for the type alone to say. Without an origin it is an expression, which has no
    /// original name.
    description: Option<Description>,
    /// The table that it is of; otherwise schema and table are reported as empty.
    origin: Option<&'static Origin>,
}

/// Where a column's values come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// Schema.
    pub schema: &'static str,
    /// Table.
    pub table: &'static str,
    /// The column's name there.
    pub name: &'static str,
}

/// What a column definition says beside name and type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Description {
    /// Collation id.
    pub collation: u16,
    /// Longest value, in bytes.
    pub length: u32,
    /// Flags.
    pub flags: ColumnFlags,
    /// Decimals.
    pub decimals: u8,
}

/// Collation id of numbers and bytes.
pub const BINARY: u16 = 63;

impl Column {
    /// A column.
    pub fn new(name: impl Into<String>, kind: ColumnType) -> Self {
        Self { name: name.into(), kind, description: None, origin: None }
    }
    /// An expression's value, described as a server does it.
    pub fn expression(name: impl Into<String>, kind: ColumnType, description: Description) -> Self {
        Self { name: name.into(), kind, description: Some(description), origin: None }
    }
    /// A table's column, described as a server does it.
    pub fn of_table(
        name: impl Into<String>,
        kind: ColumnType,
        description: Description,
        origin: &'static Origin,
    ) -> Self {
        Self { name: name.into(), kind, description: Some(description), origin: Some(origin) }
    }
    /// The whole number that a function returns, which is never NULL.
    pub fn function(name: impl Into<String>) -> Self {
        let flags = ColumnFlags::NOT_NULL_FLAG | ColumnFlags::BINARY_FLAG;
        let description = Description { collation: BINARY, length: 21, flags, decimals: 0 };
        Self::expression(name, ColumnType::MYSQL_TYPE_LONGLONG, description)
    }
    /// A text column.
    pub fn text(name: impl Into<String>) -> Self {
        Self::new(name, ColumnType::MYSQL_TYPE_VAR_STRING)
    }

    /// Protocol::ColumnDefinition41.
    pub fn definition(&self) -> Vec<u8> {
        let (charset, length, flags, decimals) = self.attributes();
        let mut payload = Vec::with_capacity(64);
        put_lenenc_bytes(&mut payload, b"def");
        // Schema, table, original table, name, original name.
        let (schema, table, original) = match (self.origin, self.description) {
            (Some(origin), _) => (origin.schema, origin.table, origin.name),
            (None, Some(_)) => ("", "", ""),
            (None, None) => ("", "", &*self.name),
        };
        for text in [schema, table, table, &self.name, original] {
            put_lenenc_bytes(&mut payload, text.as_bytes());
        }
        payload.push(0x0C);
        payload.extend_from_slice(&charset.to_le_bytes());
        payload.extend_from_slice(&length.to_le_bytes());
        payload.push(self.kind as u8);
        payload.extend_from_slice(&flags.to_le_bytes());
        payload.extend_from_slice(&[decimals, 0, 0]);
        payload
    }
    /// Collation id, display length, flags and decimals that go with the type.
    fn attributes(&self) -> (u16, u32, u16, u8) {
        const BLOB_FLAG: u16 = 16;
        const BINARY_FLAG: u16 = 128;
        const NOT_FIXED: u8 = 0x1F;
        if let Some(Description { collation, length, flags, decimals }) = self.description {
            return (collation, length, flags.bits(), decimals);
        }
        match self.kind {
            ColumnType::MYSQL_TYPE_LONGLONG => (BINARY, 20, BINARY_FLAG, 0),
            ColumnType::MYSQL_TYPE_DOUBLE | ColumnType::MYSQL_TYPE_FLOAT => {
                (BINARY, 22, BINARY_FLAG, NOT_FIXED)
            }
            ColumnType::MYSQL_TYPE_TINY_BLOB
            | ColumnType::MYSQL_TYPE_BLOB
            | ColumnType::MYSQL_TYPE_MEDIUM_BLOB
            | ColumnType::MYSQL_TYPE_LONG_BLOB => (BINARY, u32::MAX, BLOB_FLAG | BINARY_FLAG, 0),
            kind if kind.is_numeric_type() => (BINARY, 11, BINARY_FLAG, 0),
            ColumnType::MYSQL_TYPE_NULL => (BINARY, 0, BINARY_FLAG, 0),
            _ => (UTF8MB4_GENERAL_CI.into(), 65_535, 0, NOT_FIXED),
        }
    }
}

impl<'a> Reply<'a> {
    /// OK with affected rows, last insert id and info text.
    pub fn ok(self, affected: u64, last_insert_id: u64, info: &str) -> Result<(), WireError> {
        let payload = self.ok_payload(0x00, affected, last_insert_id, info);
        self.channel.queue(&payload);
        self.channel.flush()
    }
    /// OK that tells of warnings.
    pub fn ok_warning(self, warnings: u16) -> Result<(), WireError> {
        let mut payload = Vec::new();
        put_ok(&mut payload, 0x00, Counts::default(), self.status, warnings);
        self.channel.queue(&payload);
        self.channel.flush()
    }
    /// ERR.
    pub fn error(self, error: &SqlError) -> Result<(), WireError> {
        self.channel.queue(&error.to_payload());
        self.channel.flush()
    }
    /// COM_STMT_PREPARE_OK, and what it tells of parameters and columns.
    pub fn prepared(self, id: u32, parameters: u16, columns: &[Column]) -> Result<(), WireError> {
        let mut payload = vec![0];
        payload.extend_from_slice(&id.to_le_bytes());
        let count = u16::try_from(columns.len()).unwrap_or(u16::MAX);
        payload.extend_from_slice(&count.to_le_bytes());
        payload.extend_from_slice(&parameters.to_le_bytes());
        // A filler, and the number of warnings.
        payload.extend_from_slice(&[0; 3]);
        self.channel.queue(&payload);
        let parameter = Column::text("?").definition();
        for definitions in [vec![parameter; parameters.into()], payloads(columns, count)] {
            for definition in &definitions {
                self.channel.queue(definition);
            }
            if !definitions.is_empty() && !self.deprecates_eof() {
                self.channel.queue(&self.eof_payload());
            }
        }
        self.channel.flush()
    }
    /// Starts a text result set of at least one column: none at all would read as an OK.
    pub fn rows(self, columns: &[Column]) -> Result<Rows<'a>, WireError> {
        self.result_set(columns.iter().map(Column::definition), None)
    }
    /// The same with columns that a server has defined (Protocol::ColumnDefinition41), at least one.
    pub fn rows_of(self, definitions: &[Vec<u8>]) -> Result<Rows<'a>, WireError> {
        self.result_set(definitions.iter(), None)
    }
    /// The same in binary form, as it answers COM_STMT_EXECUTE. Columns are MYSQL_TYPE_LONGLONG or texts and bytes.
    pub fn binary_rows(self, columns: &[Column]) -> Result<Rows<'a>, WireError> {
        let integers = columns.iter().map(|column| column.kind == ColumnType::MYSQL_TYPE_LONGLONG);
        self.result_set(columns.iter().map(Column::definition), Some(integers.collect()))
    }

    fn result_set(
        self,
        definitions: impl ExactSizeIterator<Item = impl AsRef<[u8]>>,
        integers: Option<Vec<bool>>,
    ) -> Result<Rows<'a>, WireError> {
        let mut count = Vec::new();
        put_lenenc_int(&mut count, definitions.len() as u64);
        self.channel.queue(&count);
        for definition in definitions {
            self.channel.queue(definition.as_ref());
        }
        if !self.deprecates_eof() {
            self.channel.queue(&self.eof_payload());
        }
        Ok(Rows { reply: self, row: Vec::new(), integers })
    }
    /// The end of a list of columns or rows, alone: what COM_SET_OPTION and COM_FIELD_LIST are answered with.
    pub fn end(self) -> Result<(), WireError> {
        let payload =
            if self.deprecates_eof() { self.ok_payload(0xFE, 0, 0, "") } else { self.eof_payload() };
        self.channel.queue(&payload);
        self.channel.flush()
    }

    fn deprecates_eof(&self) -> bool {
        self.capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF)
    }
    fn ok_payload(&self, first: u8, affected: u64, last_insert_id: u64, info: &str) -> Vec<u8> {
        let mut payload = Vec::new();
        put_ok(&mut payload, first, Counts { affected_rows: affected, last_insert_id }, self.status, 0);
        // With its length even without CLIENT_SESSION_TRACK, where the documentation has the rest of the packet:
        // servers write it so and clients read it so.
        if !info.is_empty() {
            put_lenenc_bytes(&mut payload, info.as_bytes());
        }
        payload
    }
    fn eof_payload(&self) -> Vec<u8> {
        eof(self.status, 0).to_vec()
    }
}

/// A result set being written: rows, then `finish` (or `fail`). Flushes as it grows.
pub struct Rows<'a> {
    reply: Reply<'a>,
    row: Vec<u8>,
    /// Of a binary result set: which columns are numbers.
    integers: Option<Vec<bool>>,
}

fn payloads(columns: &[Column], count: u16) -> Vec<Vec<u8>> {
    columns.iter().take(count.into()).map(Column::definition).collect()
}

impl Rows<'_> {
    /// One row, its values as text; NULL is `None`.
    pub fn row<'v>(&mut self, values: impl IntoIterator<Item = Option<&'v [u8]>>) -> Result<(), WireError> {
        self.row.clear();
        match self.integers.take() {
            Some(integers) => {
                self.put_binary(&integers, values)?;
                self.integers = Some(integers);
            }
            None => {
                for value in values {
                    match value {
                        Some(value) => put_lenenc_bytes(&mut self.row, value),
                        None => self.row.push(0xFB),
                    }
                }
            }
        }
        self.reply.channel.queue(&self.row);
        if self.reply.channel.queued() >= FLUSH_AT { self.reply.channel.flush() } else { Ok(()) }
    }
    /// ProtocolBinary::ResultsetRow.
    fn put_binary<'v>(
        &mut self,
        integers: &[bool],
        values: impl IntoIterator<Item = Option<&'v [u8]>>,
    ) -> Result<(), WireError> {
        const BITMAP: usize = 1;
        self.row.resize(BITMAP + (integers.len() + 2).div_ceil(8), 0);
        for (index, (value, integer)) in values.into_iter().zip(integers).enumerate() {
            match value {
                // The bitmap has room for each column, two places ahead.
                None => self.row[BITMAP + (index + 2) / 8] |= 1 << ((index + 2) % 8),
                Some(value) if *integer => {
                    let number: Option<i64> = str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                    let number = number.ok_or(WireError::Malformed("a column of numbers holds text"))?;
                    self.row.extend_from_slice(&number.to_le_bytes());
                }
                Some(value) => put_lenenc_bytes(&mut self.row, value),
            }
        }
        Ok(())
    }
    /// Ends the result set.
    pub fn finish(self) -> Result<(), WireError> {
        self.reply.end()
    }
    /// Ends it with an error after some rows.
    pub fn fail(self, error: &SqlError) -> Result<(), WireError> {
        self.reply.error(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::{Socket, tests::pair};
    use std::io::Read;

    fn written(capabilities: CapabilityFlags, write: impl FnOnce(Reply<'_>)) -> Vec<u8> {
        let (mut client, server): (Socket, Socket) = pair();
        let mut channel = Channel::new(server);
        channel.set_sequence(1);
        let status = StatusFlags::SERVER_STATUS_AUTOCOMMIT;
        write(Reply { channel: &mut channel, capabilities, status });
        drop(channel);
        let mut bytes = Vec::new();
        client.read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn ok_has_the_documented_form() {
        let bytes = written(CapabilityFlags::empty(), |r| r.ok(3, 300, "hi").unwrap());
        assert_eq!(bytes, b"\x0C\0\0\x01\0\x03\xFC\x2C\x01\x02\0\0\0\x02hi");
        let bytes = written(CapabilityFlags::CLIENT_SESSION_TRACK, |r| r.ok(0, 0, "hi").unwrap());
        assert_eq!(bytes, b"\x0A\0\0\x01\0\0\0\x02\0\0\0\x02hi");
    }

    #[test]
    fn a_column_of_a_table_tells_where_it_comes_from() {
        let flags = ColumnFlags::NOT_NULL_FLAG;
        let description = Description { collation: 8, length: 64, flags, decimals: 0 };
        static ORIGIN: Origin = Origin { schema: "s", table: "tab", name: "NAME" };
        let column = Column::of_table("n", ColumnType::MYSQL_TYPE_VAR_STRING, description, &ORIGIN);
        let expected = b"\x03def\x01s\x03tab\x03tab\x01n\x04NAME\x0c\x08\0\x40\0\0\0\xfd\x01\0\0\0\0";
        assert_eq!(column.definition(), expected);
    }

    const COUNT_AND_COLUMN: &[u8] =
        b"\x01\0\0\x01\x01\x18\0\0\x02\x03def\0\0\0\x01a\x01a\x0C\x2D\0\xFF\xFF\0\0\xFD\0\0\x1F\0\0";

    #[test]
    fn a_result_set_ends_with_eof() {
        let bytes = written(CapabilityFlags::empty(), |r| {
            let mut rows = r.rows(&[Column::text("a")]).unwrap();
            rows.row([Some(&b"xy"[..])]).unwrap();
            rows.row([None]).unwrap();
            rows.finish().unwrap();
        });
        let rest = b"\x05\0\0\x03\xFE\0\0\x02\0\x03\0\0\x04\x02xy\x01\0\0\x05\xFB\x05\0\0\x06\xFE\0\0\x02\0";
        assert_eq!(bytes, [COUNT_AND_COLUMN, rest].concat());
    }

    #[test]
    fn a_result_set_ends_with_ok_where_eof_is_deprecated() {
        let bytes = written(CapabilityFlags::CLIENT_DEPRECATE_EOF, |r| {
            r.rows(&[Column::text("a")]).unwrap().finish().unwrap();
        });
        assert_eq!(bytes, [COUNT_AND_COLUMN, b"\x07\0\0\x03\xFE\0\0\x02\0\0\0"].concat());
    }

    #[test]
    fn a_binary_result_set_has_numbers_and_a_bitmap() {
        let bytes = written(CapabilityFlags::CLIENT_DEPRECATE_EOF, |r| {
            let columns = [Column::text("a"), Column::new("b", ColumnType::MYSQL_TYPE_LONGLONG)];
            let mut rows = r.binary_rows(&columns).unwrap();
            rows.row([Some(&b"xy"[..]), Some(b"-2")]).unwrap();
            rows.row([Some(&b"z"[..]), None]).unwrap();
            assert!(rows.row([None, Some(&b"no number"[..])]).is_err());
            rows.finish().unwrap();
        });
        let rows = b"\x0D\0\0\x04\0\0\x02xy\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x04\0\0\x05\0\x08\x01z";
        assert!(bytes.windows(rows.len()).any(|window| window == rows), "{bytes:?}");
    }

    #[test]
    fn a_prepared_statement_tells_its_parameters_and_columns() {
        let head = b"\x0C\0\0\x01\0\x07\0\0\0\x01\0\x02\0\0\0\0";
        for (capabilities, packets) in
            [(CapabilityFlags::CLIENT_DEPRECATE_EOF, 4), (CapabilityFlags::empty(), 6)]
        {
            let bytes = written(capabilities, |r| r.prepared(7, 2, &[Column::text("a")]).unwrap());
            assert_eq!(&bytes[..head.len()], head);
            let mut rest = &bytes[..];
            let mut count = 0;
            while let [length, 0, 0, number, after @ ..] = rest {
                count += 1;
                assert_eq!(*number, count);
                rest = &after[usize::from(*length)..];
            }
            assert_eq!(count, packets);
        }
        let nothing = written(CapabilityFlags::empty(), |r| r.prepared(7, 0, &[]).unwrap());
        assert_eq!(nothing.len(), head.len());
    }

    #[test]
    fn a_result_set_may_end_with_an_error() {
        let bytes = written(CapabilityFlags::CLIENT_DEPRECATE_EOF, |r| {
            let rows = r.rows(&[Column::text("a")]).unwrap();
            rows.fail(&SqlError::new(1317, "70100", "x")).unwrap();
        });
        assert_eq!(bytes, [COUNT_AND_COLUMN, b"\x0A\0\0\x03\xFF\x25\x05#70100x"].concat());
    }
}
