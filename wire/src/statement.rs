//! Packets of prepared statements (MySQL protocol, "Prepared Statements"). Values are never decoded: what a proxy changes
//! is in front of them.

use crate::WireError;
use crate::packet::{Fields, HEADER, MAX_PAYLOAD, parse_header, put_framed};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::ops::Range;

/// Id by which MariaDB's clients name the statement prepared last.
pub const LAST_PREPARED: u32 = u32::MAX;
/// Flag of COM_STMT_EXECUTE: a count of parameters follows even if the statement has none.
const PARAMETER_COUNT_AVAILABLE: u8 = 8;
/// Bytes of a parameter's type: the type and whether it is unsigned.
const TYPE: usize = 2;
/// Where in a payload the id is, and what follows it in COM_STMT_EXECUTE: flags, then the iteration count.
const ID: Range<usize> = 1..5;
const FLAGS: usize = 5;
const PARAMETERS: usize = 10;

/// The statement id that a payload names: every COM_STMT_* but COM_STMT_PREPARE has it after the command byte.
pub fn statement_id(payload: &[u8]) -> Option<u32> {
    payload.get(ID)?.try_into().ok().map(u32::from_le_bytes)
}

/// The parameter that COM_STMT_SEND_LONG_DATA is for.
pub fn long_data_parameter(payload: &[u8]) -> Option<u16> {
    payload.get(ID.end..ID.end + 2)?.try_into().ok().map(u16::from_le_bytes)
}

/// COM_STMT_CLOSE, framed.
pub fn close(id: u32) -> [u8; 9] {
    let [a, b, c, d] = id.to_le_bytes();
    [5, 0, 0, 0, 0x19, a, b, c, d]
}

/// The payload of a framed command: the parts of a long one are joined.
pub fn joined(framed: &[u8]) -> Cow<'_, [u8]> {
    let Some((header, mut rest)) = framed.split_first_chunk() else { return Cow::Borrowed(&[]) };
    let (first, _) = parse_header(*header);
    if first < MAX_PAYLOAD {
        return Cow::Borrowed(rest);
    }
    let mut payload = Vec::with_capacity(framed.len());
    let mut part = first;
    loop {
        let (bytes, after) = rest.split_at(part.min(rest.len()));
        payload.extend_from_slice(bytes);
        let Some((header, after)) = after.split_first_chunk() else { return Cow::Owned(payload) };
        (part, _) = parse_header(*header);
        rest = after;
    }
}

/// Bytes that take the place of others: few as a rule, and then they are not allocated.
pub type Replacement = SmallVec<[u8; 64]>;

/// The front of a COM_STMT_EXECUTE: everything before the values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execute<'a> {
    payload: &'a [u8],
    // Those of the statement, and with query attributes those sent.
    parameters: usize,
    count: usize,
    // The client may send query attributes: parameters are counted and have names.
    named: bool,
    // Where the NULL bitmap, the flag that types follow, and the values begin.
    bitmap: usize,
    flag: usize,
    values: usize,
}

impl<'a> Execute<'a> {
    /// Reads the command's (first) payload; `named` if the client has CLIENT_QUERY_ATTRIBUTES.
    pub fn parse(payload: &'a [u8], parameters: u16, named: bool) -> Result<Self, WireError> {
        let mut fields = Fields::new(payload);
        let flags = fields.bytes(PARAMETERS)?.last_chunk::<5>().map_or(0, |[flags, ..]| *flags);
        let parameters = usize::from(parameters);
        let mut count = parameters;
        if named && (parameters > 0 || flags & PARAMETER_COUNT_AVAILABLE != 0) {
            count = usize::try_from(fields.lenenc_int()?).unwrap_or(usize::MAX);
        }
        let bitmap = payload.len() - fields.len();
        let mut front = Self { payload, parameters, count, named, bitmap, flag: bitmap, values: bitmap };
        if count > 0 {
            fields.bytes(count.div_ceil(8))?;
            front.flag = payload.len() - fields.len();
            if fields.u8()? != 0 {
                for _ in 0..count {
                    fields.bytes(TYPE)?;
                    if named {
                        fields.lenenc_bytes()?;
                    }
                }
            }
            front.values = payload.len() - fields.len();
        }
        Ok(front)
    }
    /// Whether the client has sent fewer than the statement has, by its own count.
    pub fn lacks_parameters(&self) -> bool {
        self.count < self.parameters
    }
    /// Whether the types of the parameters are in it. A statement without parameters needs none.
    pub fn has_types(&self) -> bool {
        self.parameters == 0 || self.values > self.flag + 1
    }
    /// Whether a parameter is NULL: then there is no value of it.
    pub fn is_null(&self, parameter: u16) -> bool {
        let byte = self.payload.get(self.bitmap + usize::from(parameter / 8));
        self.bitmap < self.flag && byte.is_some_and(|byte| byte & (1 << (parameter % 8)) != 0)
    }
    /// The values of the parameters that are not NULL, one after the other.
    pub fn value_bytes(&self) -> &'a [u8] {
        self.payload.get(self.values..).unwrap_or_default()
    }
    /// The types of the statement's own parameters, two bytes each; nothing if they are not in it.
    pub fn types(&self) -> impl Iterator<Item = [u8; TYPE]> {
        let sent = if self.has_types() { self.parameters.min(self.count) } else { 0 };
        let mut fields = Fields::new(self.payload.get(self.flag + 1..self.values).unwrap_or_default());
        (0..sent).map_while(move |_| {
            let kind = fields.bytes(TYPE).ok()?.try_into().ok()?;
            if self.named {
                fields.lenenc_bytes().ok()?;
            }
            Some(kind)
        })
    }
    /// What to change so that a server takes it which may have been told other types, or none: `types` are those that the
    /// client sent last. Query attributes are left out if the server is without CLIENT_QUERY_ATTRIBUTES (`named`).
    /// Writes to `with` what takes the place of the bytes returned.
    pub fn adapt(&self, types: &[u8], named: bool, with: &mut Replacement) -> Range<usize> {
        with.clear();
        if self.named && !named {
            self.without_attributes(types, with)
        } else if self.has_types() || self.count != self.parameters {
            // Query attributes never come without types; that is for the server to refuse.
            0..0
        } else {
            with.reserve(1 + types.len() / TYPE * (TYPE + usize::from(named)));
            with.push(1);
            for kind in types.chunks(TYPE) {
                with.extend_from_slice(kind);
                if named {
                    with.push(0);
                }
            }
            self.flag..self.flag + 1
        }
    }
    /// The values of attributes stay behind those of the parameters, where servers do not look.
    fn without_attributes(&self, types: &[u8], with: &mut Replacement) -> Range<usize> {
        let bytes = |range: Range<usize>| self.payload.get(range).unwrap_or_default();
        with.extend(bytes(FLAGS..FLAGS + 1).iter().map(|flags| flags & !PARAMETER_COUNT_AVAILABLE));
        with.extend_from_slice(bytes(FLAGS + 1..PARAMETERS));
        if self.parameters > 0 {
            with.extend_from_slice(bytes(self.bitmap..self.bitmap + self.parameters.div_ceil(8)));
            with.push(1);
            with.extend_from_slice(types);
        }
        FLAGS..self.values
    }
}

/// Rewrites a framed command for a server: another statement id, and `with` in place of the bytes `range` of its first
/// payload. Appends the front to `out` and returns the rest, which follows it unchanged.
pub fn rewrite<'a>(
    framed: &'a [u8],
    id: u32,
    range: Range<usize>,
    with: &[u8],
    out: &mut Vec<u8>,
) -> &'a [u8] {
    let Some((header, rest)) = framed.split_first_chunk::<HEADER>() else { return framed };
    let (first, _) = parse_header(*header);
    let range = if range.is_empty() { ID.end..ID.end } else { range };
    let (Some(command), Some(kept), Some(tail)) =
        (rest.get(..ID.start), rest.get(ID.end..range.start), rest.get(range.end..))
    else {
        return framed;
    };
    let length = first + with.len() - range.len();
    if first == MAX_PAYLOAD && length != first || length >= MAX_PAYLOAD && first < MAX_PAYLOAD {
        return repack(framed, id, range, with, out);
    }
    let [a, b, c, _] = (length as u32).to_le_bytes();
    out.extend_from_slice(&[a, b, c, 0]);
    out.extend_from_slice(command);
    out.extend_from_slice(&id.to_le_bytes());
    out.extend_from_slice(kept);
    out.extend_from_slice(with);
    tail
}

/// The same for a command whose parts end elsewhere afterwards.
fn repack<'a>(framed: &'a [u8], id: u32, range: Range<usize>, with: &[u8], out: &mut Vec<u8>) -> &'a [u8] {
    let mut payload = joined(framed).into_owned();
    if payload.len() < range.end {
        return framed;
    }
    payload.splice(range, with.iter().copied());
    payload.splice(ID, id.to_le_bytes());
    put_framed(out, &mut 0, &payload);
    &[]
}

#[cfg(test)]
mod tests;
