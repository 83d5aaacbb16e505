//! Where a statement goes: its digest and the query rules, before it is sent. And what is counted of it, after the answer.
//!
//! A prepared statement is judged once, when it is prepared; each execution goes where that said.

use super::classify::{Statement, classify, classify_with};
use super::commands::Kind;
use super::local::Answer;
use super::registry::count;
use super::state::{Message, Role, Session, Step};
use super::wait::hold_back;
use crate::config::User;
use crate::digest::statistics::{Key, Sample};
use crate::digest::{self, Writer};
use crate::hostgroups::HostgroupId;
use crate::rules::{Multiplex, Query, RuleSet, Verdict};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::channel::{RawCommand, framed};
use wire::tracker::Outcome;
use wire::{Command, SqlError, StatusFlags};

/// The hostgroup under which statements are counted that rules answer.
const NOWHERE: i64 = -1;

/// What a session keeps for that.
pub struct Route {
    /// Where statements go that no rule sends elsewhere.
    default: HostgroupId,
    /// Not for users with fast_forward.
    active: bool,
    client: Box<str>,
    proxy: Option<SocketAddr>,
    /// The flag that the next statement's rules begin with, and the one that those of the statement at hand began with.
    flag: u32,
    flag_before: u32,
    /// Digest of the statement at hand.
    digest: Vec<u8>,
    counted: Option<Counted>,
    /// What rules allow the statement at hand.
    pub(super) timeout: Option<Duration>,
    /// Rules say that the session keeps its connections.
    pub(super) keeps_connection: bool,
    /// Rules say that its user variables do not matter.
    pub(super) ignores_variables: bool,
}

/// A statement that is counted when its answer has come.
struct Counted {
    digest: u64,
    /// Whose digest it is, if not that of the statement at hand.
    prepared: Option<Arc<Routed>>,
}

/// What was found of a statement when it was prepared.
#[derive(Default)]
pub struct Routed {
    hostgroup: Option<HostgroupId>,
    timeout: Option<u32>,
    delay: Option<u32>,
    multiplex: Option<Multiplex>,
    digest: u64,
    /// Empty if it is not to be counted.
    text: Box<[u8]>,
}

/// A statement and what the rules say of it.
pub struct Judged {
    pub(super) statement: Statement,
    pub(super) verdict: Verdict,
    digest: u64,
}

impl Route {
    /// For a session of `user`.
    pub fn new(user: &User, client: IpAddr, proxy: Option<SocketAddr>) -> Self {
        Self {
            default: user.default_hostgroup,
            active: !user.fast_forward,
            client: client.to_string().into(),
            proxy,
            flag: 0,
            flag_before: 0,
            digest: Vec::new(),
            counted: None,
            timeout: None,
            keeps_connection: false,
            ignores_variables: false,
        }
    }
    /// Before each command.
    pub fn begin(&mut self) {
        self.flag_before = self.flag;
        self.counted = None;
        self.timeout = None;
        self.ignores_variables = false;
    }
    /// Before a command that came before.
    pub fn go_back(&mut self) {
        self.flag = self.flag_before;
    }
    /// The session starts anew.
    pub fn restart(&mut self) {
        self.flag = 0;
        self.keeps_connection = false;
    }
}

impl Session<'_> {
    /// COM_QUERY whose text is `sql`, the end of the command's payload.
    pub(super) fn query(&mut self, command: &RawCommand<'_>, sql: &[u8]) -> Step {
        if self.user.fast_forward {
            // Its connection stays to the end, whatever the statement leaves on it.
            let message = Message::Framed(command.framed);
            return self.send(Command::COM_QUERY, Statement::default(), message, Role::Plain);
        }
        let Judged { mut statement, verdict, digest } = self.judge(sql);
        if self.variables.query_digests.enabled && !self.route.digest.is_empty() {
            self.route.counted = Some(Counted { digest, prepared: None });
        }
        if let Some(answer) = answer(&verdict, true) {
            self.count_as(NOWHERE, 0, 0);
            return Step::Answer(answer);
        }
        if let Some(answer) = self.answer_here(&statement, sql) {
            return Step::Answer(answer);
        }
        self.note_multiplex(verdict.multiplex);
        if let Err(step) = self.aim(verdict.hostgroup, verdict.timeout, self.delay(verdict.delay), &statement)
        {
            return step;
        }
        let rewritten = verdict.text.map(|text| {
            statement = classify(&text, self.plain_backslash());
            let front = command.head.get(..command.head.len() - sql.len()).unwrap_or_default();
            framed(&[front, &text].concat())
        });
        let framed = rewritten.as_deref().unwrap_or(command.framed);
        self.send(Command::COM_QUERY, statement, Message::Framed(framed), Role::Plain)
    }
    /// One pass over a statement's text for its effect and its digest; then the rules.
    pub(super) fn judge(&mut self, sql: &[u8]) -> Judged {
        let shared = self.shared;
        let rules = shared.config.rules();
        let plain_backslash = self.plain_backslash();
        let options = &self.variables.query_digests;
        if !self.route.active || !options.enabled && !rules.reads_digest() {
            self.route.digest.clear();
            let statement = classify(sql, plain_backslash);
            let verdict = if self.route.active { self.rule(&rules, sql, 0) } else { Verdict::default() };
            return Judged { statement, verdict, digest: 0 };
        }
        let mut writer = Writer::new(options, &mut self.route.digest);
        let statement = classify_with(sql, plain_backslash, |token, tokens| {
            writer.token(token, tokens);
        });
        let digest = digest::hash(&self.route.digest);
        Judged { statement, verdict: self.rule(&rules, sql, digest), digest }
    }
    fn rule(&mut self, rules: &RuleSet, text: &[u8], digest: u64) -> Verdict {
        if rules.is_empty() {
            return Verdict::default();
        }
        let verdict = rules.judge(&Query {
            user: &self.want.identity.user,
            schema: self.want.profile.schema.as_deref().unwrap_or_default(),
            client: &self.route.client,
            proxy: self.route.proxy,
            flag: self.route.flag,
            text,
            digest: (digest, &self.route.digest),
        });
        self.route.flag = verdict.next_flag.unwrap_or(0);
        verdict
    }
    /// What rules say of a statement that is being prepared: an answer, or what holds for its executions.
    pub(super) fn route_prepared(&mut self, judged: &Judged) -> Result<Arc<Routed>, Step> {
        let Judged { statement, verdict, digest } = judged;
        if let Some(answer) = answer(verdict, false) {
            return Err(Step::Answer(answer));
        }
        self.aim(verdict.hostgroup, None, Duration::ZERO, statement)?;
        Ok(Arc::new(Routed {
            hostgroup: verdict.hostgroup,
            timeout: verdict.timeout,
            delay: verdict.delay,
            multiplex: verdict.multiplex,
            digest: *digest,
            text: self.route.digest.as_slice().into(),
        }))
    }
    /// Sends an execution where its statement was prepared to go.
    pub(super) fn route_execution(
        &mut self,
        routed: &Arc<Routed>,
        statement: &Statement,
    ) -> Result<(), Step> {
        if self.variables.query_digests.enabled && !routed.text.is_empty() {
            let prepared = Some(Arc::clone(routed));
            self.route.counted = Some(Counted { digest: routed.digest, prepared });
        }
        self.note_multiplex(routed.multiplex);
        self.aim(routed.hostgroup, routed.timeout, self.delay(routed.delay), statement)
    }
    /// How long a statement is held back, of which a rule may say something.
    fn delay(&self, ruled: Option<u32>) -> Duration {
        ruled.map_or(self.variables.default_query_delay, |ms| Duration::from_millis(ms.into()))
    }
    /// Chooses the hostgroup of a statement, and holds it back for `delay`. One that asks what the last statement
    /// left goes where that went; and a session whose connection is bound stays where it is, when it comes to that.
    fn aim(
        &mut self,
        hostgroup: Option<HostgroupId>,
        timeout: Option<u32>,
        delay: Duration,
        statement: &Statement,
    ) -> Result<(), Step> {
        self.route.timeout = timeout.filter(|&ms| ms != 0).map(|ms| Duration::from_millis(ms.into()));
        if !(delay.is_zero() || self.repeats) {
            hold_back(&self.socket, &self.registered.entry, delay)?;
        }
        if !(statement.reads_diagnostics || statement.reads_counts) {
            self.hostgroup = hostgroup.unwrap_or(self.route.default);
        }
        Ok(())
    }
    /// Commands that no rule is for go to the connection in hand, or to the user's hostgroup.
    pub(super) fn aim_unruled(&mut self) {
        if self.lease.is_none() {
            self.hostgroup = self.route.default;
        }
    }
    fn note_multiplex(&mut self, multiplex: Option<Multiplex>) {
        match multiplex {
            Some(Multiplex::Off) => self.route.keeps_connection = true,
            Some(Multiplex::On) => self.route.keeps_connection = false,
            Some(Multiplex::IgnoreVariables) => self.route.ignores_variables = true,
            None => {}
        }
    }
    /// Counts the statement whose answer has come. Before the session takes note of what it changed.
    pub(super) fn account(&mut self, kind: Kind, outcome: &Outcome) {
        let time = self.ended.get_or_insert_with(Instant::now).saturating_duration_since(self.started);
        if self.variables.commands_stats {
            self.shared.registry.commands.count(self.id, kind, time);
        }
        if time > self.variables.long_query_time {
            count(&self.shared.registry.counters.slow);
        }
        self.count_as(self.hostgroup.into(), outcome.affected_rows, outcome.rows);
    }
    fn count_as(&mut self, hostgroup: i64, rows_affected: u64, rows_sent: u64) {
        let Some(Counted { digest, prepared }) = self.route.counted.take() else { return };
        let ended = *self.ended.get_or_insert_with(Instant::now);
        let tracked = self.variables.query_digests.track_hostname;
        let key = Key {
            hostgroup,
            schema: self.want.profile.schema.as_deref().unwrap_or_default(),
            user: &self.want.identity.user,
            client: if tracked { &self.route.client } else { "" },
            digest,
        };
        let text = prepared.as_ref().map_or(self.route.digest.as_slice(), |routed| &routed.text);
        let sample =
            Sample { ended, time: ended.saturating_duration_since(self.started), rows_affected, rows_sent };
        self.shared.statistics.count(&key, text, &sample);
    }
    pub(super) fn plain_backslash(&self) -> bool {
        self.status.contains(StatusFlags::SERVER_STATUS_NO_BACKSLASH_ESCAPES)
    }
}

/// The answer that rules give, with ProxySQL's code. No OK can answer COM_STMT_PREPARE (`may_be_ok`).
fn answer(verdict: &Verdict, may_be_ok: bool) -> Option<Answer> {
    if let Some(text) = &verdict.error {
        return Some(Answer::Error(SqlError::new(1148, "42000", &**text)));
    }
    verdict.ok.as_ref().filter(|_| may_be_ok).map(|text| Answer::Note(text.to_string()))
}
