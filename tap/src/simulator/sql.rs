//! The statements of the control connection. Contract: RDS_BGD_CONTROL, RDS_BGD_TOPOLOGY, RDS_BGD_PROBE_LOG and
//! READONLY_STATUS of the simulator specification.

use super::RdsBgdTopologyRow;
use crate::connection::{Endpoint, quote};
use std::num::NonZeroU16;

/// ER_NO_SUCH_TABLE
const NO_SUCH_TABLE: u16 = 1146;
const NO_SUCH_TABLE_MESSAGE: &str = "Table 'mysql.rds_topology' doesn't exist";

pub const PROBE_LOG_LAST_SEQUENCE: &str = "SELECT COALESCE(MAX(sequence_id),0) FROM RDS_BGD_PROBE_LOG";

pub fn probe_log_since(sequence_id: u64) -> String {
    format!(
        "SELECT sequence_id,backend_ip,backend_port,probe_kind,encrypted FROM RDS_BGD_PROBE_LOG \
         WHERE sequence_id>{sequence_id} ORDER BY sequence_id"
    )
}

pub fn read_only_update(backend: &Endpoint, read_only: bool) -> String {
    format!(
        "INSERT OR REPLACE INTO READONLY_STATUS(hostname,port,read_only) VALUES ({},{},{})",
        quote(&backend.host),
        backend.port,
        u8::from(read_only)
    )
}

/// The table is present with exactly `rows`, which may be none.
pub fn topology_update(backends: &[Endpoint], rows: &[RdsBgdTopologyRow]) -> Vec<String> {
    let mut statements = Vec::new();
    for backend in backends {
        statements.push(delete_rows(backend));
        statements.push(control(backend, true, 0, ""));
        statements.extend(rows.iter().enumerate().map(|(order, row)| insert_row(backend, order, row)));
    }
    statements
}

pub fn topology_drop(backends: &[Endpoint]) -> Vec<String> {
    let drop =
        |backend| [delete_rows(backend), control(backend, false, NO_SUCH_TABLE, NO_SUCH_TABLE_MESSAGE)];
    backends.iter().flat_map(drop).collect()
}

/// Error 1146 says that the table is absent, any other that it is there but cannot be read.
pub fn topology_error(backends: &[Endpoint], error_code: NonZeroU16, message: &str) -> Vec<String> {
    let code = error_code.get();
    backends.iter().map(|backend| control(backend, code != NO_SUCH_TABLE, code, message)).collect()
}

pub fn cleanup() -> Vec<String> {
    [
        "READONLY_STATUS",
        "RDS_BGD_TOPOLOGY",
        "RDS_BGD_CONTROL",
        "RDS_BGD_PROBE_LOG",
        "RDS_BGD_BACKEND",
        "RDS_BGD_DNS",
    ]
    .map(|table| format!("DELETE FROM {table}"))
    .into()
}

fn delete_rows(backend: &Endpoint) -> String {
    format!(
        "DELETE FROM RDS_BGD_TOPOLOGY WHERE backend_ip={} AND backend_port={}",
        quote(&backend.host),
        backend.port
    )
}

fn control(backend: &Endpoint, present: bool, error_code: u16, message: &str) -> String {
    format!(
        "INSERT OR REPLACE INTO RDS_BGD_CONTROL(backend_ip,backend_port,topology_present,error_code,error_msg) \
         VALUES ({},{},{},{error_code},{})",
        quote(&backend.host),
        backend.port,
        u8::from(present),
        quote(message)
    )
}

fn insert_row(backend: &Endpoint, order: usize, row: &RdsBgdTopologyRow) -> String {
    format!(
        "INSERT INTO RDS_BGD_TOPOLOGY(backend_ip,backend_port,row_order,id,endpoint,topology_port,role,status) \
         VALUES ({},{},{order},{},{},{},{},{})",
        quote(&backend.host),
        backend.port,
        quote(&row.id),
        quote(&row.endpoint),
        row.port,
        quote(&row.role),
        quote(&row.status)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backends() -> Vec<Endpoint> {
        vec![Endpoint::new("127.10.0.11", 3306), Endpoint::new("127.10.0.14", 3306)]
    }

    #[test]
    fn an_update_replaces_rows_and_clears_errors_on_each_backend() {
        let row = RdsBgdTopologyRow {
            id: "o'1".into(),
            endpoint: "db-1.example".into(),
            port: 3307,
            role: "R".into(),
            status: "it''s".into(),
        };
        let statements = topology_update(&backends(), &[row.clone(), row]);
        assert_eq!(statements.len(), 8);
        assert_eq!(
            statements[0],
            "DELETE FROM RDS_BGD_TOPOLOGY WHERE backend_ip='127.10.0.11' AND backend_port=3306"
        );
        assert!(statements[1].ends_with("VALUES ('127.10.0.11',3306,1,0,'')"), "{}", statements[1]);
        let values = "VALUES ('127.10.0.11',3306,1,'o''1','db-1.example',3307,'R','it''''s')";
        assert!(statements[3].ends_with(values), "{}", statements[3]);
        assert!(statements[4].contains("backend_ip='127.10.0.14'"));
    }

    #[test]
    fn an_update_without_rows_leaves_an_empty_table() {
        let statements = topology_update(&backends()[..1], &[]);
        assert_eq!(statements.len(), 2);
        assert!(statements[1].ends_with("VALUES ('127.10.0.11',3306,1,0,'')"), "{}", statements[1]);
    }

    #[test]
    fn a_drop_removes_rows_and_records_1146() {
        let statements = topology_drop(&backends()[..1]);
        assert!(statements[0].starts_with("DELETE FROM RDS_BGD_TOPOLOGY"));
        let values = "VALUES ('127.10.0.11',3306,0,1146,'Table ''mysql.rds_topology'' doesn''t exist')";
        assert!(statements[1].ends_with(values), "{}", statements[1]);
    }

    #[test]
    fn only_error_1146_makes_the_table_absent() {
        let generic = topology_error(&backends(), NonZeroU16::new(1105).unwrap(), "it's broken");
        assert_eq!(generic.len(), 2);
        assert!(generic[0].ends_with("VALUES ('127.10.0.11',3306,1,1105,'it''s broken')"), "{}", generic[0]);
        let absent = topology_error(&backends()[..1], NonZeroU16::new(1146).unwrap(), "gone");
        assert!(absent[0].ends_with("VALUES ('127.10.0.11',3306,0,1146,'gone')"), "{}", absent[0]);
    }

    #[test]
    fn read_only_is_keyed_by_hostname_and_port() {
        let statement = read_only_update(&Endpoint::new("db-1.example", 3306), true);
        assert!(statement.ends_with("VALUES ('db-1.example',3306,1)"), "{statement}");
    }
}
