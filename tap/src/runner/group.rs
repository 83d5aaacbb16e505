//! A test group on disk: its entry in groups.json and the folder with its hooks.

use serde::de::{Deserializer, Error, MapAccess, Visitor};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The port that pre-proxysql.sql gives the simulator.
const SIMULATOR_PORT: u16 = 3306;

/// Why a group cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    /// groups.json or a hook cannot be read
    #[error("cannot read {path}: {source}; run this in the project's root directory or pass --groups-dir")]
    Read {
        /// The file
        path: PathBuf,
        /// The reason
        source: io::Error,
    },
    /// groups.json is not an object that maps names to lists of groups
    #[error("{path}: {source}")]
    Parse {
        /// The file
        path: PathBuf,
        /// The reason, with the position
        source: serde_json::Error,
    },
    /// No binary is registered in the group
    #[error("no test is registered in group '{group}'; known groups: {known}")]
    Unknown {
        /// The name asked for
        group: String,
        /// The names there are
        known: String,
    },
    /// `--only` names something else
    #[error("'{only}' is not in group '{group}'")]
    NotInGroup {
        /// The name asked for
        only: String,
        /// The group
        group: String,
    },
}

/// Which binaries belong to which groups, as in groups.json: name of the binary, then its groups.
#[derive(Debug, serde::Deserialize)]
#[serde(transparent)]
pub struct Registry(#[serde(deserialize_with = "entries")] BTreeMap<String, Vec<String>>);

/// Reads the entries. A name that is there twice would hide its first groups; one that is a path would lead out of the directories
/// of binaries and logs.
fn entries<'de, D: Deserializer<'de>>(json: D) -> Result<BTreeMap<String, Vec<String>>, D::Error> {
    struct Entries;
    impl<'de> Visitor<'de> for Entries {
        type Value = BTreeMap<String, Vec<String>>;
        fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
            to.write_str("an object of names of binaries, each with a list of groups")
        }
        fn visit_map<M: MapAccess<'de>>(self, mut json: M) -> Result<Self::Value, M::Error> {
            let mut entries = BTreeMap::new();
            while let Some((name, groups)) = json.next_entry::<String, _>()? {
                if name.is_empty() || name.starts_with('.') || name.contains('/') {
                    return Err(M::Error::custom(format!("'{name}' is no name of a binary")));
                }
                match entries.entry(name) {
                    Entry::Vacant(free) => free.insert(groups),
                    Entry::Occupied(taken) => {
                        return Err(M::Error::custom(format!("'{}' is there twice", taken.key())));
                    }
                };
            }
            Ok(entries)
        }
    }
    json.deserialize_map(Entries)
}

impl Registry {
    /// Reads `groups_dir`/groups.json.
    pub fn read(groups_dir: &Path) -> Result<Self, GroupError> {
        let path = groups_dir.join("groups.json");
        let text = read(&path)?;
        serde_json::from_str(&text).map_err(|source| GroupError::Parse { path, source })
    }

    /// The binaries of `group` in alphabetical order, or the one named `only`.
    pub fn binaries(&self, group: &str, only: Option<&str>) -> Result<Vec<String>, GroupError> {
        let members: Vec<_> = self
            .0
            .iter()
            .filter(|(_, groups)| groups.iter().any(|name| name == group))
            .map(|(name, _)| name)
            .collect();
        if members.is_empty() {
            let mut known: Vec<_> = self.0.values().flatten().map(String::as_str).collect();
            known.sort_unstable();
            known.dedup();
            return Err(GroupError::Unknown { group: group.to_owned(), known: known.join(", ") });
        }
        match only {
            None => Ok(members.into_iter().cloned().collect()),
            Some(only) if members.iter().any(|name| *name == only) => Ok(vec![only.to_owned()]),
            Some(only) => Err(GroupError::NotInGroup { only: only.to_owned(), group: group.to_owned() }),
        }
    }
}

/// The folder of a group: `cluster_sim_rds_bgd-g1` and `cluster_sim_rds_bgd-g2` share `cluster_sim_rds_bgd`.
pub fn folder(groups_dir: &Path, group: &str) -> PathBuf {
    let is_part = |part: &str| part.strip_prefix('g').is_some_and(|number| number.parse::<u32>().is_ok());
    match group.rsplit_once('-') {
        Some((name, part)) if is_part(part) => groups_dir.join(name),
        _ => groups_dir.join(group),
    }
}

/// The statements of the folder's pre-proxysql.sql, if it has one, with the simulator's port replaced by `simulator_port`.
pub fn setup_statements(folder: &Path, simulator_port: u16) -> Result<Vec<String>, GroupError> {
    let hook = folder.join("pre-proxysql.sql");
    let text = if hook.exists() { read(&hook)? } else { String::new() };
    Ok(statements(&text).into_iter().map(|statement| with_port(statement, simulator_port)).collect())
}

fn read(path: &Path) -> Result<String, GroupError> {
    fs::read_to_string(path).map_err(|source| GroupError::Read { path: path.to_owned(), source })
}

/// Elsewhere than on its own port, the simulator must stay where it was started.
fn with_port(statement: String, simulator_port: u16) -> String {
    if statement.starts_with("SET sqliteserver-mysql_ifaces") {
        statement.replace(&format!(":{SIMULATOR_PORT}"), &format!(":{simulator_port}"))
    } else {
        statement
    }
}

/// Splits at semicolons outside of single quotes; lines that begin with `--` are comments.
fn statements(text: &str) -> Vec<String> {
    let lines: Vec<_> = text.lines().filter(|line| !line.trim_start().starts_with("--")).collect();
    let text = lines.join("\n");
    let mut quoted = false;
    let ends_statement = |character: char| {
        quoted ^= character == '\'';
        character == ';' && !quoted
    };
    text.split(ends_statement).map(str::trim).filter(|s| !s.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups_dir() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../groups")
    }

    #[test]
    fn the_group_has_exactly_the_scenario_binaries_of_this_crate_and_the_daemons_own() {
        let manifests = [include_str!("../../Cargo.toml"), include_str!("../../../Cargo.toml")];
        let name = |line: &str| Some(line.strip_prefix("name = \"")?.strip_suffix("-t\"")?.to_owned() + "-t");
        let mut scenarios: Vec<_> =
            manifests.iter().flat_map(|manifest| manifest.lines()).filter_map(name).collect();
        scenarios.sort_unstable();
        let registry = Registry::read(&groups_dir()).unwrap();
        assert_eq!(registry.binaries("cluster_sim_rds_bgd-g1", None).unwrap(), scenarios);
        assert!(scenarios.len() >= 2);
    }

    #[test]
    fn only_one_of_the_group_can_be_chosen() {
        let registry: Registry =
            serde_json::from_str(r#"{"b-t": ["g-g1"], "a-t": ["g-g1", "h-g1"], "c-t": ["h-g1"]}"#).unwrap();
        assert_eq!(registry.binaries("g-g1", None).unwrap(), ["a-t", "b-t"]);
        assert_eq!(registry.binaries("g-g1", Some("b-t")).unwrap(), ["b-t"]);
        assert!(registry.binaries("g-g1", Some("c-t")).unwrap_err().to_string().contains("'c-t'"));
        let unknown = registry.binaries("x", None).unwrap_err().to_string();
        assert!(unknown.ends_with("known groups: g-g1, h-g1"), "{unknown}");
    }

    #[test]
    fn a_registry_that_would_mislead_is_refused() {
        let refused = |json: &str| serde_json::from_str::<Registry>(json).unwrap_err().to_string();
        let twice = refused(r#"{"a-t": ["g-g1"], "b-t": [], "a-t": ["h-g1"]}"#);
        assert!(twice.starts_with("'a-t' is there twice at line 1"), "{twice}");
        for name in ["", "../a-t", "/bin/true", "."] {
            let path = refused(&format!(r#"{{"{name}": ["g-g1"]}}"#));
            assert!(path.starts_with(&format!("'{name}' is no name of a binary")), "{path}");
        }
        assert!(refused(r#"["a-t"]"#).contains("an object of names of binaries"));
    }

    #[test]
    fn parts_of_a_group_share_a_folder() {
        let dir = Path::new("groups");
        assert_eq!(folder(dir, "cluster_sim_rds_bgd-g1"), dir.join("cluster_sim_rds_bgd"));
        assert_eq!(folder(dir, "a-green"), dir.join("a-green"));
        assert_eq!(folder(dir, "plain"), dir.join("plain"));
    }

    #[test]
    fn the_hook_of_the_group_is_split_into_statements() {
        let statements = setup_statements(&groups_dir().join("cluster_sim_rds_bgd"), 23306).unwrap();
        assert_eq!(statements.len(), 6);
        assert!(statements[0].starts_with("INSERT OR REPLACE INTO mysql_users"));
        assert_eq!(statements[3], "SET sqliteserver-mysql_ifaces='0.0.0.0:23306'");
        assert_eq!(statements[5], "SAVE SQLITESERVER VARIABLES TO DISK");
    }

    #[test]
    fn a_semicolon_in_quotes_ends_nothing() {
        assert_eq!(statements("SET a='x;''y;';;\n  -- c; d\nSELECT 1"), ["SET a='x;''y;'", "SELECT 1"]);
    }
}
