//! One connection: statements by their text, prepared once, sent several at a time.
//!
//! Sockets are driven by one background thread, so that a caller may be any thread, also one inside
//! an asynchronous runtime: it sends, then sleeps until the answers are there or the time is up. A
//! connection whose answer did not come in time is of no use any more, because nobody knows what the
//! server is doing for it.
//!
//! Absent: transactions as a type. Whoever sends `BEGIN` sees to the end.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::{SinkExt, TryStreamExt};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Row, Statement};

use crate::error::{StoreError, StoreErrorKind};

use super::error::Failure;
use super::options::PostgresOptions;

/// A parameter.
pub(super) type Param<'a> = &'a (dyn ToSql + Sync);

/// Most statements sent before an answer is awaited.
const PIPELINE: usize = 30;

/// Texts of statements that one connection keeps prepared; beyond it, all are prepared anew.
const STATEMENTS_MAX: usize = 256;

/// A statement with its parameters.
pub(super) struct Call<'a> {
    sql: &'static str,
    params: Vec<Param<'a>>,
}

/// A statement with its parameters.
pub(super) fn call<'a>(sql: &'static str, params: &[Param<'a>]) -> Call<'a> {
    Call { sql, params: params.to_vec() }
}

/// What a statement answered.
pub(super) struct Answer {
    pub(super) rows: Vec<Row>,
    /// Rows changed, or rows answered.
    pub(super) affected: u64,
}

/// Opens connections and drives their sockets.
pub(super) struct Connector {
    /// There until it is dropped.
    runtime: Option<Runtime>,
    config: tokio_postgres::Config,
    options: PostgresOptions,
}

impl Connector {
    /// For a URL or a key-value text as libpq has them.
    pub(super) fn new(url: &str, options: &PostgresOptions) -> Result<Connector, StoreError> {
        options.check()?;
        let wrong = |what: String| StoreError::new(StoreErrorKind::Io, what);
        let mut config: tokio_postgres::Config = url.parse().map_err(|error| {
            // The text may hold a password, so it is not repeated.
            wrong(format!(
                "the store's address is not understood ({error}); give \
                 postgres://USER:PASSWORD@HOST:PORT/DATABASE"
            ))
        })?;
        if config.get_ssl_mode() == tokio_postgres::config::SslMode::Require {
            return Err(wrong(
                "the store's address asks for TLS (sslmode=require), which this version does not \
                 speak to PostgreSQL; connect through a local socket, a private network or a tunnel"
                    .to_owned(),
            ));
        }
        config.connect_timeout(options.connect_max).tcp_user_timeout(options.answer_max);
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("store-postgres")
            .enable_all()
            .build()
            .map_err(|error| wrong(format!("no thread for connections: {error}")))?;
        Ok(Connector { runtime: Some(runtime), config, options: options.clone() })
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("there until it is dropped")
    }

    /// Where it connects to, without the password.
    pub(super) fn address(&self) -> String {
        let hosts = self.config.get_hosts().iter().map(|host| match host {
            tokio_postgres::config::Host::Tcp(name) => name.clone(),
            #[cfg(unix)]
            tokio_postgres::config::Host::Unix(path) => path.display().to_string(),
        });
        let hosts: Vec<String> = hosts.collect();
        format!("{}/{}", hosts.join(","), self.config.get_dbname().unwrap_or_default())
    }

    /// A new connection in the store's schema; `role` is shown in the server's list.
    pub(super) fn connect(&self, role: &'static str) -> Result<Connection, Failure> {
        self.connect_with(role, |_| ())
    }

    /// The same, whose notifications are shown to `notified`.
    pub(super) fn connect_with(
        &self,
        role: &'static str,
        notified: impl Fn(&tokio_postgres::Notification) + Send + 'static,
    ) -> Result<Connection, Failure> {
        let mut config = self.config.clone();
        config.application_name(role);
        let opening = self.runtime().spawn(async move { config.connect(NoTls).await });
        // A name that resolves to several addresses may take the bound several times.
        let opened = wait(opening, self.options.connect_max * 2).ok_or(Failure::Late)?;
        let stopped = |_| StoreError::new(StoreErrorKind::Unavailable, "postgres: shutting down");
        let (client, mut socket) = opened.map_err(stopped)??;
        let driving = async move {
            use tokio_postgres::AsyncMessage;
            while let Some(message) =
                std::future::poll_fn(|context| socket.poll_message(context)).await
            {
                match message {
                    Ok(AsyncMessage::Notification(note)) => notified(&note),
                    Ok(_) => {}
                    // Told to whoever waits for an answer.
                    Err(_) => break,
                }
            }
        };
        self.runtime().spawn(driving);
        let answer_max = self.options.answer_max;
        let mut conn = Connection { client, statements: HashMap::new(), answer_max, late: false };
        conn.batch(&self.session())?;
        // A server that is only compatible with PostgreSQL may know none of this, and need none.
        match conn.batch(&self.tuning()) {
            Err(failure) if conn.is_broken() => Err(failure),
            _ => Ok(conn),
        }
    }

    /// The bounds of each connection, and where its tables are.
    fn session(&self) -> String {
        let PostgresOptions { schema, statement_max, lock_max, idle_in_transaction_max, .. } =
            &self.options;
        format!(
            "SET search_path = \"{schema}\"; SET statement_timeout = {}; SET lock_timeout = {};
             SET idle_in_transaction_session_timeout = {}; SET client_encoding = 'UTF8';
             SET default_transaction_isolation = 'read committed'",
            statement_max.as_millis(),
            lock_max.as_millis(),
            idle_in_transaction_max.as_millis(),
        )
    }

    /// What keeps plans what they are meant to be: every statement has an index meant for it, also
    /// while a table is new and looks small.
    fn tuning(&self) -> String {
        format!(
            "SET jit = off; SET work_mem = {}; SET plan_cache_mode = force_generic_plan;
             SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
             SET enable_bitmapscan = off",
            self.options.sort_bytes >> 10
        )
    }
}

impl Drop for Connector {
    fn drop(&mut self) {
        // Not by waiting: this may be a thread of another runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// See the module.
pub(super) struct Connection {
    client: Client,
    statements: HashMap<&'static str, Statement>,
    answer_max: Duration,
    late: bool,
}

impl Connection {
    /// Whether nothing more can be done with it.
    pub(super) fn is_broken(&self) -> bool {
        self.late || self.client.is_closed()
    }

    /// The statements that were prepared, with their numbers of parameters.
    #[cfg(test)]
    pub(super) fn prepared(&self) -> Vec<(&'static str, usize)> {
        self.statements.iter().map(|(sql, statement)| (*sql, statement.params().len())).collect()
    }

    /// The first column of what a statement that is not prepared answers.
    #[cfg(test)]
    pub(super) fn texts(&mut self, sql: &str) -> Result<Vec<String>, Failure> {
        use tokio_postgres::SimpleQueryMessage;
        let answer = wait(self.client.simple_query(sql), self.answer_max);
        let messages = self.in_time(answer)??;
        let text = |message: SimpleQueryMessage| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        };
        Ok(messages.into_iter().filter_map(text).collect())
    }

    /// It is in a state that nobody wants to know.
    pub(super) fn give_up(&mut self) {
        self.late = true;
    }

    /// Statements without parameters, separated by semicolons.
    pub(super) fn batch(&mut self, sql: &str) -> Result<(), Failure> {
        let answer = wait(self.client.batch_execute(sql), self.answer_max);
        Ok(self.in_time(answer)??)
    }

    /// One statement.
    pub(super) fn run(
        &mut self,
        sql: &'static str,
        params: &[Param<'_>],
    ) -> Result<Answer, Failure> {
        let mut answers = self.all(&[call(sql, params)])?;
        Ok(answers.remove(0))
    }

    /// The rows of one statement.
    pub(super) fn rows(
        &mut self,
        sql: &'static str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, Failure> {
        Ok(self.run(sql, params)?.rows)
    }

    /// Statements in order, sent together: what one answers cannot be in the next. The first failure
    /// is told; inside a transaction the later ones did nothing then.
    pub(super) fn all(&mut self, calls: &[Call<'_>]) -> Result<Vec<Answer>, Failure> {
        self.prepare(calls)?;
        let mut answers = Vec::with_capacity(calls.len());
        for some in calls.chunks(PIPELINE) {
            let sent = some.iter().map(|call| {
                let statement = &self.statements[call.sql];
                ask(&self.client, statement, &call.params)
            });
            let came = wait(join_all(sent), self.answer_max);
            for answer in self.in_time(came)? {
                answers.push(answer?);
            }
        }
        Ok(answers)
    }

    fn prepare(&mut self, calls: &[Call<'_>]) -> Result<(), Failure> {
        let mut new = HashSet::new();
        new.extend(calls.iter().map(|c| c.sql).filter(|sql| !self.statements.contains_key(sql)));
        if new.is_empty() {
            return Ok(());
        }
        if self.statements.len() + new.len() > STATEMENTS_MAX {
            self.statements.clear();
            new.extend(calls.iter().map(|c| c.sql));
        }
        let new: Vec<&'static str> = new.into_iter().collect();
        for some in new.chunks(PIPELINE) {
            let preparing = some.iter().map(|sql| self.client.prepare(sql));
            let came = wait(join_all(preparing), self.answer_max);
            for (sql, statement) in some.iter().zip(self.in_time(came)?) {
                self.statements.insert(sql, statement?);
            }
        }
        Ok(())
    }

    /// Rows in the binary format of `COPY … FROM STDIN`; answers how many arrived.
    pub(super) fn copy(&mut self, sql: &'static str, rows: Bytes) -> Result<u64, Failure> {
        self.prepare(&[call(sql, &[])])?;
        let statement = &self.statements[sql];
        let client = &self.client;
        let copying = async move {
            let sink = client.copy_in::<_, Bytes>(statement).await?;
            let mut sink = pin!(sink);
            sink.send(rows).await?;
            sink.finish().await
        };
        let came = wait(copying, self.answer_max);
        Ok(self.in_time(came)??)
    }

    fn in_time<T>(&mut self, answer: Option<T>) -> Result<T, Failure> {
        self.late |= answer.is_none();
        answer.ok_or(Failure::Late)
    }
}

async fn ask(
    client: &Client,
    statement: &Statement,
    params: &[Param<'_>],
) -> Result<Answer, tokio_postgres::Error> {
    let stream = client.query_raw(statement, params.iter().copied()).await?;
    let mut stream = pin!(stream);
    let mut rows = Vec::new();
    while let Some(row) = stream.try_next().await? {
        rows.push(row);
    }
    Ok(Answer { rows, affected: stream.rows_affected().unwrap_or(0) })
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits on this thread; `None` when the time was up before.
pub(super) fn wait<T>(future: impl Future<Output = T>, max: Duration) -> Option<T> {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future: Pin<&mut _> = pin!(future);
    let deadline = Instant::now() + max;
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return Some(value);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        std::thread::park_timeout(left);
    }
}
