//! Reads the answer to `SELECT * FROM mysql.rds_topology`.

use wire::backend::TextResult;

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
        let Some(first) = result.rows.first() else { return Self::Empty };
        let (Some(role), Some(status)) = (column(result, "role"), column(result, "status")) else {
            return Self::Unclassified;
        };
        if cell(first, role).is_none() || cell(first, status).is_none() {
            return Self::Unclassified;
        }
        let is_target = |row: &&Vec<Option<Vec<u8>>>| {
            cell(row, role).is_some_and(|text| text.eq_ignore_ascii_case(TARGET_ROLE.as_bytes()))
        };
        let Some(target) = result.rows.iter().find(is_target) else { return Self::Unclassified };
        let endpoint = column(result, "endpoint").and_then(|at| cell(target, at));
        Self::Target { endpoint: text(endpoint), status: text(cell(target, status)) }
    }
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
    fn missing_columns_and_short_rows_are_tolerated() {
        let row: &[Option<&str>] = &[Some(TARGET_ROLE)];
        assert_eq!(Topology::parse(&result(&["role"], &[row])), Topology::Unclassified);
        assert_eq!(Topology::parse(&result(&["role", "status"], &[row])), Topology::Unclassified);
        assert_eq!(Topology::parse(&result(&["endpoint", "port"], &[row])), Topology::Unclassified);
        let no_endpoint: &[Option<&str>] = &[Some(TARGET_ROLE), Some("AVAILABLE")];
        assert_eq!(Topology::parse(&result(&["role", "status"], &[no_endpoint])), target("", "AVAILABLE"));
    }
}
