use super::*;

fn query_rules(f: &Fixture) -> rows::QueryRulesConfig {
    f.ok("LOAD MYSQL QUERY RULES TO RUNTIME");
    match f.daemon.sets.lock().last() {
        Some(ConfigSet::QueryRules(rules)) => rules.clone(),
        _ => panic!("no query rules were published"),
    }
}

#[test]
fn a_row_is_read_and_shown_column_by_column() {
    let f = fixture();
    f.ok("INSERT INTO mysql_query_rules VALUES (1, 1, 'u', 's', 2, 'c', 'p', 3, 'd', 'md', 'mp', 1, 'GLOBAL', 4, 'r', 5, 6, 1, 7, \
         1, 8, 9, 10, 11, 12, 13, 'e', 'o', 1, 2, 14, 1, 1, '{}', 'x')");
    f.ok("INSERT INTO mysql_query_rules (rule_id) VALUES (2)");
    f.ok("INSERT INTO mysql_query_rules_fast_routing VALUES ('u', 's', 1, 2, 'x')");
    let rows::QueryRulesConfig { rules, fast_routing } = query_rules(&f);
    assert_eq!(rules[1], rows::QueryRuleRow::new(2));
    f.admin
        .register(LiveTable {
            name: "runtime_mysql_query_rules",
            schema: Schema::Main,
            ddl: ddl::RUNTIME_MYSQL_QUERY_RULES,
            rows: Arc::new(move || rules.iter().map(rows::QueryRuleRow::values).collect()),
        })
        .unwrap();
    let both =
        ["runtime_mysql_query_rules", "mysql_query_rules"].map(|t| f.rows(&format!("SELECT * FROM {t}")));
    assert_eq!(both[0], both[1]);
    let shown = fast_routing[0].values();
    let text = |text: &str| Value::Text(text.into());
    assert_eq!(shown, [text("u"), text("s"), Value::Int(1), Value::Int(2), text("x")]);
}

#[test]
fn a_negative_number_means_not_set_where_proxysql_takes_it_so() {
    let f = fixture();
    f.ok("INSERT INTO mysql_query_rules (rule_id, destination_hostgroup, next_query_flagIN, mirror_flagOUT, mirror_hostgroup, \
         gtid_from_hostgroup) VALUES (1, -1, -1, -1, -1, -1)");
    assert_eq!(query_rules(&f).rules, [rows::QueryRuleRow::new(1)]);
}

#[test]
fn columns_refuse_what_proxysql_refuses() {
    let f = fixture();
    for (columns, values) in [
        ("active", "2"),
        ("flagIN", "-1"),
        ("flagIN", "NULL"),
        ("proxy_port", "65536"),
        ("negate_match_pattern", "2"),
        ("flagOUT", "-1"),
        ("replace_pattern", "'x'"),
        ("cache_ttl", "0"),
        ("cache_empty_result", "2"),
        ("cache_timeout", "-1"),
        ("reconnect", "2"),
        ("timeout", "-1"),
        ("retries", "1001"),
        ("delay", "-1"),
        ("sticky_conn", "2"),
        ("multiplex", "3"),
        ("log", "2"),
        ("apply", "2"),
        ("attributes", "'{'"),
    ] {
        f.error(&format!("INSERT INTO mysql_query_rules ({columns}) VALUES ({values})"));
    }
    f.error("INSERT INTO mysql_query_rules_fast_routing VALUES ('u', 's', 0, -1, '')");
    f.error("INSERT INTO mysql_query_rules_fast_routing (username, schemaname, destination_hostgroup) VALUES ('u', 's', 1)");
    assert_eq!(f.rows("SELECT * FROM mysql_query_rules"), Vec::<String>::new());
    // Ids are not used again.
    f.ok("INSERT INTO mysql_query_rules (rule_id) VALUES (7)");
    f.ok("DELETE FROM mysql_query_rules");
    f.ok("INSERT INTO mysql_query_rules (active) VALUES (1)");
    assert_eq!(f.one("SELECT rule_id FROM mysql_query_rules"), "8");
}

#[test]
fn a_row_that_cannot_be_typed_refuses_the_load() {
    let f = fixture();
    f.ok("INSERT INTO mysql_query_rules (rule_id, destination_hostgroup) VALUES (1, 'reader')");
    let error = f.error("LOAD MYSQL QUERY RULES TO RUNTIME");
    assert_eq!(
        error.message,
        "mysql_query_rules (rule_id=1).destination_hostgroup: 'reader' is not an integer"
    );
}
