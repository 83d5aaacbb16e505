//! mysql_query_rules_fast_routing: a look-up instead of a list.

use admin::Value;
use admin::rows::FastRoutingRow;
use std::collections::HashMap;

/// Hostgroups of one user by schema, then by flag.
type BySchema = HashMap<Box<str>, Vec<(u32, u32)>>;

/// Destinations. Nested, so that a look-up needs no key of its own.
#[derive(Default)]
pub struct FastRouting {
    destinations: HashMap<Box<str>, BySchema>,
    rows: Vec<FastRoutingRow>,
}

impl FastRouting {
    /// From the rows of the table.
    pub fn new(rows: Vec<FastRoutingRow>) -> Self {
        let mut destinations = HashMap::<_, BySchema>::new();
        for row in &rows {
            let of_user = destinations.entry(row.username.as_str().into()).or_default();
            let of_schema = of_user.entry(row.schemaname.as_str().into()).or_default();
            of_schema.push((row.flag_in, row.destination_hostgroup));
        }
        Self { destinations, rows }
    }
    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
    /// Where statements of a user in a schema go.
    pub fn find(&self, user: &str, schema: &str, flag: u32) -> Option<u32> {
        let of_schema = self.destinations.get(user)?.get(schema)?;
        of_schema.iter().find(|(wanted, _)| *wanted == flag).map(|(_, hostgroup)| *hostgroup)
    }
    /// As the table shows them.
    pub fn rows(&self) -> Vec<Vec<Value>> {
        self.rows.iter().map(FastRoutingRow::values).collect()
    }
}
