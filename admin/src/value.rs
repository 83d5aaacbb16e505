//! A cell of a live table.

use rusqlite::types::ValueRef;

/// A cell of a live table.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// NULL
    Null,
    /// INTEGER
    Int(i64),
    /// REAL
    Real(f64),
    /// TEXT
    Text(String),
}

macro_rules! from_numbers {
    ($($number:ty),+) => {
        $(impl From<$number> for Value {
            fn from(number: $number) -> Self {
                Self::Int(number.into())
            }
        })+
    };
}
from_numbers!(bool, u8, u16, u32, i64);

/// A count, which is shown as the highest number there is where it is higher.
impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Int(i64::try_from(count).unwrap_or(i64::MAX))
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Real(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl From<Value> for rusqlite::types::Value {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Int(number) => Self::Integer(number),
            Value::Real(number) => Self::Real(number),
            Value::Text(text) => Self::Text(text),
        }
    }
}

impl<'a> From<&'a Value> for ValueRef<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Int(number) => Self::Integer(*number),
            Value::Real(number) => Self::Real(*number),
            Value::Text(text) => Self::Text(text.as_bytes()),
        }
    }
}
