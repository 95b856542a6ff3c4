//! The values of parameters and of columns.

use std::borrow::Cow;
use std::fmt::Display;

use crate::error::StoreError;
use ibi::message;

/// A parameter of a statement.
#[derive(Clone, Debug)]
pub enum Value<'value> {
    /// NULL.
    Null,
    /// An integer.
    Integer(i64),
    /// A text.
    Text(Cow<'value, str>),
    /// A blob.
    Bytes(&'value [u8]),
}

/// The parameters of a statement, each converted by [`Value::from`].
#[macro_export]
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        &[$($crate::engine::Value::from($value)),*]
    };
}
pub use params;

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Value::Integer(number)
    }
}

impl From<u32> for Value<'_> {
    fn from(number: u32) -> Self {
        Value::Integer(number.into())
    }
}

impl From<u16> for Value<'_> {
    fn from(number: u16) -> Self {
        Value::Integer(number.into())
    }
}

impl From<bool> for Value<'_> {
    fn from(is: bool) -> Self {
        Value::Integer(is.into())
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Value::Text(Cow::Owned(text))
    }
}

impl<'value> From<&'value String> for Value<'value> {
    fn from(text: &'value String) -> Self {
        Value::Text(Cow::Borrowed(text))
    }
}

impl<'value> From<&'value str> for Value<'value> {
    fn from(text: &'value str) -> Self {
        Value::Text(Cow::Borrowed(text))
    }
}

impl<'value> From<&'value [u8]> for Value<'value> {
    fn from(bytes: &'value [u8]) -> Self {
        Value::Bytes(bytes)
    }
}

impl<'value, T: Into<Value<'value>>> From<Option<T>> for Value<'value> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}

impl rusqlite::ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        use rusqlite::types::{ToSqlOutput, ValueRef};
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Null => ValueRef::Null,
            Value::Integer(number) => ValueRef::Integer(*number),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// A value of a column. A damaged database of SQLite may have any type in any column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'row> {
    /// NULL.
    Null,
    /// An integer.
    Integer(i64),
    /// A number of SQLite that is not an integer.
    Real(f64),
    /// A text, which SQLite does not check.
    Text(&'row [u8]),
    /// A blob.
    Bytes(&'row [u8]),
}

impl<'row> From<rusqlite::types::ValueRef<'row>> for Cell<'row> {
    fn from(value: rusqlite::types::ValueRef<'row>) -> Self {
        use rusqlite::types::ValueRef;
        match value {
            ValueRef::Null => Cell::Null,
            ValueRef::Integer(number) => Cell::Integer(number),
            ValueRef::Real(number) => Cell::Real(number),
            ValueRef::Text(bytes) => Cell::Text(bytes),
            ValueRef::Blob(bytes) => Cell::Bytes(bytes),
        }
    }
}

impl Cell<'_> {
    /// It as a parameter.
    pub fn value(&self) -> Value<'_> {
        match *self {
            Cell::Null => Value::Null,
            Cell::Integer(number) => Value::Integer(number),
            Cell::Real(number) => Value::Text(Cow::Owned(number.to_string())),
            Cell::Text(bytes) => Value::Text(String::from_utf8_lossy(bytes)),
            Cell::Bytes(bytes) => Value::Bytes(bytes),
        }
    }

    /// Its bytes, whatever its type is.
    pub(super) fn into_bytes(self) -> Option<Vec<u8>> {
        match self {
            Cell::Null => None,
            Cell::Integer(number) => Some(number.to_string().into_bytes()),
            Cell::Real(number) => Some(number.to_string().into_bytes()),
            Cell::Text(bytes) | Cell::Bytes(bytes) => Some(bytes.to_vec()),
        }
    }
}

/// A type that a column may have.
pub trait FromCell: Sized {
    /// The value, None if the column has another type.
    fn from_cell(cell: Cell<'_>) -> Option<Self>;
}

impl FromCell for i64 {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        match cell {
            Cell::Integer(number) => Some(number),
            _ => None,
        }
    }
}

impl FromCell for u32 {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        i64::from_cell(cell).and_then(|number| number.try_into().ok())
    }
}

impl FromCell for u16 {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        i64::from_cell(cell).and_then(|number| number.try_into().ok())
    }
}

impl FromCell for bool {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        i64::from_cell(cell).map(|number| number != 0)
    }
}

impl FromCell for String {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        match cell {
            Cell::Text(bytes) => String::from_utf8(bytes.to_vec()).ok(),
            _ => None,
        }
    }
}

impl FromCell for Vec<u8> {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        match cell {
            Cell::Bytes(bytes) => Some(bytes.to_vec()),
            _ => None,
        }
    }
}

impl<T: FromCell> FromCell for Option<T> {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        match cell {
            Cell::Null => Some(None),
            cell => T::from_cell(cell).map(Some),
        }
    }
}

/// The error for a column whose value is of another type than its table says.
pub(super) fn unexpected(column: &impl Display) -> StoreError {
    StoreError::Broken {
        what: message!(
            "column {column} has a value of another type",
            column = column.to_string()
        ),
    }
}
