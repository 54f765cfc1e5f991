//! Connections for reading, a bounded number, opened when they are needed.
//!
//! A question gets a connection to itself. What broke is dropped, not given back, so a server that
//! came back is found at the next question. A question of one statement needs no transaction; one
//! of several runs in one snapshot ([`Question::snapshot`]).

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::error::{StoreError, StoreErrorKind};

use super::connection::{Connection, Connector};
use super::error::Failure;

/// See the module.
pub(super) struct Readers {
    state: Mutex<State>,
    returned: Condvar,
    wait_max: Duration,
}

struct State {
    idle: Vec<Connection>,
    /// Connections that may still be opened.
    room: usize,
}

/// A connection for one question. Goes back to the pool when dropped.
pub(super) struct Question<'a> {
    pool: &'a Readers,
    conn: Option<Connection>,
}

impl Readers {
    /// At most `count` connections, 1 or more.
    pub(super) fn new(count: usize, wait_max: Duration) -> Readers {
        let state = State { idle: Vec::new(), room: count.max(1) };
        Readers { state: Mutex::new(state), returned: Condvar::new(), wait_max }
    }

    /// Waits for a free connection, or opens one.
    pub(super) fn question(&self, connector: &Connector) -> Result<Question<'_>, StoreError> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut state, timeout) = self
            .returned
            .wait_timeout_while(state, self.wait_max, |s| s.idle.is_empty() && s.room == 0)
            .unwrap_or_else(PoisonError::into_inner);
        if timeout.timed_out() && state.idle.is_empty() && state.room == 0 {
            return Err(StoreError::new(StoreErrorKind::Busy, "postgres: all readers are busy"));
        }
        while let Some(conn) = state.idle.pop() {
            if !conn.is_broken() {
                return Ok(Question { pool: self, conn: Some(conn) });
            }
            state.room += 1;
        }
        state.room -= 1;
        drop(state);
        // Gives the room back when connecting fails.
        let mut question = Question { pool: self, conn: None };
        question.conn = Some(connector.connect("tourbillon reader")?);
        Ok(question)
    }
}

impl Question<'_> {
    /// The connection.
    pub(super) fn conn(&mut self) -> &mut Connection {
        self.conn.as_mut().expect("a question has its connection until it is dropped")
    }

    /// Questions that see one snapshot.
    pub(super) fn snapshot<T>(
        &mut self,
        ask: impl FnOnce(&mut Connection) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let conn = self.conn();
        conn.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", &[])?;
        let answer = ask(conn);
        let end = if answer.is_ok() { "COMMIT" } else { "ROLLBACK" };
        if conn.run(end, &[]).is_err() {
            // Of no use inside a transaction that cannot even be ended.
            conn.give_up();
        }
        answer
    }
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        let mut state = self.pool.state.lock().unwrap_or_else(PoisonError::into_inner);
        match self.conn.take().filter(|conn| !conn.is_broken()) {
            Some(conn) => state.idle.push(conn),
            None => state.room += 1,
        }
        drop(state);
        self.pool.returned.notify_one();
    }
}
