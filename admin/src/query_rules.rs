//! mysql_query_rules and mysql_query_rules_fast_routing: rows, typed and shown.

use crate::Value;
use crate::read::{Cells, table};
use rusqlite::Connection;
use wire::SqlError;

/// A row of mysql_query_rules. Columns that may be NULL are optional.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "fields are columns, by their names")]
pub struct QueryRuleRow {
    pub rule_id: i64,
    pub active: bool,
    pub username: Option<String>,
    pub schemaname: Option<String>,
    pub flag_in: u32,
    pub client_addr: Option<String>,
    pub proxy_addr: Option<String>,
    pub proxy_port: Option<u16>,
    pub digest: Option<String>,
    pub match_digest: Option<String>,
    pub match_pattern: Option<String>,
    pub negate_match_pattern: bool,
    pub re_modifiers: Option<String>,
    pub flag_out: Option<u32>,
    pub replace_pattern: Option<String>,
    pub destination_hostgroup: Option<u32>,
    pub cache_ttl: Option<u32>,
    pub cache_empty_result: Option<bool>,
    pub cache_timeout: Option<u32>,
    pub reconnect: Option<bool>,
    /// Milliseconds.
    pub timeout: Option<u32>,
    pub retries: Option<u32>,
    /// Milliseconds.
    pub delay: Option<u32>,
    pub next_query_flag_in: Option<u32>,
    pub mirror_flag_out: Option<u32>,
    pub mirror_hostgroup: Option<u32>,
    pub error_msg: Option<String>,
    pub ok_msg: Option<String>,
    pub sticky_conn: Option<bool>,
    /// 0, 1 or 2.
    pub multiplex: Option<u8>,
    pub gtid_from_hostgroup: Option<u32>,
    pub log: Option<bool>,
    pub apply: bool,
    pub attributes: String,
    pub comment: Option<String>,
}

impl QueryRuleRow {
    /// A row whose other columns have the defaults of mysql_query_rules.
    pub fn new(rule_id: i64) -> Self {
        Self {
            rule_id,
            active: false,
            username: None,
            schemaname: None,
            flag_in: 0,
            client_addr: None,
            proxy_addr: None,
            proxy_port: None,
            digest: None,
            match_digest: None,
            match_pattern: None,
            negate_match_pattern: false,
            re_modifiers: Some("CASELESS".into()),
            flag_out: None,
            replace_pattern: None,
            destination_hostgroup: None,
            cache_ttl: None,
            cache_empty_result: None,
            cache_timeout: None,
            reconnect: None,
            timeout: None,
            retries: None,
            delay: None,
            next_query_flag_in: None,
            mirror_flag_out: None,
            mirror_hostgroup: None,
            error_msg: None,
            ok_msg: None,
            sticky_conn: None,
            multiplex: None,
            gtid_from_hostgroup: None,
            log: None,
            apply: false,
            attributes: String::new(),
            comment: None,
        }
    }

    fn read(cells: &Cells<'_>) -> Result<Self, SqlError> {
        Ok(Self {
            rule_id: cells.number("rule_id")?,
            active: cells.flag("active")?,
            username: cells.optional_text("username")?,
            schemaname: cells.optional_text("schemaname")?,
            flag_in: cells.number("flagIN")?,
            client_addr: cells.optional_text("client_addr")?,
            proxy_addr: cells.optional_text("proxy_addr")?,
            proxy_port: cells.optional_number("proxy_port")?,
            digest: cells.optional_text("digest")?,
            match_digest: cells.optional_text("match_digest")?,
            match_pattern: cells.optional_text("match_pattern")?,
            negate_match_pattern: cells.flag("negate_match_pattern")?,
            re_modifiers: cells.optional_text("re_modifiers")?,
            flag_out: cells.optional_number("flagOUT")?,
            replace_pattern: cells.optional_text("replace_pattern")?,
            destination_hostgroup: cells.number_if_set("destination_hostgroup")?,
            cache_ttl: cells.optional_number("cache_ttl")?,
            cache_empty_result: cells.optional_flag("cache_empty_result")?,
            cache_timeout: cells.optional_number("cache_timeout")?,
            reconnect: cells.optional_flag("reconnect")?,
            timeout: cells.optional_number("timeout")?,
            retries: cells.optional_number("retries")?,
            delay: cells.optional_number("delay")?,
            next_query_flag_in: cells.number_if_set("next_query_flagIN")?,
            mirror_flag_out: cells.number_if_set("mirror_flagOUT")?,
            mirror_hostgroup: cells.number_if_set("mirror_hostgroup")?,
            error_msg: cells.optional_text("error_msg")?,
            ok_msg: cells.optional_text("OK_msg")?,
            sticky_conn: cells.optional_flag("sticky_conn")?,
            multiplex: cells.optional_number("multiplex")?,
            gtid_from_hostgroup: cells.number_if_set("gtid_from_hostgroup")?,
            log: cells.optional_flag("log")?,
            apply: cells.flag("apply")?,
            attributes: cells.text("attributes")?,
            comment: cells.optional_text("comment")?,
        })
    }

    /// The row as runtime_mysql_query_rules shows it.
    pub fn values(&self) -> Vec<Value> {
        vec![
            self.rule_id.into(),
            self.active.into(),
            self.username.as_deref().into(),
            self.schemaname.as_deref().into(),
            self.flag_in.into(),
            self.client_addr.as_deref().into(),
            self.proxy_addr.as_deref().into(),
            self.proxy_port.into(),
            self.digest.as_deref().into(),
            self.match_digest.as_deref().into(),
            self.match_pattern.as_deref().into(),
            self.negate_match_pattern.into(),
            self.re_modifiers.as_deref().into(),
            self.flag_out.into(),
            self.replace_pattern.as_deref().into(),
            self.destination_hostgroup.into(),
            self.cache_ttl.into(),
            self.cache_empty_result.into(),
            self.cache_timeout.into(),
            self.reconnect.into(),
            self.timeout.into(),
            self.retries.into(),
            self.delay.into(),
            self.next_query_flag_in.into(),
            self.mirror_flag_out.into(),
            self.mirror_hostgroup.into(),
            self.error_msg.as_deref().into(),
            self.ok_msg.as_deref().into(),
            self.sticky_conn.into(),
            self.multiplex.into(),
            self.gtid_from_hostgroup.into(),
            self.log.into(),
            self.apply.into(),
            self.attributes.as_str().into(),
            self.comment.as_deref().into(),
        ]
    }
}

/// A row of mysql_query_rules_fast_routing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FastRoutingRow {
    /// username
    pub username: String,
    /// schemaname
    pub schemaname: String,
    /// flagIN
    pub flag_in: u32,
    /// destination_hostgroup
    pub destination_hostgroup: u32,
    /// comment
    pub comment: String,
}

impl FastRoutingRow {
    fn read(cells: &Cells<'_>) -> Result<Self, SqlError> {
        Ok(Self {
            username: cells.text("username")?,
            schemaname: cells.text("schemaname")?,
            flag_in: cells.number("flagIN")?,
            destination_hostgroup: cells.number("destination_hostgroup")?,
            comment: cells.text("comment")?,
        })
    }

    /// The row as runtime_mysql_query_rules_fast_routing shows it.
    pub fn values(&self) -> Vec<Value> {
        vec![
            self.username.as_str().into(),
            self.schemaname.as_str().into(),
            self.flag_in.into(),
            self.destination_hostgroup.into(),
            self.comment.as_str().into(),
        ]
    }
}

/// Everything LOAD MYSQL QUERY RULES commits at once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueryRulesConfig {
    /// mysql_query_rules
    pub rules: Vec<QueryRuleRow>,
    /// mysql_query_rules_fast_routing
    pub fast_routing: Vec<FastRoutingRow>,
}

/// Reads what LOAD MYSQL QUERY RULES commits.
pub(crate) fn read(conn: &Connection) -> Result<QueryRulesConfig, SqlError> {
    let order = "username, schemaname, flagIN";
    Ok(QueryRulesConfig {
        rules: table(conn, "mysql_query_rules", "rule_id", QueryRuleRow::read)?,
        fast_routing: table(conn, "mysql_query_rules_fast_routing", order, FastRoutingRow::read)?,
    })
}
