//! Where a statement goes: its digest and the query rules, before it is sent. And what is counted of it, after the answer.
//!
//! A prepared statement is judged once, when it is prepared; each execution goes where that said.

use super::classify::{Statement, classify, classify_with};
use super::commands::Kind;
use super::known::{Known, Reading, again};
use super::local::Answer;
use super::registry::count;
use super::state::{Message, Role, Session, Step};
use super::straight::is_the_servers;
use super::wait::hold_back;
use crate::config::User;
use crate::digest::statistics::{Key, Sample};
use crate::digest::{Digest, Writer};
use crate::hostgroups::HostgroupId;
use crate::quoting::Quoting;
use crate::rules::{Multiplex, Query, Verdict};
use crate::template::{Gaps, Template};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::channel::{RawCommand, framed};
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
    /// Digest of the statement at hand, if it is counted when its answer has come.
    counted: Option<Arc<Digest>>,
    /// That of the statement that was counted last.
    pub(super) recent: Option<Arc<Digest>>,
    /// What rules allow the statement at hand.
    pub(super) timeout: Option<Duration>,
    /// Rules say that the session keeps its connections.
    pub(super) keeps_connection: bool,
    /// Rules say that its user variables do not matter.
    pub(super) ignores_variables: bool,
}

/// What was found of a statement when it was prepared.
#[derive(Clone, Default)]
pub struct Routed {
    hostgroup: Option<HostgroupId>,
    timeout: Option<u32>,
    delay: Option<u32>,
    multiplex: Option<Multiplex>,
    digest: Option<Arc<Digest>>,
}

/// A statement and what the rules say of it.
pub struct Judged {
    pub(super) statement: Statement,
    pub(super) verdict: Verdict,
    digest: Option<Arc<Digest>>,
}

impl Routed {
    /// The same for one more execution.
    pub(super) fn again(&self, recent: &mut Option<Arc<Digest>>) -> Self {
        let Self { hostgroup, timeout, delay, multiplex, ref digest } = *self;
        Self { hostgroup, timeout, delay, multiplex, digest: again(digest.as_ref(), recent) }
    }
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
            counted: None,
            recent: None,
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
        let at_once = self.variables.default_query_delay.is_zero();
        if self.user.fast_forward && at_once && is_the_servers(sql) && !self.has_untold() {
            // Its connection stays to the end, and has whatever statements leave there.
            let (message, statement) = (Message::Framed(command.framed), Statement::of_tables());
            return self.send(Command::COM_QUERY, statement, message, Role::Plain);
        }
        let (mut statement, digest) = self.read(sql);
        if statement.about_proxy
            && let Some(step) = self.answer_as_proxy(sql)
        {
            return step;
        }
        let verdict = self.rule(sql, digest.as_ref());
        self.count_later(digest);
        if let Some(answer) = answer(&verdict, true) {
            self.count_here();
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
            statement = classify(&text, self.quoting());
            let front = command.head.get(..command.head.len() - sql.len()).unwrap_or_default();
            framed(&[front, &text].concat())
        });
        let framed = rewritten.as_deref().unwrap_or(command.framed);
        self.send(Command::COM_QUERY, statement, Message::Framed(framed), Role::Plain)
    }
    /// What a statement does, and its digest if anybody asks for that.
    fn read(&mut self, sql: &[u8]) -> (Statement, Option<Arc<Digest>>) {
        let options = &self.variables.query_digests;
        let digests = self.route.active && (options.enabled || self.shared.config.rules().reads_digest());
        let quoting = self.quoting();
        let version = self.variables.version();
        let reading = Reading { version, quoting, digests, longest: options.max_query_length };
        let known = &self.shared.known;
        if let Some(found) = known.find(sql, reading, &mut self.route.recent) {
            return found;
        }
        let gaps = known.wants(sql, reading).then(|| Gaps::new(sql, quoting));
        let (statement, digest, template) = self.read_whole(sql, digests, gaps);
        if let Some(template) = template.filter(|_| !statement.of_values) {
            let (statement, digest) = (statement.clone(), digest.clone());
            known.keep(sql, Known { reading, template, statement, digest });
        }
        (statement, digest)
    }
    /// One pass over a statement's text for its effect, its digest, and its template if `gaps` are given.
    fn read_whole<'t>(
        &self,
        sql: &'t [u8],
        digests: bool,
        mut gaps: Option<Gaps<'t>>,
    ) -> (Statement, Option<Arc<Digest>>, Option<Template>) {
        let mut text = Vec::new();
        let mut writer = digests.then(|| Writer::new(&self.variables.query_digests, &mut text));
        let statement = classify_with(sql, self.quoting(), |token, tokens| {
            if let Some(writer) = &mut writer {
                writer.token(token, tokens);
            }
            if let Some(gaps) = &mut gaps {
                gaps.token(token, tokens);
            }
        });
        let digest = digests.then(|| Arc::new(Digest::new(text)));
        (statement, digest, gaps.and_then(Gaps::finish))
    }
    /// A statement that is being prepared, and what the rules say of it.
    pub(super) fn judge(&mut self, sql: &[u8]) -> Judged {
        let (statement, digest) = self.read(sql);
        let verdict = self.rule(sql, digest.as_ref());
        Judged { statement, verdict, digest }
    }
    fn rule(&mut self, text: &[u8], digest: Option<&Arc<Digest>>) -> Verdict {
        let shared = self.shared;
        if !(self.route.active && shared.config.has_rules()) {
            return Verdict::default();
        }
        let verdict = shared.config.rules().judge(&Query {
            user: &self.want.identity.user,
            schema: self.want.profile.schema.as_deref().unwrap_or_default(),
            client: &self.route.client,
            proxy: self.route.proxy,
            flag: self.route.flag,
            text,
            digest,
        });
        self.route.flag = verdict.next_flag.unwrap_or(0);
        verdict
    }
    /// Has the statement at hand counted when its answer has come.
    fn count_later(&mut self, digest: Option<Arc<Digest>>) {
        let is_counted =
            |digest: &Arc<Digest>| self.variables.query_digests.enabled && !digest.text.is_empty();
        self.route.counted = digest.filter(is_counted);
    }
    /// What rules say of a statement that is being prepared: an answer, or what holds for its executions.
    pub(super) fn route_prepared(&mut self, judged: &Judged) -> Result<Routed, Step> {
        let Judged { statement, verdict, digest } = judged;
        if let Some(answer) = answer(verdict, false) {
            return Err(Step::Answer(answer));
        }
        self.aim(verdict.hostgroup, None, Duration::ZERO, statement)?;
        Ok(Routed {
            hostgroup: verdict.hostgroup,
            timeout: verdict.timeout,
            delay: verdict.delay,
            multiplex: verdict.multiplex,
            digest: digest.clone(),
        })
    }
    /// Sends an execution where its statement was prepared to go.
    pub(super) fn route_execution(&mut self, routed: Routed, statement: &Statement) -> Result<(), Step> {
        self.count_later(routed.digest);
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
    /// The number that it counts by.
    pub(super) fn number(&self) -> u32 {
        self.want.processor.number().unwrap_or(self.id)
    }
    fn time_so_far(&mut self) -> Duration {
        self.ended.get_or_insert_with(Instant::now).saturating_duration_since(self.started)
    }
    /// Counts the statement whose answer has come, with the rows that it has affected and sent. Before the session takes note of what it changed.
    pub(super) fn account(&mut self, kind: Kind, rows: [u64; 2]) {
        let time = self.time_so_far();
        // Without a digest most have no kind either.
        if self.variables.commands_stats && self.route.active {
            self.shared.registry.commands.count(self.number(), kind, time);
        }
        if time > self.variables.long_query_time {
            count(&self.shared.registry.counters.slow);
        }
        self.count_as(self.hostgroup.into(), time, rows);
    }
    /// Counts the statement that no server has answered.
    pub(super) fn count_here(&mut self) {
        let time = self.time_so_far();
        self.count_as(NOWHERE, time, [0, 0]);
    }
    /// Counts a statement that took `time`, with the rows that it has affected and sent.
    fn count_as(&mut self, hostgroup: i64, time: Duration, [rows_affected, rows_sent]: [u64; 2]) {
        let Some(digest) = self.route.counted.take() else { return };
        let ended = *self.ended.get_or_insert_with(Instant::now);
        let tracked = self.variables.query_digests.track_hostname;
        let key = Key {
            hostgroup,
            schema: self.want.profile.schema.as_deref().unwrap_or_default(),
            user: &self.want.identity.user,
            client: if tracked { &self.route.client } else { "" },
            digest: digest.number,
        };
        let sample = Sample { ended, time, rows_affected, rows_sent };
        self.shared.statistics.count(&key, &digest.text, &sample);
        self.route.recent = Some(digest);
    }
    /// How the session's server reads quotes.
    pub(super) fn quoting(&self) -> Quoting {
        let plain_backslash = self.status.contains(StatusFlags::SERVER_STATUS_NO_BACKSLASH_ESCAPES);
        Quoting { plain_backslash, ..self.want.profile.quoting(self.sql_mode) }
    }
}

/// The answer that rules give, with ProxySQL's code. No OK can answer COM_STMT_PREPARE (`may_be_ok`).
#[inline]
fn answer(verdict: &Verdict, may_be_ok: bool) -> Option<Answer> {
    if let Some(text) = &verdict.error {
        return Some(Answer::Error(SqlError::new(1148, "42000", &**text)));
    }
    verdict.ok.as_ref().filter(|_| may_be_ok).map(|text| Answer::Note(text.to_string()))
}
