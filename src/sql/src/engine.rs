//! The engines that run the statements of the store, and of the registry of a resolver. There is one text for each
//! statement, which every engine understands; this module hides in which ways the engines differ.
//!
//! Statements use `?1`, `?2` for their parameters, `ON CONFLICT` and `RETURNING`, and none of an engine's own
//! functions. Where an engine needs other words, [`Connection`] has a method for it.

mod postgres;
mod sqlite;
mod value;

use std::fmt::Display;
use std::time::Duration;

use crate::error::StoreError;

pub use postgres::Postgres;
pub use postgres::schema::Schema;
pub use sqlite::Sqlite;
pub use tokio_postgres::Row as ServerRow;
pub use value::{Cell, FromCell, Value, params};

/// The number of times that a transaction is run that a server refuses because of another one.
const TRIES: usize = 8;

/// An error that ends a transaction: one of the engine, or another one, because of which it is rolled back.
pub trait TransactionError: From<StoreError> {
    /// The error of the engine, else the error itself.
    fn of_engine(self) -> Result<StoreError, Self>;

    /// It, with the error of the engine replaced by another one.
    fn map_engine(self, map: impl FnOnce(StoreError) -> StoreError) -> Self {
        match self.of_engine() {
            Ok(error) => map(error).into(),
            Err(other) => other,
        }
    }
}

impl TransactionError for StoreError {
    fn of_engine(self) -> Result<StoreError, StoreError> {
        Ok(self)
    }
}

/// Runs a transaction, and again if a server refuses it because of another one.
pub fn retried<T, E: TransactionError>(mut run: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    let mut left = TRIES;
    loop {
        left -= 1;
        match run().map_err(E::of_engine) {
            Err(Ok(StoreError::Conflict)) if left > 0 => {}
            Err(Ok(error)) => return Err(error.into()),
            Err(Err(other)) => return Err(other),
            Ok(value) => return Ok(value),
        }
    }
}

/// A connection to the database of a store.
#[derive(Debug)]
pub enum Connection {
    /// To a file.
    Sqlite(Sqlite),
    /// To a server.
    Postgres(Box<Postgres>),
}

/// The time at which a commit reaches the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// Before the commit returns.
    Now,
    /// With the next one that does so at once.
    Later,
}

/// A row of an answer.
pub enum Row<'row> {
    /// Of a file.
    Sqlite(&'row rusqlite::Row<'row>),
    /// Of a server.
    Postgres(&'row tokio_postgres::Row),
}

/// A column of a row, by its number or its name.
pub trait Column: Copy + Display + rusqlite::RowIndex + tokio_postgres::row::RowIndex {}

impl Column for usize {}
impl Column for &str {}

impl Row<'_> {
    /// The value of a column. Fails if it is of another type, which only a damaged database has.
    pub fn get<T: FromCell>(&self, column: impl Column) -> Result<T, StoreError> {
        T::from_cell(self.cell(column)?).ok_or_else(|| value::unexpected(&column))
    }

    /// The value of a column, whatever its type is.
    pub fn cell(&self, column: impl Column) -> Result<Cell<'_>, StoreError> {
        match self {
            Row::Sqlite(row) => Ok(Cell::from(row.get_ref(column)?)),
            Row::Postgres(row) => row.try_get(column).map_err(|_| value::unexpected(&column)),
        }
    }

    /// The bytes of a column, whatever its type is.
    pub fn bytes(&self, column: usize) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.cell(column)?.into_bytes())
    }
}

/// A prepared statement.
pub enum Statement<'connection> {
    /// For a file.
    Sqlite(rusqlite::CachedStatement<'connection>),
    /// For a server.
    Postgres(postgres::Statement<'connection>),
}

/// The rows of an answer, which are read one after the other.
pub enum Rows<'statement> {
    /// Of a file.
    Sqlite(rusqlite::Rows<'statement>),
    /// Of a server.
    Postgres(postgres::Rows<'statement>),
}

impl Statement<'_> {
    /// Runs the statement.
    pub fn rows(&mut self, params: &[Value<'_>]) -> Result<Rows<'_>, StoreError> {
        match self {
            Statement::Sqlite(statement) => sqlite::rows(statement, params).map(Rows::Sqlite),
            Statement::Postgres(statement) => statement.rows(params).map(Rows::Postgres),
        }
    }
}

impl Rows<'_> {
    /// The next row.
    pub fn next_row(&mut self) -> Result<Option<Row<'_>>, StoreError> {
        match self {
            Rows::Sqlite(rows) => Ok(rows.next()?.map(Row::Sqlite)),
            Rows::Postgres(rows) => Ok(rows.next()?.map(Row::Postgres)),
        }
    }
}

impl Connection {
    /// Prepares a statement, or takes one that was prepared before.
    pub fn prepare(&self, sql: &str) -> Result<Statement<'_>, StoreError> {
        match self {
            Connection::Sqlite(connection) => connection.prepare(sql).map(Statement::Sqlite),
            Connection::Postgres(connection) => Ok(Statement::Postgres(connection.prepare(sql))),
        }
    }

    /// Calls a closure for each row of a statement's answer.
    pub fn visit(
        &self,
        sql: &str,
        params: &[Value<'_>],
        mut visit: impl FnMut(&Row<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut statement = self.prepare(sql)?;
        let mut rows = statement.rows(params)?;
        while let Some(row) = rows.next_row()? {
            visit(&row)?;
        }
        Ok(())
    }

    /// All rows of a statement's answer.
    pub fn each<T>(
        &self,
        sql: &str,
        params: &[Value<'_>],
        mut read: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut values = Vec::new();
        self.visit(sql, params, |row| {
            values.push(read(row)?);
            Ok(())
        })?;
        Ok(values)
    }

    /// The first row of a statement's answer.
    pub fn first<T>(
        &self,
        sql: &str,
        params: &[Value<'_>],
        read: impl FnOnce(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let mut statement = self.prepare(sql)?;
        let mut rows = statement.rows(params)?;
        rows.next_row()?.map(|row| read(&row)).transpose()
    }

    /// The first value of a statement's answer, which has a row.
    pub fn value<T: FromCell>(&self, sql: &str, params: &[Value<'_>]) -> Result<T, StoreError> {
        let found = self.first(sql, params, |row| row.get(0))?;
        found.ok_or_else(|| value::unexpected(&0))
    }

    /// Whether a statement's answer has a row.
    pub fn exists(&self, sql: &str, params: &[Value<'_>]) -> Result<bool, StoreError> {
        Ok(self.first(sql, params, |_| Ok(()))?.is_some())
    }

    /// Runs a statement that answers nothing.
    pub fn execute(&self, sql: &str, params: &[Value<'_>]) -> Result<(), StoreError> {
        match self {
            Connection::Sqlite(connection) => connection.execute(sql, params),
            Connection::Postgres(connection) => connection.execute(sql, params),
        }
    }

    /// Runs one transaction, which no other one that writes is beside. A server may ask to run it again.
    pub fn transact<T, E: TransactionError>(
        &self,
        sync: Sync,
        mut change: impl FnMut(&Connection) -> Result<T, E>,
    ) -> Result<T, E> {
        match self {
            Connection::Sqlite(connection) => {
                connection.begin(sync)?;
                connection.end(sync, change(self))
            }
            // A commit there is durable when it returns. An index that has lost what its hosts believe to be written
            // would not be read again from the tree, since no host has stopped.
            Connection::Postgres(connection) => retried(|| {
                connection.begin()?;
                connection.end(change(self))
            }),
        }
    }

    /// Reads the database as it is at one instant, whatever others write meanwhile.
    pub fn at_one_instant<T, E: TransactionError>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, E>,
    ) -> Result<T, E> {
        match self {
            Connection::Sqlite(connection) => connection.at_one_instant(|| read(self)),
            Connection::Postgres(connection) => connection.at_one_instant(|| read(self)),
        }
    }

    /// Prepares for the replacement of all items.
    pub fn refill_begins(&self) -> Result<(), StoreError> {
        match self {
            Connection::Sqlite(connection) => connection.refill_begins(),
            Connection::Postgres(connection) => connection.refill_begins(),
        }
    }

    /// Ends what [`Connection::refill_begins`] has begun.
    pub fn refill_ends(&self) -> Result<(), StoreError> {
        match self {
            Connection::Sqlite(connection) => connection.refill_ends(),
            Connection::Postgres(connection) => connection.refill_ends(),
        }
    }

    /// The row of this process in the table `host`, if it has one.
    pub fn host(&self) -> Option<i64> {
        match self {
            Connection::Sqlite(_) => None,
            Connection::Postgres(server) => server.host(),
        }
    }

    /// The server, if the index is in one.
    pub fn server(&self) -> Option<&Postgres> {
        match self {
            Connection::Sqlite(_) => None,
            Connection::Postgres(server) => Some(server),
        }
    }

    /// Lets transactions write only while the table `host` has this row, if the index is in a server.
    pub fn write_as(&self, host: Option<i64>) {
        if let Connection::Postgres(server) = self {
            server.write_as(host);
        }
    }

    /// Sets how long a statement waits for a server.
    pub fn set_timeout(&self, timeout: Duration) {
        if let Connection::Postgres(server) = self {
            server.set_timeout(timeout);
        }
    }

    /// Returns how long a statement waits for a server.
    pub fn timeout(&self) -> Duration {
        match self {
            Connection::Sqlite(_) => Duration::MAX,
            Connection::Postgres(server) => server.timeout(),
        }
    }

    /// Words after the name of a table which make the engine use an index.
    pub fn by_index(&self, index: &str) -> String {
        match self {
            Connection::Sqlite(_) => format!("INDEXED BY {index}"),
            Connection::Postgres(_) => String::new(),
        }
    }

    /// The second of a server's clock, by which all of its hosts go.
    pub fn seconds(&self) -> Result<Option<i64>, StoreError> {
        let sql = "SELECT CAST(floor(extract(epoch FROM clock_timestamp())) AS BIGINT)";
        match self {
            Connection::Sqlite(_) => Ok(None),
            Connection::Postgres(_) => self.value(sql, &[]).map(Some),
        }
    }

    /// SQLite's own connection, for what only SQLite has.
    pub fn sqlite(&self) -> Option<&rusqlite::Connection> {
        match self {
            Connection::Sqlite(connection) => Some(connection.raw()),
            Connection::Postgres(_) => None,
        }
    }
}
