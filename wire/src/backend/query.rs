//! Reading small results whole.

use super::PARTIAL;
use crate::channel::Channel;
use crate::packet::{Ending, Fields, MAX_PAYLOAD};
use crate::{CapabilityFlags, SqlError, StatusFlags, WireError};

/// A small text result, read whole: for checks and tests, not for traffic.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextResult {
    /// Column names.
    pub columns: Vec<String>,
    /// The columns' definitions (Protocol::ColumnDefinition41), as they came.
    pub definitions: Vec<Vec<u8>>,
    /// Rows; NULL is `None`.
    pub rows: Vec<Vec<Option<Vec<u8>>>>,
    /// How many warnings its end tells of.
    pub warnings: u16,
}

/// Reads all results of a statement and returns the first. `limit` bounds their bytes together.
pub(super) fn read_results(
    channel: &mut Channel,
    capabilities: CapabilityFlags,
    limit: usize,
    status: &mut StatusFlags,
) -> Result<TextResult, WireError> {
    let mut reader = Reader { channel, capabilities, limit, left: limit, status };
    let first = reader.read_result()?;
    while reader.status.contains(StatusFlags::SERVER_MORE_RESULTS_EXISTS) {
        reader.read_result()?;
    }
    Ok(first)
}

struct Reader<'a> {
    channel: &'a mut Channel,
    capabilities: CapabilityFlags,
    limit: usize,
    left: usize,
    status: &'a mut StatusFlags,
}

impl Reader<'_> {
    fn read_result(&mut self) -> Result<TextResult, WireError> {
        let payload = self.packet()?;
        let count = match payload.first() {
            Some(0x00) => {
                let warnings = self.end(&payload)?;
                return Ok(TextResult { warnings, ..TextResult::default() });
            }
            Some(0xFB) => return Err(WireError::Malformed("LOCAL INFILE was not offered")),
            _ => Fields::new(&payload).lenenc_int()?,
        };
        // Rows without columns would be empty packets, which no limit on bytes bounds.
        if count == 0 {
            return Err(WireError::Malformed("a result set without columns"));
        }
        let mut result = TextResult::default();
        for _ in 0..count {
            let definition = self.packet()?;
            result.columns.push(column_name(&definition)?);
            result.definitions.push(definition);
        }
        let deprecates_eof = self.capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF);
        if !deprecates_eof {
            *self.status = Ending::parse(&self.packet()?)?.status;
        }
        loop {
            let payload = self.packet()?;
            let longest_end = if deprecates_eof { MAX_PAYLOAD } else { 9 };
            if payload.first() == Some(&0xFE) && payload.len() < longest_end {
                result.warnings = self.end(&payload)?;
                return Ok(result);
            }
            let mut fields = Fields::new(&payload);
            let row = result.columns.iter().map(|_| Ok(fields.text_value()?.map(<[u8]>::to_vec)));
            let row = row.collect::<Result<_, WireError>>()?;
            result.rows.push(row);
        }
    }
    /// Takes the status from a result's end, and returns its warnings.
    fn end(&mut self, payload: &[u8]) -> Result<u16, WireError> {
        let Ending { status, warnings, .. } = Ending::parse(payload)?;
        *self.status = status;
        Ok(warnings)
    }
    /// The next packet, unless it is an error.
    fn packet(&mut self) -> Result<Vec<u8>, WireError> {
        let limit = self.limit;
        let payload = self.channel.read_answer(self.left, PARTIAL).map_err(|error| match error {
            WireError::TooLarge { .. } => WireError::TooLarge { limit },
            other => other,
        })?;
        self.left -= payload.len();
        match payload.first() {
            Some(0xFF) => Err(SqlError::from_payload(payload)?.into()),
            _ => Ok(payload.to_vec()),
        }
    }
}

/// The name in a Protocol::ColumnDefinition41: its fifth field.
fn column_name(definition: &[u8]) -> Result<String, WireError> {
    let mut fields = Fields::new(definition);
    for _ in ["catalog", "schema", "table", "original table"] {
        fields.lenenc_bytes()?;
    }
    Ok(String::from_utf8_lossy(fields.lenenc_bytes()?).into_owned())
}
