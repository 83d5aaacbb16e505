//! What mysql_hostgroup_attributes says of a hostgroup's servers and connections, as far as something comes of it.

use admin::rows::HostgroupAttributesRow;
use std::sync::Arc;

/// Of one hostgroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// With more servers ONLINE than this, none is used.
    pub max_online: usize,
    /// How much of max_connections may be free, in percent.
    pub free_pct: u32,
    /// Connections are opened until there are so many.
    pub warming: bool,
    /// Most connections opened in a second.
    pub per_second: u32,
    /// Sessions share connections.
    pub multiplex: bool,
    /// Statement for new connections.
    pub init_connect: Option<Arc<str>>,
    /// Variables that sessions may set without that anybody takes note, in lower case.
    pub ignored_variables: Vec<String>,
}

impl Policy {
    /// What a row says, and lines for what of it says nothing here.
    pub fn new(row: &HostgroupAttributesRow) -> (Self, Vec<String>) {
        let mut ignored = Vec::new();
        let mut ignore = |column: &str, what: &str| {
            let id = row.hostgroup_id;
            ignored.push(format!("mysql_hostgroup_attributes: {column} of hostgroup {id}: {what}"));
        };
        let ignored_variables = row.ignored_session_variables().unwrap_or_else(|| {
            ignore("ignore_session_variables", "it is no JSON array of names");
            Vec::new()
        });
        if row.autocommit.is_some() {
            ignore("autocommit", "it has no effect: sessions say themselves whether they commit");
        }
        if !matches!(row.hostgroup_settings.trim(), "" | "{}") {
            ignore("hostgroup_settings", "nothing in it has an effect");
        }
        let init_connect = Some(row.init_connect.trim()).filter(|sql| !sql.is_empty());
        let policy = Self {
            max_online: usize::try_from(row.max_num_online_servers).unwrap_or(usize::MAX),
            free_pct: row.free_connections_pct,
            warming: row.connection_warming,
            per_second: row.throttle_connections_per_sec,
            multiplex: row.multiplex,
            init_connect: init_connect.map(Arc::from),
            ignored_variables,
        };
        (policy, ignored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_to_be_ignored_are_a_list_in_any_case() {
        let with = |list: &str| {
            let list = list.to_owned();
            Policy::new(&HostgroupAttributesRow {
                ignore_session_variables: list,
                ..HostgroupAttributesRow::new(3)
            })
        };
        let (policy, ignored) = with("[\"Sql_Mode\", \" wait_timeout\"]");
        assert_eq!(policy.ignored_variables, ["sql_mode", "wait_timeout"]);
        assert!(ignored.is_empty() && with("").1.is_empty());
        for wrong in ["{}", "[1]", "\"sql_mode\""] {
            let (policy, ignored) = with(wrong);
            assert!(policy.ignored_variables.is_empty());
            assert!(ignored[0].contains("ignore_session_variables of hostgroup 3"), "{ignored:?}");
        }
    }

    #[test]
    fn columns_without_effect_are_told_where_they_say_something() {
        let row = HostgroupAttributesRow {
            autocommit: Some(false),
            hostgroup_settings: "{\"handle_warnings\":1}".into(),
            init_connect: "  ".into(),
            ..HostgroupAttributesRow::new(3)
        };
        let (policy, ignored) = Policy::new(&row);
        assert_eq!((policy.init_connect, ignored.len()), (None, 2));
        assert!(Policy::new(&HostgroupAttributesRow::new(3)).1.is_empty());
    }
}
