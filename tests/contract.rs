//! docs/contract.md and docs/locality-contract.md name what there is: no cell is empty, and every file, definition, test and scenario binary
//! in them exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Where definitions and tests are looked for.
const SOURCES: [&str; 8] = [
    "src",
    "tests",
    "admin/src",
    "sqlite-server/src",
    "sqlite-server/tests",
    "tap/src",
    "tap/tests",
    "wire/src",
];
const DEFINITIONS: [&str; 5] = ["fn ", "struct ", "enum ", "const ", "trait "];
const PAGES: [&str; 2] = ["docs/contract.md", "docs/locality-contract.md"];
/// Heads of the pages' tables.
const HEAD: [&str; 3] = ["statement", "implementation", "shown by"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn rust_files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory of sources") {
        let path = entry.expect("an entry of it").path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// What the sources define: every name of a definition or a module, and the functions that are tests.
#[derive(Default)]
struct Names {
    all: BTreeSet<String>,
    tests: BTreeSet<String>,
}

impl Names {
    fn of_sources() -> Self {
        let mut files = Vec::new();
        SOURCES.iter().for_each(|directory| rust_files(&root().join(directory), &mut files));
        let mut names = Self::default();
        for file in files {
            names.all.extend(file.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
            names.read(&read(&file));
        }
        names
    }
    fn read(&mut self, source: &str) {
        let mut is_test = false;
        for line in source.lines().map(str::trim) {
            is_test |= line == "#[test]";
            for kind in DEFINITIONS {
                let defined = line.find(kind).filter(|at| line[..*at].chars().all(|c| !"/\"{=".contains(c)));
                let Some(rest) = defined.map(|at| &line[at + kind.len()..]) else { continue };
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                let name = rest[..end].to_owned();
                if kind == "fn " && std::mem::take(&mut is_test) {
                    self.tests.insert(name.clone());
                }
                self.all.insert(name);
            }
        }
    }
}

/// The cells of a row of a table.
fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(str::trim).collect())
}

/// What a cell names.
fn names_in(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// What is wrong with a row, in words.
fn faults(row: &[&str], names: &Names, registry: &serde_json::Value) -> Vec<String> {
    let [statement, implementation, shown_by] = row else {
        return vec![format!("{} cells", row.len())];
    };
    let mut faults = Vec::new();
    let (definitions, tests) = (names_in(implementation), names_in(shown_by));
    if statement.is_empty() || definitions.is_empty() || tests.is_empty() {
        faults.push("an empty cell".to_owned());
    }
    for name in definitions {
        let exists = match name.contains('/') {
            true => root().join(name).is_file(),
            false => name.split("::").all(|part| names.all.contains(part)),
        };
        if !exists {
            faults.push(format!("there is no {name}"));
        }
    }
    for name in tests {
        let exists = match name.ends_with("-t") {
            true => registry.get(name).is_some(),
            false => names.tests.contains(name),
        };
        if !exists {
            faults.push(format!("there is no test {name}"));
        }
    }
    faults
}

fn registry() -> serde_json::Value {
    serde_json::from_str(&read("groups/groups.json")).expect("the registry is JSON")
}

#[test]
fn every_statement_has_an_implementation_and_a_test_that_exist() {
    let (names, registry) = (Names::of_sources(), registry());
    let is_line = |row: &Vec<&str>| row.iter().all(|cell| cell.chars().all(|c| c == '-') && !cell.is_empty());
    for path in PAGES {
        let page = read(path);
        let rows: Vec<_> =
            page.lines().filter_map(cells).filter(|row| *row != HEAD && !is_line(row)).collect();
        let of_row = |row: &Vec<&str>| {
            let faults = faults(row, &names, &registry).into_iter();
            faults.map(|fault| format!("{path}: {}: {fault}", row[0])).collect::<Vec<_>>()
        };
        let faults: Vec<_> = rows.iter().flat_map(of_row).collect();
        assert!(faults.is_empty(), "{faults:#?}");
        let sections = page.lines().filter(|line| line.starts_with("## ")).count();
        assert!(sections > 0 && rows.len() > sections, "{path}: a page without tables");
    }
}

#[test]
fn what_does_not_exist_is_noticed() {
    let (names, registry) = (Names::of_sources(), registry());
    let faults = |row: &str| faults(&cells(row).unwrap(), &names, &registry);
    let good = "| a statement | `Names::of_sources`, `docs/contract.md` | `what_does_not_exist_is_noticed`, `test_rds_bgd_smoke-t` |";
    assert_eq!(faults(good), Vec::<String>::new());
    assert_eq!(faults(&good.replace("a statement", "")), ["an empty cell"]);
    assert_eq!(faults("| a statement | - | - |"), ["an empty cell"]);
    assert_eq!(faults("| a statement | `Names` |"), ["2 cells"]);
    for (there, gone) in [
        ("Names::of_sources", "Names::of_nothing_at_all"),
        ("docs/contract.md", "docs/no-such-page.md"),
        ("what_does_not_exist_is_noticed", "of_sources"),
        ("test_rds_bgd_smoke-t", "test_rds_bgd_smoked-t"),
    ] {
        assert_eq!(faults(&good.replace(there, gone)).len(), 1, "{gone}");
    }
}
