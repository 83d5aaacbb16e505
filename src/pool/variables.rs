//! Session variables: which can be set again on another connection, and how their values are written in a SET statement.

/// What SET NAMES changes.
pub const CHARACTER_SETS: [&str; 4] =
    ["character_set_client", "character_set_connection", "character_set_results", "collation_connection"];

/// Variables that decide what the text of a statement means, and the types of what it gives.
pub const OF_TEXTS: [&str; 8] = [
    "character_set_client",
    "character_set_connection",
    "collation_connection",
    "default_collation_for_utf8mb4",
    "div_precision_increment",
    "old_mode",
    "sql_auto_is_null",
    "sql_mode",
];

/// Variables whose value is all there is to them: no effect on a running transaction, none on other sessions. In order.
const RESTORABLE: [&str; 77] = [
    "auto_increment_increment",
    "auto_increment_offset",
    "autocommit",
    "big_tables",
    "bulk_insert_buffer_size",
    "character_set_client",
    "character_set_connection",
    "character_set_results",
    "collation_connection",
    "completion_type",
    "cte_max_recursion_depth",
    "default_storage_engine",
    "default_tmp_storage_engine",
    "div_precision_increment",
    "eq_range_index_dive_limit",
    "explicit_defaults_for_timestamp",
    "foreign_key_checks",
    "group_concat_max_len",
    "idle_transaction_timeout",
    "information_schema_stats_expiry",
    "innodb_lock_wait_timeout",
    "innodb_strict_mode",
    "interactive_timeout",
    "join_buffer_size",
    "lc_messages",
    "lc_time_names",
    "lock_wait_timeout",
    "long_query_time",
    "low_priority_updates",
    "max_error_count",
    "max_execution_time",
    "max_heap_table_size",
    "max_join_size",
    "max_length_for_sort_data",
    "max_recursive_iterations",
    "max_seeks_for_key",
    "max_sort_length",
    "max_sp_recursion_depth",
    "max_statement_time",
    "min_examined_row_limit",
    "net_read_timeout",
    "net_write_timeout",
    "old_mode",
    "optimizer_prune_level",
    "optimizer_search_depth",
    "optimizer_switch",
    "optimizer_use_condition_selectivity",
    "query_cache_type",
    "range_alloc_block_size",
    "range_optimizer_max_mem_size",
    "read_buffer_size",
    "read_rnd_buffer_size",
    "sort_buffer_size",
    "sql_auto_is_null",
    "sql_big_selects",
    "sql_buffer_result",
    "sql_mode",
    "sql_notes",
    "sql_quote_show_create",
    "sql_require_primary_key",
    "sql_safe_updates",
    "sql_select_limit",
    "sql_warnings",
    "standard_compliant_cte",
    "storage_engine",
    "time_zone",
    "tmp_memory_table_size",
    "tmp_table_size",
    "transaction_isolation",
    "transaction_read_only",
    "tx_isolation",
    "tx_read_only",
    "unique_checks",
    "updatable_views_with_limit",
    "use_stat_tables",
    "wait_timeout",
    "windowing_use_high_precision",
];

/// Of these, what has effects beyond its value: the server may close the connection after COMMIT; sql_big_selects changes too.
const FAR_REACHING: [&str; 2] = ["completion_type", "max_join_size"];

/// Variables that have two names: setting one sets the other.
const TWINS: [(&str, &str); 4] = [
    ("default_storage_engine", "storage_engine"),
    ("tmp_memory_table_size", "tmp_table_size"),
    ("transaction_isolation", "tx_isolation"),
    ("transaction_read_only", "tx_read_only"),
];

/// Others that servers are asked to report by name, so that the process list can name them.
const OTHERS: [&str; 24] = [
    "binlog_format",
    "binlog_row_image",
    "character_set_database",
    "character_set_server",
    "collation_database",
    "collation_server",
    "default_collation_for_utf8mb4",
    "gtid_next",
    "identity",
    "insert_id",
    "last_insert_id",
    "profiling",
    "pseudo_replica_mode",
    "pseudo_slave_mode",
    "pseudo_thread_id",
    "rand_seed1",
    "rand_seed2",
    "session_track_gtids",
    "session_track_schema",
    "session_track_state_change",
    "session_track_system_variables",
    "session_track_transaction_info",
    "sql_log_bin",
    "timestamp",
];

/// Variables that MySQL has turned round inside: `SET foreign_key_checks = DEFAULT` gives them the opposite of their global value.
/// Seen with 9.7.
pub const MISTAKEN_DEFAULT: [&str; 2] = ["foreign_key_checks", "unique_checks"];

/// Variables that are on or off.
const SWITCHES: [&str; 15] = [
    "autocommit",
    "big_tables",
    "foreign_key_checks",
    "innodb_strict_mode",
    "low_priority_updates",
    "sql_auto_is_null",
    "sql_big_selects",
    "sql_buffer_result",
    "sql_notes",
    "sql_quote_show_create",
    "sql_safe_updates",
    "sql_warnings",
    "transaction_read_only",
    "tx_read_only",
    "unique_checks",
];

/// Whether setting the variable (in lower case) on another connection brings all of its effect there.
pub fn is_restorable(name: &str) -> bool {
    RESTORABLE.binary_search(&name).is_ok() && !FAR_REACHING.contains(&name)
}

/// The other name of a variable.
pub fn twin(name: &str) -> Option<&'static str> {
    TWINS.iter().find_map(|&(one, other)| match name {
        _ if name == one => Some(other),
        _ if name == other => Some(one),
        _ => None,
    })
}

/// Names of all variables that servers are asked to report, separated by commas.
pub fn reported() -> String {
    [&RESTORABLE[..], &OTHERS].concat().join(",")
}

/// A value as servers report it, as SET takes it; `None` if that is not certain.
pub fn literal(name: &str, value: &str) -> Option<String> {
    if name == "character_set_results" && value.is_empty() {
        return Some("NULL".to_owned());
    }
    let digits = value.strip_prefix('-').unwrap_or(value);
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Some(switch(name, value).unwrap_or_else(|| value.to_owned()));
    }
    // How a backslash is read depends on the sql_mode, and other bytes on the character set.
    let plain = value.bytes().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'\\' | b'\''));
    plain.then(|| switch(name, value).unwrap_or_else(|| format!("'{value}'")))
}

/// The value of a switch in one spelling.
fn switch(name: &str, value: &str) -> Option<String> {
    let is = |texts: [&str; 3]| texts.iter().any(|text| value.eq_ignore_ascii_case(text));
    match SWITCHES.contains(&name) {
        true if is(["ON", "1", "TRUE"]) => Some("'ON'".to_owned()),
        true if is(["OFF", "0", "FALSE"]) => Some("'OFF'".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order_and_in_one_list_each() {
        assert!(RESTORABLE.is_sorted() && OTHERS.is_sorted());
        assert!(!OTHERS.iter().any(|name| is_restorable(name)));
        assert!(SWITCHES.iter().chain(&CHARACTER_SETS).all(|name| is_restorable(name)));
        assert!(!is_restorable("timestamp") && !is_restorable("completion_type"));
        assert!(TWINS.iter().all(|(one, other)| is_restorable(one) && is_restorable(other)));
    }

    #[test]
    fn values_are_written_as_set_takes_them() {
        for (name, value, expected) in [
            ("character_set_results", "", Some("NULL")),
            ("sql_mode", "", Some("''")),
            ("time_zone", "+01:00", Some("'+01:00'")),
            ("wait_timeout", "100", Some("100")),
            ("max_statement_time", "1.000000", Some("1.000000")),
            ("autocommit", "OFF", Some("'OFF'")),
            ("autocommit", "1", Some("'ON'")),
            ("time_zone", "a'b", None),
            ("time_zone", "a\\b", None),
            ("lc_messages", "\u{fc}", None),
        ] {
            assert_eq!(literal(name, value).as_deref(), expected, "{name}={value}");
        }
    }
}
