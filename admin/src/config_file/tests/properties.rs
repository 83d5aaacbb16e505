use super::super::tree::{Item, Place};
use super::*;
use proptest::prelude::*;

/// Any value, as deep as a few levels.
fn value() -> impl Strategy<Value = Value> {
    let scalar = || {
        prop_oneof![
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::Int),
            any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Value::Float),
            any::<String>().prop_map(Value::Text),
            r#"[\x00-\x1f"\\xé日\n\x7f]{0,12}"#.prop_map(Value::Text),
        ]
    };
    let items =
        |values: Vec<Value>| values.into_iter().map(|value| Item { place: Place::none(), value }).collect();
    scalar().prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(scalar(), 0..5).prop_map(move |values| Value::Array(items(values))),
            prop::collection::vec(inner.clone(), 0..5).prop_map(move |values| Value::List(items(values))),
            settings(inner).prop_map(Value::Group),
        ]
    })
}

fn settings(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Vec<Setting>> {
    let settings = prop::collection::btree_map("[A-Za-z*][-A-Za-z0-9_*]{0,8}", value, 0..5);
    settings.prop_map(|settings| {
        settings.into_iter().map(|(name, value)| Setting { name, place: Place::none(), value }).collect()
    })
}

/// The same settings without the places where they were read.
fn nowhere(settings: Vec<Setting>) -> Vec<Setting> {
    settings.into_iter().map(|s| Setting { place: Place::none(), value: without(s.value), ..s }).collect()
}

fn without(value: Value) -> Value {
    let items = |items: Vec<Item>| {
        items.into_iter().map(|item| Item { place: Place::none(), value: without(item.value) })
    };
    match value {
        Value::Array(all) => Value::Array(items(all).collect()),
        Value::List(all) => Value::List(items(all).collect()),
        Value::Group(settings) => Value::Group(nowhere(settings)),
        scalar => scalar,
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(settings in settings(value())) {
        let text = Text(&settings).to_string();
        let read = parse(&text).map_err(|fault| TestCaseError::fail(format!("{fault}\n{text}")))?;
        prop_assert_eq!(nowhere(read), settings);
    }

    #[test]
    fn no_text_panics(text in any::<String>()) {
        let _ = parse(&text);
    }

    // Pieces of the syntax reach deeper than any text does.
    #[test]
    fn no_mixture_of_pieces_panics(pieces in prop::collection::vec(
        prop::sample::select(&[
            "a", "true", "=", ":", ";", ",", "{", "}", "(", ")", "[", "]", "\"", "\\", "\\x", "4", "-", ".", "e", "L", "0x",
            "#", "//", "/*", "*/", "\n", " ", "@include", "@", "é", "mysql_users", "password", "\u{feff}", "\0",
        ][..]),
        0..60,
    )) {
        let text = pieces.concat();
        if let Ok(settings) = parse(&text) {
            let again = parse(&Text(&settings).to_string());
            prop_assert_eq!(again.map(nowhere), Ok(nowhere(settings)));
        }
        let _ = load(&text);
    }
}
