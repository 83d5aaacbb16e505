//! The collations of MySQL, as mysql_collations and SHOW COLLATION list them. Texts here are UTF-8 whatever a client asks for.

use crate::{LiveTable, Schema, Value, ddl};
use mysql_common::collations::{Collation, CollationId};
use std::sync::Arc;

/// No collation of MySQL has a higher number.
const HIGHEST: u16 = 400;

/// All of them, by number.
pub(crate) fn all() -> impl Iterator<Item = Collation<'static>> {
    let known = |id: &CollationId| *id != CollationId::UNKNOWN_COLLATION_ID;
    (1..=HIGHEST).map(CollationId::from).filter(known).map(Collation::resolve)
}

/// A collation's number.
pub(crate) fn number(collation: &Collation<'_>) -> u16 {
    collation.id() as u16
}

/// `Yes` where the collation is its character set's default.
pub(crate) fn default(collation: &Collation<'_>) -> &'static str {
    if collation.is_default() { "Yes" } else { "" }
}

/// mysql_collations
pub(crate) fn table() -> LiveTable {
    let row = |collation: Collation<'_>| {
        vec![
            Value::from(number(&collation)),
            collation.collation().into(),
            collation.charset().into(),
            default(&collation).into(),
        ]
    };
    LiveTable {
        name: "mysql_collations",
        schema: Schema::Main,
        ddl: ddl::MYSQL_COLLATIONS,
        rows: Arc::new(move || all().map(row).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_character_set_has_one_default_and_every_collation_one_name() {
        let names: BTreeSet<_> = all().map(|collation| collation.collation().to_owned()).collect();
        assert_eq!(names.len(), all().count());
        assert!(names.len() > 200, "{}", names.len());
        let sets: BTreeSet<_> = all().map(|collation| collation.charset().to_owned()).collect();
        for set in sets {
            let defaults = all().filter(|each| each.charset() == set && each.is_default());
            assert_eq!(defaults.count(), 1, "{set}");
        }
        assert_eq!(all().map(|each| number(&each)).max(), Some(323));
    }
}
