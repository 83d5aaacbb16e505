//! The registry of configuration tables: what exists in `main` and `disk`, and which LOAD/SAVE covers it.

use crate::ddl;

/// A group of tables that LOAD and SAVE move together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// MYSQL SERVERS
    Servers,
    /// MYSQL USERS
    Users,
    /// MYSQL QUERY RULES
    QueryRules,
    /// PROXYSQL SERVERS
    ProxysqlServers,
    /// MYSQL / ADMIN / SQLITESERVER VARIABLES
    Variables,
}

/// One configuration table.
pub(crate) struct TableDef {
    /// Name, in `main` and in `disk`.
    pub name: &'static str,
    /// Its CREATE TABLE text.
    pub ddl: &'static str,
    /// Which LOAD and SAVE commands cover it.
    pub group: Group,
}

impl TableDef {
    /// Makes the table in a schema where it is missing (SQL).
    pub fn ddl_in(&self, schema: &str) -> String {
        self.ddl.replacen("CREATE TABLE ", &format!("CREATE TABLE IF NOT EXISTS {schema}."), 1)
    }
}

/// Every configuration table.
pub(crate) const TABLES: &[TableDef] = &[
    TableDef { name: "mysql_servers", ddl: ddl::MYSQL_SERVERS, group: Group::Servers },
    TableDef {
        name: "mysql_replication_hostgroups",
        ddl: ddl::MYSQL_REPLICATION_HOSTGROUPS,
        group: Group::Servers,
    },
    TableDef {
        name: "mysql_aws_rds_bgd_hostgroups",
        ddl: ddl::MYSQL_AWS_RDS_BGD_HOSTGROUPS,
        group: Group::Servers,
    },
    TableDef {
        name: "mysql_hostgroup_attributes",
        ddl: ddl::MYSQL_HOSTGROUP_ATTRIBUTES,
        group: Group::Servers,
    },
    TableDef { name: "mysql_servers_ssl_params", ddl: ddl::MYSQL_SERVERS_SSL_PARAMS, group: Group::Servers },
    TableDef { name: "mysql_users", ddl: ddl::MYSQL_USERS, group: Group::Users },
    TableDef { name: "mysql_query_rules", ddl: ddl::MYSQL_QUERY_RULES, group: Group::QueryRules },
    TableDef {
        name: "mysql_query_rules_fast_routing",
        ddl: ddl::MYSQL_QUERY_RULES_FAST_ROUTING,
        group: Group::QueryRules,
    },
    TableDef { name: "proxysql_servers", ddl: ddl::PROXYSQL_SERVERS, group: Group::ProxysqlServers },
    TableDef { name: "global_variables", ddl: ddl::GLOBAL_VARIABLES, group: Group::Variables },
];

/// The tables of one group.
pub(crate) fn of(group: Group) -> impl Iterator<Item = &'static TableDef> {
    TABLES.iter().filter(move |table| table.group == group)
}
