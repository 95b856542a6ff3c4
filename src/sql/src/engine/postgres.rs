//! PostgreSQL, a server that several hosts share.
//!
//! No statement waits for longer than the timeout of its connection. After one that has, or after a connection that
//! was lost, the server counts as away for a moment, in which statements fail at once: otherwise each of many threads
//! would wait in its turn. A connection that was lost is made again by the next statement.

mod address;
mod password;
pub(super) mod schema;
mod tls;
mod values;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::io::ErrorKind;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use futures_util::future::{join_all, join3};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::FromSql;
use tokio_postgres::{Client, Row, RowStream, SimpleQueryMessage};

use super::{TransactionError, Value};
use crate::error::StoreError;
use crate::index_url::IndexUrl;
use address::Address;
use ibi::message;
use ibi::message::{Localize, Message};

/// The time that a server that was away is not asked again.
const PAUSE: Duration = Duration::from_millis(500);

/// The time that a connection may take, with the greeting of the server, however patient its statements are.
const CONNECT: Duration = Duration::from_secs(5);

/// The number of statements that a connection keeps prepared.
const MOST_PREPARED: usize = 256;

/// A connection to PostgreSQL, or to a server that speaks its protocol.
pub struct Postgres {
    /// There until this value is dropped.
    runtime: Option<Runtime>,
    address: Address,
    timeout: Cell<Duration>,
    /// The row of this process in the table `host`, without which it writes nothing.
    host: Cell<Option<i64>>,
    /// The number of times that the connection has been made.
    generation: Cell<u64>,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    client: Option<Arc<Client>>,
    prepared: HashMap<String, tokio_postgres::Statement>,
    /// Within a transaction a lost connection is not made again.
    is_in_transaction: bool,
    /// The time until when the server is not asked, and whether it was silent, not only the connection lost.
    away: Option<(Instant, Absence)>,
}

/// The reason why a server counts as away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Absence {
    Lost,
    Silent,
}

impl fmt::Debug for Postgres {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Postgres({})", self.address.place)
    }
}

/// A statement.
pub struct Statement<'connection> {
    connection: &'connection Postgres,
    sql: String,
}

/// The rows of an answer.
pub struct Rows<'connection> {
    connection: &'connection Postgres,
    stream: Pin<Box<RowStream>>,
    current: Option<tokio_postgres::Row>,
}

impl Statement<'_> {
    pub(super) fn rows(&mut self, params: &[Value<'_>]) -> Result<Rows<'_>, StoreError> {
        let stream = self.connection.stream(&self.sql, params)?;
        Ok(Rows {
            connection: self.connection,
            stream: Box::pin(stream),
            current: None,
        })
    }
}

impl Rows<'_> {
    pub(super) fn next(&mut self) -> Result<Option<&tokio_postgres::Row>, StoreError> {
        self.current = self.connection.wait(self.stream.try_next())?;
        Ok(self.current.as_ref())
    }
}

impl Postgres {
    /// Connects to the server of a URL. No statement will wait longer than `timeout`.
    pub fn connect(url: &IndexUrl, timeout: Duration) -> Result<Postgres, StoreError> {
        let address = Address::of(url)?;
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| StoreError::Away {
                place: address.place.clone(),
                what: error.message(),
            })?;
        let connection = Postgres {
            runtime: Some(runtime),
            address,
            timeout: Cell::new(timeout),
            host: Cell::new(None),
            generation: Cell::new(0),
            state: RefCell::default(),
        };
        connection.client()?;
        Ok(connection)
    }

    /// Sets the row without which transactions write nothing.
    pub(super) fn write_as(&self, host: Option<i64>) {
        self.host.set(host);
    }

    /// The row without which transactions write nothing.
    pub fn host(&self) -> Option<i64> {
        self.host.get()
    }

    /// Returns how often the connection has been made.
    pub fn generation(&self) -> u64 {
        self.generation.get()
    }

    /// Sets how long a statement waits.
    pub(super) fn set_timeout(&self, timeout: Duration) {
        self.timeout.set(timeout);
    }

    /// Returns how long a statement waits.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout.get()
    }

    pub(super) fn prepare(&self, sql: &str) -> Statement<'_> {
        Statement {
            connection: self,
            sql: sql.to_owned(),
        }
    }

    /// Runs a statement that answers nothing.
    pub fn execute(&self, sql: &str, params: &[Value<'_>]) -> Result<(), StoreError> {
        let mut rows = Box::pin(self.stream(sql, params)?);
        while self.wait(rows.try_next())?.is_some() {}
        Ok(())
    }

    /// Runs statements without parameters, in one message.
    pub fn batch(&self, sql: &str) -> Result<Vec<SimpleQueryMessage>, StoreError> {
        self.again(|| {
            let client = self.client()?;
            self.wait(client.simple_query(sql))
        })
    }

    /// Begins a transaction and takes the lock that all transactions take which write: the numbers of changes are
    /// therefore in the order of the commits.
    pub(super) fn begin(&self) -> Result<(), StoreError> {
        self.begin_and_read(None).map(drop)
    }

    /// The same, with the first row of a query's answer. All of it is sent at once.
    pub fn begin_and_read(&self, query: Option<&str>) -> Result<Option<Row>, StoreError> {
        let host = self.host.get();
        let mut statements = vec![("UPDATE epoch SET writes = writes + 1", Vec::new())];
        if let Some(host) = host {
            let own = "SELECT 1 FROM host WHERE id = ?1";
            statements.push((own, vec![Value::from(host)]));
        }
        statements.extend(query.map(|query| (query, Vec::new())));
        let begun = self.again(|| self.together(Some("BEGIN"), &statements, None));
        let begun = begun.and_then(|answers| {
            let mut answers = answers.into_iter().skip(1);
            if host.is_some() && answers.next().is_none_or(|rows| rows.is_empty()) {
                return Err(StoreError::Lapsed);
            }
            Ok(answers.next().and_then(|rows| rows.into_iter().next()))
        });
        match begun {
            Ok(row) => {
                self.state.borrow_mut().is_in_transaction = true;
                Ok(row)
            }
            Err(error) => {
                self.roll_back();
                Err(error)
            }
        }
    }

    /// Sends statements at once, between two that have no parameters, and waits for their answers. After one that fails
    /// within a transaction, all others fail, and a commit rolls back without an error of its own.
    fn together(
        &self,
        first: Option<&str>,
        statements: &[(&str, Vec<Value<'_>>)],
        last: Option<&str>,
    ) -> Result<Vec<Vec<Row>>, StoreError> {
        let client = self.client()?;
        let prepared = statements
            .iter()
            .map(|(sql, _)| self.prepared(&client, sql))
            .collect::<Result<Vec<_>, _>>()?;
        let plain = |sql: Option<&str>| {
            let (client, sql) = (Arc::clone(&client), sql.map(str::to_owned));
            async move {
                match sql {
                    Some(sql) => client.batch_execute(&sql).await,
                    None => Ok(()),
                }
            }
        };
        let asked = prepared.iter().zip(statements);
        let asked = asked.map(|(statement, (_, values))| {
            let client = &client;
            async move {
                let rows = client.query_raw(statement, values).await?;
                rows.try_collect::<Vec<_>>().await
            }
        });
        // Each is sent when it is first polled, which is in this order.
        self.wait(async {
            let (begun, answers, ended) = join3(plain(first), join_all(asked), plain(last)).await;
            begun?;
            let answers = answers.into_iter().collect::<Result<Vec<_>, _>>()?;
            ended?;
            Ok(answers)
        })
    }

    /// Ends a transaction that has changed nothing but the count of them.
    pub fn end_without_change<T>(&self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        self.state.borrow_mut().is_in_transaction = false;
        self.roll_back();
        result
    }

    /// Ends a transaction with statements, which are sent together with the commit. Returns for each the first number
    /// in its answer, if it has a row.
    pub fn end_with(
        &self,
        statements: &[(&str, Vec<Value<'_>>)],
    ) -> Result<Vec<Option<i64>>, StoreError> {
        let ended = self.together(None, statements, Some("COMMIT"));
        self.state.borrow_mut().is_in_transaction = false;
        match ended {
            Ok(answers) => {
                let number = |rows: &Vec<Row>| rows.first()?.try_get(0).ok();
                Ok(answers.iter().map(number).collect())
            }
            Err(error) => {
                self.roll_back();
                Err(error)
            }
        }
    }

    /// Ends a transaction: a commit, unless the change has failed.
    pub(super) fn end<T, E: TransactionError>(&self, changed: Result<T, E>) -> Result<T, E> {
        let ended = changed.and_then(|value| {
            // A transaction in which a statement has failed is rolled back by its commit, without an error.
            self.batch("COMMIT")?;
            Ok(value)
        });
        self.state.borrow_mut().is_in_transaction = false;
        if ended.is_err() {
            self.roll_back();
        }
        ended
    }

    /// Takes the one turn to change tree and index together, and waits for it: a transaction that has the row locked.
    pub fn take_turn(&self) -> Result<(), StoreError> {
        // The tree is changed meanwhile, which may take longer than the pause between two statements elsewhere.
        let taken = self.batch(
            "BEGIN; SET LOCAL idle_in_transaction_session_timeout = 15000;
             SELECT one FROM turn WHERE one = 1 FOR UPDATE",
        );
        if let Err(error) = taken {
            self.roll_back();
            return Err(error);
        }
        self.state.borrow_mut().is_in_transaction = true;
        Ok(())
    }

    /// Ends the turn. Fails if it has ended before.
    pub fn end_turn(&self) -> Result<(), StoreError> {
        self.end(Ok(()))
    }

    /// A refill may read the tree for a long time between two statements.
    pub(super) fn refill_begins(&self) -> Result<(), StoreError> {
        self.batch("SET idle_in_transaction_session_timeout = 0")
            .map(drop)
    }

    pub(super) fn refill_ends(&self) -> Result<(), StoreError> {
        let set = address::IDLE_IN_TRANSACTION;
        self.batch(&format!("SET idle_in_transaction_session_timeout = {set}"))?;
        // Plans are made from statistics, which the server would collect some time later.
        self.batch("ANALYZE item, relation, alias").map(drop)
    }

    /// Reads the database as it is at one instant, whatever others write meanwhile.
    pub fn at_one_instant<T, E: TransactionError>(
        &self,
        read: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        self.batch("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
        self.state.borrow_mut().is_in_transaction = true;
        self.end(read())
    }

    /// The text of a statement's answer.
    pub fn text(&self, sql: &str) -> Result<String, StoreError> {
        let text = self.first_value(sql)?;
        text.ok_or_else(|| super::value::unexpected(&0))
    }

    /// The first value of a statement's answer, if it has one of this type.
    fn first_value<T: for<'row> FromSql<'row>>(&self, sql: &str) -> Result<Option<T>, StoreError> {
        let mut rows = Box::pin(self.stream(sql, &[])?);
        let row = self.wait(rows.try_next())?;
        Ok(row.and_then(|row| row.try_get(0).ok()))
    }

    /// Returns the number of transactions that have written.
    pub fn writes(&self) -> Result<i64, StoreError> {
        let writes = self.first_value("SELECT writes FROM epoch")?;
        writes.ok_or_else(|| StoreError::Broken {
            what: message!("table epoch is empty"),
        })
    }

    /// Host, port and database, for messages.
    pub(super) fn place(&self) -> &str {
        &self.address.place
    }

    fn roll_back(&self) {
        let client = self.state.borrow().client.clone();
        if let Some(client) = client.filter(|client| !client.is_closed()) {
            // If this fails, too, the connection is given up, and the server rolls back.
            let _ = self.wait(client.simple_query("ROLLBACK"));
        }
    }

    fn stream(&self, sql: &str, params: &[Value<'_>]) -> Result<RowStream, StoreError> {
        self.again(|| {
            let client = self.client()?;
            let statement = self.prepared(&client, sql)?;
            self.wait(client.query_raw(&statement, params))
        })
    }

    fn prepared(
        &self,
        client: &Client,
        sql: &str,
    ) -> Result<tokio_postgres::Statement, StoreError> {
        if let Some(known) = self.state.borrow().prepared.get(sql) {
            return Ok(known.clone());
        }
        let statement = self.wait(client.prepare(&values::numbered(sql)))?;
        let mut state = self.state.borrow_mut();
        if state.prepared.len() >= MOST_PREPARED {
            state.prepared.clear();
        }
        state.prepared.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// Asks the server. If a connection that was there turns out to be lost, it is made again and the server asked
    /// once more, unless a transaction was lost with it.
    fn again<T>(&self, ask: impl Fn() -> Result<T, StoreError>) -> Result<T, StoreError> {
        let was_connected = self.state.borrow().client.is_some();
        let answered = ask();
        let mut state = self.state.borrow_mut();
        let is_lost = matches!(state.away, Some((_, Absence::Lost)));
        if answered.is_ok() || !was_connected || !is_lost || state.is_in_transaction {
            return answered;
        }
        state.away = None;
        drop(state);
        ask()
    }

    /// The connection, which is made if there is none.
    fn client(&self) -> Result<Arc<Client>, StoreError> {
        let (client, is_in_transaction, away) = {
            let state = self.state.borrow();
            (state.client.clone(), state.is_in_transaction, state.away)
        };
        if let Some(client) = client.filter(|client| !client.is_closed()) {
            return Ok(client);
        }
        if is_in_transaction {
            return Err(self.away(Absence::Lost, message!("the connection was lost")));
        }
        if away.is_some_and(|(until, _)| Instant::now() < until) {
            return Err(StoreError::Away {
                place: self.address.place.clone(),
                what: message!("it did not answer a moment ago"),
            });
        }
        let address = &self.address;
        let connected = async move { tokio::time::timeout(CONNECT, address.connect()).await };
        let made = self.block_on(connected).and_then(Result::ok);
        match made {
            Some(Ok(client)) => {
                let client = Arc::new(client);
                let mut state = self.state.borrow_mut();
                state.prepared.clear();
                state.client = Some(Arc::clone(&client));
                state.away = None;
                self.generation.set(self.generation.get() + 1);
                Ok(client)
            }
            Some(Err(what)) => Err(self.away(Absence::Silent, what)),
            None => Err(self.away(Absence::Silent, message!("it does not answer"))),
        }
    }

    /// Waits for a future; None if it takes longer than the timeout.
    fn block_on<F>(&self, future: F) -> Option<F::Output>
    where
        F: Future + Send,
        F::Output: Send,
    {
        let (runtime, timeout) = (self.runtime.as_ref()?, self.timeout.get());
        let wait = move || {
            let answered = async { tokio::time::timeout(timeout, future).await };
            runtime.block_on(answered).ok()
        };
        // A thread of the web service may belong to a runtime. Such a thread cannot enter a second one.
        if Handle::try_current().is_err() {
            return wait();
        }
        std::thread::scope(|scope| match scope.spawn(wait).join() {
            Ok(answered) => answered,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }

    /// Waits for the server's answer.
    fn wait<T>(
        &self,
        asked: impl Future<Output = Result<T, tokio_postgres::Error>> + Send,
    ) -> Result<T, StoreError>
    where
        T: Send,
    {
        match self.block_on(asked) {
            Some(Ok(value)) => Ok(value),
            Some(Err(error)) => Err(self.error(&error)),
            None => Err(self.away(Absence::Silent, message!("it does not answer"))),
        }
    }

    /// Gives up the connection.
    fn away(&self, absence: Absence, what: Message) -> StoreError {
        let mut state = self.state.borrow_mut();
        state.client = None;
        state.prepared.clear();
        state.away = Some((Instant::now() + PAUSE, absence));
        StoreError::Away {
            place: self.address.place.clone(),
            what,
        }
    }

    fn error(&self, error: &tokio_postgres::Error) -> StoreError {
        let Some(said) = error.as_db_error() else {
            return self.away(Absence::Lost, described(error));
        };
        let what = Message::foreign(said.message().to_owned());
        let kind = match *said.code() {
            SqlState::T_R_SERIALIZATION_FAILURE | SqlState::T_R_DEADLOCK_DETECTED => {
                return StoreError::Conflict;
            }
            SqlState::DISK_FULL => ErrorKind::StorageFull,
            SqlState::INSUFFICIENT_PRIVILEGE => ErrorKind::PermissionDenied,
            SqlState::READ_ONLY_SQL_TRANSACTION => ErrorKind::ReadOnlyFilesystem,
            _ => ErrorKind::Other,
        };
        // Classes of codes: connection, the server ends, too many connections or no memory. And a table is missing: a
        // dump is being put back.
        let is_away = ["08", "57P", "53", SqlState::UNDEFINED_TABLE.code()]
            .iter()
            .any(|class| said.code().code().starts_with(class));
        if is_away && kind == ErrorKind::Other {
            return self.away(Absence::Lost, what);
        }
        StoreError::Server {
            place: self.address.place.clone(),
            kind,
            what,
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // A thread that belongs to another runtime may not wait for the end of this one.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The text of an error, with its causes.
fn described(error: &tokio_postgres::Error) -> Message {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    Message::foreign(text)
}
