//! The commands of prepared statements. A client's statement is not bound to a connection: whichever the session gets, it is
//! prepared there when it is run. Only parameters that come in pieces and rows that are fetched bind the session to one.

use super::asked::with_own_id;
use super::classify::{Statement, classify};
use super::hold::Reason;
use super::local::Answer;
use super::route::{Judged, Routed};
use super::state::{Message, Role, Session, Step};
use super::statements::{self, Open};
use super::wording::Wording;
use crate::pool::{Caller, Lease, StatementText};
use std::sync::Arc;
use wire::channel::{RawCommand, framed};
use wire::statement::{
    Execute, LAST_PREPARED, Replacement, joined, long_data_parameter, rewrite, statement_id,
};
use wire::tracker::Outcome;
use wire::{CapabilityFlags, Command, SqlError, StatusFlags, WireError};

/// Bytes of an execution up to the NULL bits: the command, the statement's id, flags, and the number of executions.
const EXECUTION: usize = 10;

/// A command on a statement, to be sent under the id that it has on the connection.
pub struct Call<'a> {
    id: u32,
    front: Option<Execute<'a>>,
    framed: &'a [u8],
}

/// A statement that is being prepared for the client.
pub struct Preparing {
    /// The client's id of it.
    pub id: u32,
    text: Arc<StatementText>,
    statement: Statement,
    routed: Routed,
}

impl Session<'_> {
    /// COM_STMT_PREPARE.
    pub(super) fn prepare(&mut self, command: &RawCommand<'_>) -> Step {
        if self.statements.is_full() {
            return refuse(statements::too_many());
        }
        let payload = joined(command.framed);
        let sql = payload.get(1..).unwrap_or_default();
        let judged = self.judge(sql);
        let routed = match self.route_prepared(&judged) {
            Ok(routed) => routed,
            Err(step) => return step,
        };
        let Judged { mut statement, verdict, .. } = judged;
        if let Some(text) = &verdict.text {
            statement = classify(text, self.quoting());
        }
        let told = with_own_id(verdict.text.as_deref().unwrap_or(sql), self.id);
        let rewritten =
            told.or(verdict.text).map(|text| [&[Command::COM_STMT_PREPARE as u8], text.as_slice()].concat());
        let sql = rewritten.as_deref().map_or(sql, |payload| payload.get(1..).unwrap_or_default());
        let text = self.shared.texts.get(sql, &self.want.profile.of_texts());
        let preparing = Preparing { id: self.statements.next_id(), text, statement, routed };
        let role = Role::Prepare(Box::new(preparing));
        let rewritten = rewritten.as_deref().map(framed);
        let framed = rewritten.as_deref().unwrap_or(command.framed);
        self.send(Command::COM_STMT_PREPARE, Statement::default(), Message::Framed(framed), role)
    }
    /// COM_STMT_EXECUTE.
    pub(super) fn execute(&mut self, command: &RawCommand<'_>) -> Step {
        let Some(id) = statement_id(command.head).filter(|_| command.length >= EXECUTION) else {
            return refuse(self.wording().malformed_packet());
        };
        let id = self.meant(id);
        let named = self.capabilities.contains(CapabilityFlags::CLIENT_QUERY_ATTRIBUTES);
        let wording = self.wording();
        let Some(open) = self.statements.get(id) else {
            return refuse(wording.unknown_statement(id, Command::COM_STMT_EXECUTE));
        };
        // MySQL reads an execution, and keeps its types, before it tells of what went wrong earlier.
        if let Some(error) = open.failed.as_ref().filter(|_| wording == Wording::MariaDb) {
            return refuse(error.clone());
        }
        let Ok(front) = Execute::parse(command.head, open.parameters, named) else {
            let ends_early = command.length <= EXECUTION + usize::from(open.parameters.div_ceil(8));
            return refuse(wording.unreadable(ends_early));
        };
        if !open.learn_types(&front) {
            return refuse(wording.untyped(front.lacks_parameters(), open.long_data));
        }
        if let Some(error) = &open.failed {
            return refuse(error.clone());
        }
        let (routed, statement) = (open.routed.again(&mut self.route.recent), open.statement.clone());
        if let Err(step) = self.route_execution(routed, &statement) {
            return step;
        }
        let call = Call { id, front: Some(front), framed: command.framed };
        self.send(Command::COM_STMT_EXECUTE, statement, Message::Call(call), Role::Execute(id))
    }
    /// COM_STMT_SEND_LONG_DATA, which has no answer: what goes wrong is told when the statement is executed.
    pub(super) fn send_long_data(&mut self, command: &RawCommand<'_>) -> Step {
        let (Some(id), Some(parameter)) = (statement_id(command.head), long_data_parameter(command.head))
        else {
            return refuse(self.wording().malformed_packet());
        };
        let id = self.meant(id);
        let Some(open) = self.statements.get(id) else { return Step::Silent };
        if open.failed.is_some() {
            return Step::Silent;
        }
        if parameter >= open.parameters {
            let error = self.wording().no_such_parameter();
            self.statements.get(id).into_iter().for_each(|open| open.failed = Some(error.clone()));
            return Step::Silent;
        }
        let call = Call { id, front: None, framed: command.framed };
        let sent = self.send(
            Command::COM_STMT_SEND_LONG_DATA,
            Statement::default(),
            Message::Call(call),
            Role::Plain,
        );
        let Some(open) = self.statements.get(id) else { return Step::End(None) };
        match sent {
            Step::Answer(Answer::Error(error)) => {
                open.failed = Some(error);
                Step::Silent
            }
            Step::Silent => {
                open.long_data = true;
                self.note_underway(id);
                Step::Silent
            }
            step => step,
        }
    }
    /// COM_STMT_FETCH.
    pub(super) fn fetch(&mut self, command: &RawCommand<'_>) -> Step {
        // Id and number of rows.
        let argument = command.head.get(1..).unwrap_or_default();
        let Some([a, b, c, d, ..]) = self.wording().padded::<8>(argument) else {
            return refuse(self.wording().malformed_packet());
        };
        let id = self.meant(u32::from_le_bytes([a, b, c, d]));
        let Some(open) = self.statements.get(id) else {
            return refuse(self.wording().unknown_statement(id, Command::COM_STMT_FETCH));
        };
        if !open.cursor {
            return refuse(self.wording().no_cursor(id));
        }
        if argument.len() < 8 {
            return refuse(self.wording().malformed_packet());
        }
        let call = Call { id, front: None, framed: command.framed };
        self.send(Command::COM_STMT_FETCH, Statement::default(), Message::Call(call), Role::Fetch(id))
    }
    /// COM_STMT_RESET: takes back what was sent in pieces and closes the cursor, where there is any of that.
    pub(super) fn reset_statement(&mut self, command: &RawCommand<'_>) -> Step {
        let argument = command.head.get(1..).unwrap_or_default();
        let Some(id) = self.wording().padded(argument).map(u32::from_le_bytes) else {
            return refuse(self.wording().malformed_packet());
        };
        let id = self.meant(id);
        let Some(open) = self.statements.get(id) else {
            return refuse(self.wording().unknown_statement(id, Command::COM_STMT_RESET));
        };
        if argument.len() < 4 {
            return refuse(self.wording().malformed_packet());
        }
        open.failed = None;
        if !open.is_busy() {
            return Step::Answer(Answer::Ok);
        }
        let call = Call { id, front: None, framed: command.framed };
        self.send(Command::COM_STMT_RESET, Statement::default(), Message::Call(call), Role::Reset(id))
    }
    /// COM_STMT_CLOSE, which has no answer. Connections close the statement themselves once no session has it open.
    pub(super) fn close_statement(&mut self, command: &RawCommand<'_>) -> Step {
        let argument = command.head.get(1..).unwrap_or_default();
        let Some(id) = self.wording().padded(argument).map(u32::from_le_bytes) else {
            return refuse(self.wording().malformed_packet());
        };
        let id = self.meant(id);
        let Some(open) = self.statements.remove(id) else { return Step::Silent };
        if open.is_busy()
            && let Some(lease) = &mut self.lease
        {
            // Another session may have it open as well, and must not find what is underway.
            lease.statements().remove(&open.text);
            self.sync_hold();
            if !self.hold.linger && !self.must_keep() {
                self.give_back();
            }
        }
        Step::Silent
    }
    /// The id that a client means, by the rules of its server: MariaDB has one for the statement that was prepared last.
    fn meant(&mut self, id: u32) -> u32 {
        let last = self.statements.last();
        if id == LAST_PREPARED && self.is_mariadb() && self.statements.get(last).is_some() {
            last
        } else {
            id
        }
    }
    /// Notes what a command has led to.
    pub(super) fn settle_role(&mut self, role: Role, outcome: &Outcome) {
        let Some(lease) = &mut self.lease else { return };
        let has = |flag| outcome.status.is_some_and(|status| status.contains(flag));
        let (id, cursor) = match role {
            Role::Plain => return,
            Role::SetOption { multi_statements } => {
                if outcome.error.is_none() {
                    self.allow_multi_statements(multi_statements);
                }
                return;
            }
            Role::Prepare(preparing) => {
                let Preparing { id, text, statement, routed } = *preparing;
                if let Some(prepared) = outcome.prepared {
                    let caller = Caller { session: self.id, types: &[] };
                    lease.add_statement(&text, prepared, caller);
                    self.statements.insert(id, Open::new(text, statement, routed, prepared.parameters));
                }
                return;
            }
            Role::Execute(id) => (id, has(StatusFlags::SERVER_STATUS_CURSOR_EXISTS)),
            Role::Fetch(id) => (id, !has(StatusFlags::SERVER_STATUS_LAST_ROW_SENT)),
            Role::Reset(id) => (id, false),
        };
        let Some(open) = self.statements.get(id) else { return };
        let was_busy = open.is_busy();
        let failed = outcome.error.is_some();
        (open.long_data, open.cursor) = (false, cursor && !failed);
        if was_busy && failed {
            // What went wrong with data in pieces stays with the server's statement.
            lease.statements().remove(&open.text);
        }
        if was_busy || open.is_busy() {
            self.note_underway(id);
        }
    }
    /// Keeps the connection, and the statement on it, for as long as something is underway.
    fn note_underway(&mut self, id: u32) {
        if let (Some(lease), Some(open)) = (&mut self.lease, self.statements.get(id)) {
            lease.statements().set_busy(&open.text, open.is_busy());
        }
        self.sync_hold();
    }
    fn sync_hold(&mut self) {
        let (long_data, cursor) = self.statements.underway();
        for (reason, underway) in [(Reason::LongData, long_data), (Reason::Cursor, cursor)] {
            match underway {
                true => self.hold.add(reason),
                false => self.hold.reasons.remove(reason),
            }
        }
    }
    /// Writes a command on a statement to the connection in hand. `WireError::Sql`: the statement cannot be prepared there.
    pub(super) fn write_call(&mut self, call: &Call<'_>) -> Result<u64, WireError> {
        let (Some(lease), Some(open)) = (&mut self.lease, self.statements.get(call.id)) else {
            return Err(WireError::Closed);
        };
        let caller = Caller { session: self.id, types: &open.types };
        let prepared = lease.statement(&open.text, caller, &self.variables)?;
        if prepared.parameters != open.parameters {
            return Err(statements::changed().into());
        }
        write_as(lease, prepared.id, call, &open.types)
    }
}

fn write_as(lease: &mut Lease<'_>, id: u32, call: &Call<'_>, types: &[u8]) -> Result<u64, WireError> {
    let mut with = Replacement::new();
    lease.queue_closes();
    let backend = lease.backend();
    let named = backend.capabilities.contains(CapabilityFlags::CLIENT_QUERY_ATTRIBUTES);
    let range = call.front.as_ref().map_or(0..0, |execute| execute.adapt(types, named, &mut with));
    let queued = backend.channel.queued();
    let rest = rewrite(call.framed, id, range, &with, backend.channel.output());
    let length = backend.channel.queued() - queued + rest.len();
    backend.channel.write_raw(rest)?;
    Ok(length as u64)
}

fn refuse(error: SqlError) -> Step {
    Step::Answer(Answer::Error(error))
}
