//! JSON for columns of stats tables that hold it.

use std::fmt::Write;

/// A text.
pub fn text(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    json.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => json.extend(['\\', c]),
            c if c.is_control() => {
                // Writing to a String does not fail. Control characters are below U+0100.
                let _ = write!(json, "\\u{:04x}", u32::from(c));
            }
            c => json.push(c),
        }
    }
    json.push('"');
    json
}

/// A number.
pub fn number(number: u64) -> String {
    number.to_string()
}

/// An object whose values are JSON already. Names need no escapes.
pub fn object(members: &[(&str, String)]) -> String {
    let members: Vec<_> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", members.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
        let object = object(&[("a", text("a \"b\" \\ \n é")), ("b", number(7))]);
        assert_eq!(object, r#"{"a":"a \"b\" \\ \u000a é","b":7}"#);
    }
}
