//! Reads the answer to `SELECT * FROM mysql.rds_topology`.

use crate::hostgroups::Endpoint;
use wire::backend::TextResult;

/// What the table holds; seen by the server as it is written here.
pub const METADATA: &str = "SELECT * FROM mysql.rds_topology";

/// MySQL's ER_NO_SUCH_TABLE.
pub const NO_SUCH_TABLE: u16 = 1146;

/// What one answer says about the deployment (contract: "Topology Recognition").
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Topology {
    /// No rows: the topology has drained.
    Empty,
    /// Rows that are not of a blue/green deployment, or that name no target.
    Unclassified,
    /// The first TARGET row. Its port is not read: blue and green share the blue writer's port.
    Target {
        /// Host name of the green writer, as the row has it.
        endpoint: String,
        /// AWS's status text, empty where the cell is NULL.
        status: String,
    },
}

const TARGET_ROLE: &str = "BLUE_GREEN_DEPLOYMENT_TARGET";

impl Topology {
    /// Classifies an answer. The first row alone decides whether it is blue/green: both its role and its status are there.
    pub fn parse(result: &TextResult) -> Self {
        if result.rows.is_empty() {
            return Self::Empty;
        }
        let Some((role, status)) = blue_green_columns(result) else { return Self::Unclassified };
        let is_target = |row: &&Vec<Option<Vec<u8>>>| {
            cell(row, role).is_some_and(|text| text.eq_ignore_ascii_case(TARGET_ROLE.as_bytes()))
        };
        let Some(target) = result.rows.iter().find(is_target) else { return Self::Unclassified };
        let endpoint = column(result, "endpoint").and_then(|at| cell(target, at));
        Self::Target { endpoint: text(endpoint), status: text(cell(target, status)) }
    }
}

/// Whether an answer is of a blue/green deployment.
pub fn is_blue_green(result: &TextResult) -> bool {
    blue_green_columns(result).is_some()
}

/// The servers that an answer names which is not of a blue/green deployment: those of a Multi-AZ DB cluster. Rows without a
/// name or a usable port name none.
pub fn cluster_members(result: &TextResult) -> Vec<Endpoint> {
    let (Some(host), Some(port)) = (column(result, "endpoint"), column(result, "port")) else {
        return Vec::new();
    };
    let member = |row: &Vec<Option<Vec<u8>>>| {
        let (host, port) = (text(cell(row, host)), text(cell(row, port)).trim().parse().ok()?);
        (!host.trim().is_empty() && port != 0).then(|| Endpoint::new(&host, port))
    };
    result.rows.iter().filter_map(member).collect()
}

/// Where role and status are, if the first row has both.
fn blue_green_columns(result: &TextResult) -> Option<(usize, usize)> {
    let (role, status) = (column(result, "role")?, column(result, "status")?);
    let first = result.rows.first()?;
    (cell(first, role).is_some() && cell(first, status).is_some()).then_some((role, status))
}

fn column(result: &TextResult, name: &str) -> Option<usize> {
    result.columns.iter().position(|column| column.eq_ignore_ascii_case(name))
}

fn cell(row: &[Option<Vec<u8>>], at: usize) -> Option<&[u8]> {
    row.get(at)?.as_deref()
}

fn text(cell: Option<&[u8]>) -> String {
    String::from_utf8_lossy(cell.unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [&str; 5] = ["id", "endpoint", "port", "role", "status"];
    const SOURCE: &str = "BLUE_GREEN_DEPLOYMENT_SOURCE";

    fn result(columns: &[&str], rows: &[&[Option<&str>]]) -> TextResult {
        TextResult {
            columns: columns.iter().map(ToString::to_string).collect(),
            rows: rows
                .iter()
                .map(|row| row.iter().map(|cell| cell.map(|text| text.as_bytes().to_vec())).collect())
                .collect(),
            ..TextResult::default()
        }
    }

    fn target(endpoint: &str, status: &str) -> Topology {
        Topology::Target { endpoint: endpoint.into(), status: status.into() }
    }

    #[test]
    fn no_rows_is_drained_whatever_the_columns() {
        assert_eq!(Topology::parse(&result(&COLUMNS, &[])), Topology::Empty);
        assert_eq!(Topology::parse(&result(&[], &[])), Topology::Empty);
    }

    #[test]
    fn the_first_target_row_counts() {
        let rows: &[&[Option<&str>]] = &[
            &[Some("1"), Some("db.x"), Some("3306"), Some(SOURCE), Some("AVAILABLE")],
            &[
                Some("2"),
                Some("db-green-1.x"),
                Some("bad"),
                Some("blue_green_deployment_target"),
                Some("Available"),
            ],
            &[Some("3"), Some("r-green-1.x"), Some("3306"), Some(TARGET_ROLE), Some("SWITCHOVER_COMPLETED")],
        ];
        assert_eq!(Topology::parse(&result(&COLUMNS, rows)), target("db-green-1.x", "Available"));
    }

    #[test]
    fn the_status_of_the_target_counts() {
        let source: &[Option<&str>] = &[Some("1"), Some("db"), Some("1"), Some(SOURCE), Some("AVAILABLE")];
        let ahead: &[Option<&str>] =
            &[Some("2"), Some("g"), Some("1"), Some(TARGET_ROLE), Some("SWITCHOVER_INITIATED")];
        assert_eq!(Topology::parse(&result(&COLUMNS, &[source, ahead])), target("g", "SWITCHOVER_INITIATED"));
    }

    #[test]
    fn columns_are_found_by_name_in_any_case_and_order() {
        let rows: &[&[Option<&str>]] = &[&[Some("AVAILABLE"), Some(TARGET_ROLE), Some("g")]];
        assert_eq!(Topology::parse(&result(&["STATUS", "Role", "EndPoint"], rows)), target("g", "AVAILABLE"));
    }

    #[test]
    fn the_first_row_alone_classifies() {
        let source: &[Option<&str>] = &[Some("1"), Some("db"), Some("1"), Some(SOURCE), None];
        let null_role: &[Option<&str>] = &[Some("1"), Some("db"), Some("1"), None, Some("AVAILABLE")];
        let empty: &[Option<&str>] = &[Some("1"), Some("db"), Some("1"), Some(""), Some("")];
        let good: &[Option<&str>] = &[Some("2"), Some("g"), Some("1"), Some(TARGET_ROLE), Some("AVAILABLE")];
        let later_null: &[Option<&str>] = &[Some("2"), Some("g"), Some("1"), Some(TARGET_ROLE), None];
        assert_eq!(Topology::parse(&result(&COLUMNS, &[source, good])), Topology::Unclassified);
        assert_eq!(Topology::parse(&result(&COLUMNS, &[null_role, good])), Topology::Unclassified);
        assert_eq!(Topology::parse(&result(&COLUMNS, &[empty, good])), target("g", "AVAILABLE"));
        assert_eq!(Topology::parse(&result(&COLUMNS, &[empty, later_null])), target("g", ""));
        assert_eq!(Topology::parse(&result(&COLUMNS, &[empty])), Topology::Unclassified);
    }

    #[test]
    fn a_cluster_has_names_and_ports_but_no_roles() {
        let first: &[Option<&str>] = &[Some("1"), Some("a.x"), Some("3306")];
        let rows: &[&[Option<&str>]] = &[
            first,
            &[Some("2"), Some(" b.x "), Some("3307")],
            &[Some("3"), Some("c.x"), Some("bad")],
            &[Some("4"), Some("d.x"), Some("0")],
            &[Some("5"), None, Some("3306")],
            &[],
        ];
        let answer = result(&["id", "endpoint", "PORT"], rows);
        assert!(!is_blue_green(&answer));
        assert_eq!(cluster_members(&answer), [Endpoint::new("a.x", 3306), Endpoint::new("b.x", 3307)]);
        assert_eq!(cluster_members(&result(&["endpoint"], &[&[Some("a.x")]])), []);
        let deployment: &[Option<&str>] = &[Some("1"), Some("db"), Some("1"), Some(SOURCE), Some("")];
        assert!(is_blue_green(&result(&COLUMNS, &[deployment])));
        assert!(!is_blue_green(&result(&COLUMNS, &[])));
    }

    #[test]
    fn missing_columns_and_short_rows_are_tolerated() {
        let row: &[Option<&str>] = &[Some(TARGET_ROLE)];
        assert_eq!(Topology::parse(&result(&["role"], &[row])), Topology::Unclassified);
        assert_eq!(Topology::parse(&result(&["role", "status"], &[row])), Topology::Unclassified);
        assert_eq!(Topology::parse(&result(&["endpoint", "port"], &[row])), Topology::Unclassified);
        let no_endpoint: &[Option<&str>] = &[Some(TARGET_ROLE), Some("AVAILABLE")];
        assert_eq!(Topology::parse(&result(&["role", "status"], &[no_endpoint])), target("", "AVAILABLE"));
    }
}
