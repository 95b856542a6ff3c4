//! Values of parameters and columns in PostgreSQL's binary form.

use std::error::Error;

use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use super::super::{Cell, Value};

/// A statement whose parameters `?1` are written `$1`.
pub(super) fn numbered(sql: &str) -> String {
    let mut text = String::with_capacity(sql.len());
    let mut rest = sql.chars().peekable();
    while let Some(next) = rest.next() {
        let is_parameter = next == '?' && rest.peek().is_some_and(char::is_ascii_digit);
        text.push(if is_parameter { '$' } else { next });
    }
    text
}

impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Value::Null => Ok(IsNull::Yes),
            Value::Integer(number) if *kind == Type::INT4 => {
                i32::try_from(*number)?.to_sql(kind, out)
            }
            Value::Integer(number) => number.to_sql(kind, out),
            // PostgreSQL has no texts with NUL. A text that has one is in no column, also after this change.
            Value::Text(text) if text.contains('\0') => {
                text.replace('\0', "\u{fffd}").to_sql(kind, out)
            }
            Value::Text(text) => text.as_ref().to_sql(kind, out),
            Value::Bytes(bytes) => bytes.to_sql(kind, out),
        }
    }

    fn accepts(kind: &Type) -> bool {
        [
            Type::INT4,
            Type::INT8,
            Type::TEXT,
            Type::VARCHAR,
            Type::BYTEA,
        ]
        .contains(kind)
    }

    to_sql_checked!();
}

impl<'row> FromSql<'row> for Cell<'row> {
    fn from_sql(kind: &Type, raw: &'row [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(match *kind {
            Type::BOOL => Cell::Integer(bool::from_sql(kind, raw)?.into()),
            Type::INT4 => Cell::Integer(i32::from_sql(kind, raw)?.into()),
            Type::INT8 => Cell::Integer(i64::from_sql(kind, raw)?),
            Type::BYTEA => Cell::Bytes(raw),
            _ => Cell::Text(raw),
        })
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Cell::Null)
    }

    fn accepts(kind: &Type) -> bool {
        <Value<'_> as ToSql>::accepts(kind) || *kind == Type::BOOL || *kind == Type::UNKNOWN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_numbered() {
        assert_eq!(
            numbered("SELECT ?1 || '?' WHERE a = ?12"),
            "SELECT $1 || '?' WHERE a = $12"
        );
    }
}
