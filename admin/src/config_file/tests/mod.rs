mod files;
mod properties;
mod sections;
mod syntax;

use super::lexer::Source;
use super::tree::{Fault, Setting, Text, Value};
use super::{Loaded, Wanted, parser};

/// The settings of a text, whose includes find nothing.
fn parse(text: &str) -> Result<Vec<Setting>, Fault> {
    let source = Source { name: "p.cnf".into(), text: text.into() };
    parser::parse(source, &mut |_, path| Err(format!("{path} is not there")))
}

/// The text again, as one line: what was understood of it.
#[track_caller]
fn understood(text: &str) -> String {
    let settings = parse(text).unwrap_or_else(|fault| panic!("{text}: {fault}"));
    Text(&settings).to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn refused(text: &str) -> String {
    match parse(text) {
        Err(fault) => fault.to_string(),
        Ok(settings) => panic!("{text}: {settings:?}"),
    }
}

/// The rows and values of a text's sections.
fn load(text: &str) -> Result<Loaded, String> {
    let settings = parse(text).map_err(|fault| fault.to_string())?;
    super::sections::load(&settings, Wanted::All).map_err(|fault| fault.to_string())
}

fn text_of(settings: &[Setting]) -> &str {
    match settings {
        [Setting { value: Value::Text(text), .. }] => text,
        other => panic!("{other:?}"),
    }
}
