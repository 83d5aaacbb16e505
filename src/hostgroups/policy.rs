//! What mysql_hostgroup_attributes says of a hostgroup's servers and connections, as far as something comes of it.

use crate::locality;
use admin::rows::HostgroupAttributesRow;
use serde_json::Value;
use std::sync::Arc;

/// Of one hostgroup.
#[derive(Debug, Clone, PartialEq)]
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
    /// How much more near servers are chosen.
    pub locality: Option<locality::Policy>,
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
        let locality = locality_of(&row.hostgroup_settings).unwrap_or_else(|problem| {
            ignore("hostgroup_settings", &problem);
            None
        });
        let init_connect = Some(row.init_connect.trim()).filter(|sql| !sql.is_empty());
        let policy = Self {
            max_online: usize::try_from(row.max_num_online_servers).unwrap_or(usize::MAX),
            free_pct: row.free_connections_pct,
            warming: row.connection_warming,
            per_second: row.throttle_connections_per_sec,
            multiplex: row.multiplex,
            init_connect: init_connect.map(Arc::from),
            ignored_variables,
            locality,
        };
        (policy, ignored)
    }
}

/// What hostgroup_settings say of locality, or what of them has no effect.
fn locality_of(settings: &str) -> Result<Option<locality::Policy>, String> {
    let settings = settings.trim();
    if settings.is_empty() {
        return Ok(None);
    }
    // The table's own check lets nothing in that is no JSON, but that a file can hold.
    let value: Value = serde_json::from_str(settings).map_err(|_| {
        "it is no JSON, or has a number that is too large; nothing in it has an effect".to_owned()
    })?;
    let policy = locality::Policy::parse(&value).map_err(|rejected| rejected.to_string())?;
    let empty = value.as_object().is_some_and(|object| object.is_empty());
    match policy {
        None if !empty => Err("nothing in it has an effect".to_owned()),
        policy => Ok(policy),
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

    #[test]
    fn a_rejected_locality_policy_is_told_by_field_and_hostgroup_and_never_by_value() {
        let with = |same_region: &str| {
            let object = format!("{{\"same_region_multiplier\":{same_region},\"same_az_multiplier\":4}}");
            let hostgroup_settings = format!("{{\"aws\":{{\"locality_awareness\":{object}}}}}");
            Policy::new(&HostgroupAttributesRow { hostgroup_settings, ..HostgroupAttributesRow::new(3) })
        };
        let (policy, ignored) = with("2");
        assert!(policy.locality.is_some_and(|policy| policy.same_zone == 4.0) && ignored.is_empty());
        let (policy, ignored) = with("\"s3cret\"");
        assert_eq!((policy.locality, ignored.len()), (None, 1));
        assert!(
            ignored[0].contains("hostgroup 3") && ignored[0].contains("same_region_multiplier"),
            "{ignored:?}"
        );
        assert!(!ignored[0].contains("s3cret"));
        // JSON to the table's check, but no number that there is.
        let (policy, ignored) = with("7e999");
        assert_eq!(policy.locality, None);
        assert!(
            ignored[0].contains("a number that is too large") && !ignored[0].contains("7e9"),
            "{ignored:?}"
        );
    }
}
