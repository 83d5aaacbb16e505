//! Prepared statements of the fake. Ids differ from connection to connection.

use super::Conversation;
use std::collections::HashMap;
use wire::reply::Reply;
use wire::statement::statement_id;
use wire::{CapabilityFlags, Command, SqlError, StatusFlags, WireError};

const EOF_OF_A_CURSOR: StatusFlags = StatusFlags::SERVER_STATUS_CURSOR_EXISTS;
const CURSOR: u8 = 1;
/// A column definition, as far as a proxy cares.
const DEFINITION: &[u8] = b"\x03def\0\0\0\x01x\x01x\x0C\x2D\0\xFF\xFF\0\0\xFD\0\0\x1F\0\0";
/// A binary row of the text "row".
const ROW: &[u8] = b"\0\0\x03row";

#[derive(Default)]
pub struct Prepared {
    texts: HashMap<u32, String>,
    count: u32,
}

impl Conversation<'_> {
    /// Does one of COM_STMT_*; `payload` is all of its packet.
    pub(super) fn statement(&mut self, command: Command, payload: &[u8]) -> Result<(), WireError> {
        if command == Command::COM_STMT_PREPARE {
            return self.prepare(String::from_utf8_lossy(&payload[1..]).into_owned());
        }
        let id = statement_id(payload).unwrap_or(0);
        let Some(text) = self.prepared.texts.get(&id).cloned() else {
            self.note(format!("{command:?} of an unknown statement"));
            return self.reply().error(&SqlError::new(1243, "HY000", "unknown to the fake"));
        };
        let rest = payload[5..].escape_ascii();
        self.note(format!("{} {text} {rest}", format!("{command:?}").trim_start_matches("COM_STMT_")));
        match command {
            Command::COM_STMT_CLOSE => {
                self.prepared.texts.remove(&id);
                Ok(())
            }
            Command::COM_STMT_SEND_LONG_DATA => Ok(()),
            Command::COM_STMT_EXECUTE if payload[5] & CURSOR != 0 => {
                self.channel.queue(b"\x01");
                self.channel.queue(DEFINITION);
                self.end(EOF_OF_A_CURSOR)
            }
            Command::COM_STMT_FETCH => {
                self.channel.queue(ROW);
                // The fake has two rows.
                let last = payload[5] > 1;
                self.end(if last { StatusFlags::SERVER_STATUS_LAST_ROW_SENT } else { EOF_OF_A_CURSOR })
            }
            _ => self.reply().ok(0, 0, ""),
        }
    }
    fn prepare(&mut self, text: String) -> Result<(), WireError> {
        self.note(format!("PREPARE {text} in {}", self.schema));
        if text.starts_with("bad") {
            return self.reply().error(&SqlError::new(1064, "42000", "what?"));
        }
        self.prepared.count += 1;
        let id = self.id * 1000 + self.prepared.count;
        let parameters = text.matches('?').count() as u16;
        self.prepared.texts.insert(id, text);
        let [low, high] = parameters.to_le_bytes();
        self.channel.queue(&[&[0][..], &id.to_le_bytes(), &[0, 0, low, high, 0, 0, 0]].concat());
        for _ in 0..parameters {
            self.channel.queue(DEFINITION);
        }
        if parameters > 0 && !self.login.capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF) {
            self.channel.queue(b"\xFE\0\0\x02\0");
        }
        self.channel.flush()
    }
    fn end(&mut self, flag: StatusFlags) -> Result<(), WireError> {
        let status = self.status | flag;
        Reply { status, ..self.reply() }.end()
    }
}
