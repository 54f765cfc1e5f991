//! The store that several nodes share: PostgreSQL.
//!
//! One connection writes, one keeps leases, a few read; all are opened anew when they broke. A batch is
//! one transaction that first locks the leases of its shards, so what a node writes after it lost a
//! shard is refused, and a takeover waits for the batch under way. Store time is the database's clock.
//! What the server does with a commit is the server's setting: `synchronous_commit`, `fsync` and
//! `full_page_writes` are read when the store is opened and reported.
//!
//! What is left out: TLS, a pool that others use too, partitioned history (docs/decisions/0009), and
//! whatever divides shards between nodes.

mod connection;
mod copy;
mod error;
mod flush;
mod gather;
mod leases;
mod list;
mod load;
mod migrate;
mod nudge;
mod options;
mod pool;
mod queries;
mod records;
mod row;
#[cfg(any(test, feature = "conformance"))]
pub mod server;
mod singly;
mod text;
mod work;
mod writer;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::calendar::CalendarRecord;
use crate::error::StoreError;
use crate::id::{Partition, Seq, Shard};
use crate::queue::QueueRecord;
use crate::store::{
    Edge, Lease, LeaseAsk, LeaseRow, Reloaded, Span, Store, StoreGauges, StoreInfo,
};
use crate::task::{Rank, Stub, Task};
use crate::time::Time;
use crate::write::{Unit, UnitResult};

use connection::{Connection, Connector};
use migrate::{MIGRATIONS, Migration};
pub use nudge::Nudges;
pub use options::{PostgresOptions, TimeSource};
use pool::{Question, Readers};
use writer::Writer;

/// Places among the counters; opened stores share them in turn.
const SLOTS: i64 = 64;

/// See the module. Dropping it closes its connections without waiting.
pub struct PostgresStore {
    writer: Mutex<Writer>,
    /// Leases have a connection of their own, so that they do not wait for a batch of other shards.
    lease_keeper: Mutex<Option<Connection>>,
    readers: Readers,
    commits: AtomicU64,
    info: StoreInfo,
    channel: String,
    time: TimeSource,
    connector: Connector,
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresStore").field("info", &self.info).finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Opens the store at a URL (`postgres://USER:PASSWORD@HOST:PORT/DATABASE`, or a key-value text
    /// as libpq has them) and brings its schema up to date. Leases stay as they are.
    ///
    /// # Errors
    ///
    /// `Unavailable` when the server cannot be reached, `TooNew` when a newer binary made its schema
    /// and this one may not use it, `Corrupt` when the schema holds something else, `Io` for an address
    /// or option that makes no sense.
    pub fn open(url: &str, options: &PostgresOptions) -> Result<PostgresStore, StoreError> {
        PostgresStore::open_with(url, options, MIGRATIONS)
    }

    fn open_with(
        url: &str,
        options: &PostgresOptions,
        migrations: &[Migration],
    ) -> Result<PostgresStore, StoreError> {
        let connector = Connector::new(url, options)?;
        let mut conn = connector.connect("tourbillon writer")?;
        let schema = migrate::run(&mut conn, &options.schema, migrations)?;
        let info = info(&mut conn, &connector, &options.schema, schema)?;
        let slot = conn.rows("SELECT nextval('writer_seq')", &[])?;
        let slot = row::get::<i64>(&slot[0], 0)?.rem_euclid(SLOTS) as i16;
        let channel = format!("{}_inbox", options.schema);
        Ok(PostgresStore {
            writer: Mutex::new(Writer::new(conn, slot, channel.clone(), options.retries)),
            lease_keeper: Mutex::new(None),
            readers: Readers::new(options.readers, options.answer_max),
            commits: AtomicU64::new(0),
            info,
            channel,
            time: options.time,
            connector,
        })
    }

    fn question(&self) -> Result<Question<'_>, StoreError> {
        self.readers.question(&self.connector)
    }
}

fn info(
    conn: &mut Connection,
    connector: &Connector,
    schema_name: &str,
    schema: i64,
) -> Result<StoreInfo, StoreError> {
    let sql = "SELECT current_setting('server_version'), current_setting('synchronous_commit'),
         current_setting('fsync'), current_setting('full_page_writes')";
    let rows = conn.rows(sql, &[])?;
    let setting = |index| row::get::<String>(&rows[0], index);
    let (version, commit) = (setting(0)?, setting(1)?);
    let (fsync, pages) = (setting(2)?, setting(3)?);
    let durable = commit != "off" && fsync == "on" && pages == "on";
    Ok(StoreInfo {
        name: "postgres",
        exclusive: false,
        durable,
        detail: format!(
            "postgres {version} at {}, schema {schema_name} ({schema}), synchronous_commit={commit}, \
             fsync={fsync}, full_page_writes={pages}",
            connector.address()
        ),
    })
}

impl Store for PostgresStore {
    fn info(&self) -> StoreInfo {
        self.info.clone()
    }

    fn gauges(&self) -> StoreGauges {
        StoreGauges { commits: self.commits.load(Ordering::Relaxed), ..StoreGauges::default() }
    }

    fn time(&self) -> Result<Option<Time>, StoreError> {
        match self.time {
            TimeSource::Caller => Ok(None),
            TimeSource::Database => {
                let rows = self.question()?.conn().rows(leases::NOW, &[])?;
                Ok(Some(Time(row::get(&rows[0], 0)?)))
            }
        }
    }

    fn commit(&self, units: &[Unit]) -> Result<Vec<UnitResult>, StoreError> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let results = writer.commit(&self.connector, units)?;
        self.commits.fetch_add(1, Ordering::Relaxed);
        Ok(results)
    }

    fn load(&self, from: &[(Shard, Edge)], until: Time, limit: usize) -> Result<Span, StoreError> {
        Ok(load::load(self.question()?.conn(), from, until, limit)?)
    }

    fn load_overdue(
        &self,
        partition: Partition,
        after: Option<Rank>,
        limit: usize,
    ) -> Result<Vec<Stub>, StoreError> {
        Ok(load::load_overdue(self.question()?.conn(), partition, after, limit)?)
    }

    fn reload(&self, shard: Shard, probe: &[Seq]) -> Result<Reloaded, StoreError> {
        Ok(self.question()?.snapshot(|conn| load::reload(conn, shard, probe))?)
    }

    fn fetch(&self, seqs: &[Seq]) -> Result<Vec<Option<Task>>, StoreError> {
        Ok(load::fetch(self.question()?.conn(), seqs)?)
    }

    fn inbox(&self, shards: &[Shard]) -> Result<Vec<(Shard, Stub)>, StoreError> {
        Ok(load::inbox(self.question()?.conn(), shards)?)
    }

    fn leases(&self, ask: &LeaseAsk) -> Result<Vec<Lease>, StoreError> {
        let mut keeper = self.lease_keeper.lock().unwrap_or_else(PoisonError::into_inner);
        let mut conn = match keeper.take().filter(|conn| !conn.is_broken()) {
            Some(conn) => conn,
            None => self.connector.connect("tourbillon leases")?,
        };
        let held = leases::ask(&mut conn, ask, self.time);
        if held.is_ok() || (!conn.is_broken() && conn.batch("ROLLBACK").is_ok()) {
            *keeper = Some(conn);
        }
        Ok(held?)
    }

    fn lease_table(&self) -> Result<Vec<LeaseRow>, StoreError> {
        Ok(leases::table(self.question()?.conn())?)
    }

    fn queues(&self) -> Result<Vec<QueueRecord>, StoreError> {
        let rows = self.question()?.conn().rows(records::QUEUES, &[])?;
        rows.iter().map(records::queue).collect()
    }

    fn all_calendars(&self) -> Result<Vec<CalendarRecord>, StoreError> {
        let rows = self.question()?.conn().rows(records::CALENDARS, &[])?;
        rows.iter().map(records::calendar).collect()
    }
}

#[cfg(test)]
mod tests;
