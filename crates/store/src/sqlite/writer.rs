//! The one connection that writes: a batch of units is one transaction.
//!
//! A unit of several writes runs in a savepoint, so that a refusal takes back that unit alone; a
//! single write that is refused has changed nothing. What is kept beside the database (counters'
//! deltas, the next sequence, the catalogue, the size of the inbox) moves only when the
//! transaction does: after any failure it is read again.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::{CachedStatement, Connection};

use crate::error::{StoreError, StoreErrorKind};
use crate::id::QueueId;
use crate::lease::Leases;
use crate::state::State;
use crate::store::{Lease, LeaseAsk};
use crate::write::{Done, Refusal, Refused, Unit, UnitResult, Write};

use super::bucket::Density;
use super::catalog::Catalog;
use super::error::kind_of;

/// Why a write did not happen.
#[derive(Debug)]
pub(super) enum Stop {
    /// The unit is refused; the batch goes on.
    Refused(Refusal),
    /// The batch fails.
    Failed(StoreError),
}

impl From<Refusal> for Stop {
    fn from(why: Refusal) -> Stop {
        Stop::Refused(why)
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Stop {
        Stop::Failed(error)
    }
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Stop {
        Stop::Failed(error.into())
    }
}

/// What the writer knows without asking the database.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) catalog: Catalog,
    pub(super) next_seq: i64,
    /// The greatest id of version 7 that was ever stored. A greater one is new without asking
    /// the indexes, which is so for nearly every id that a server makes.
    pub(super) max_id: u128,
    pub(super) density: Density,
    /// Rows in the inbox; while it is 0, nothing need be deleted there.
    pub(super) inbox: i64,
}

/// What a unit changes beside the database.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) counts: Vec<(QueueId, State, i64)>,
    pub(super) inbox: i64,
    /// Queues, namespaces or kinds were created or changed.
    pub(super) catalog: bool,
}

/// See the module.
pub(super) struct Writer {
    pub(super) conn: Connection,
    /// Who holds what. Changed by [`Writer::ask`] alone but for renewals, which need not wait for
    /// the batch under way.
    pub(super) leases: Arc<Mutex<Leases>>,
    known: Option<Known>,
}

/// A transaction, and the unit of it that is being applied.
pub(super) struct Tx<'a> {
    pub(super) conn: &'a Connection,
    pub(super) known: &'a mut Known,
    /// Of the unit.
    pub(super) changes: Changes,
    /// The statement that inserts a task, once it was needed: a batch has thousands, and finding
    /// it by its text for each is a measurable part of an insert.
    pub(super) insert: Option<CachedStatement<'a>>,
}

/// Leases are changed in one assignment, so a panic elsewhere leaves them whole.
pub(super) fn lock(leases: &Mutex<Leases>) -> MutexGuard<'_, Leases> {
    leases.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tx<'_> {
    /// Counts a task into (1) or out of (−1) a state.
    pub(super) fn count(&mut self, queue: QueueId, state: State, by: i64) {
        self.changes.counts.push((queue, state, by));
    }
}

impl Writer {
    /// A writer on a connection whose schema is up to date. Nobody holds a shard any more.
    pub(super) fn new(conn: Connection) -> Result<Writer, StoreError> {
        let mut leases = Leases::default();
        {
            let mut select = conn.prepare("SELECT shard, epoch FROM leases")?;
            let mut rows = select.query([])?;
            while let Some(row) = rows.next()? {
                leases.restore(crate::id::Shard(row.get(0)?), crate::id::Epoch(row.get(1)?));
            }
        }
        conn.set_prepared_statement_cache_capacity(128);
        let leases = Arc::new(Mutex::new(leases));
        let mut writer = Writer { conn, leases, known: None };
        writer.known = Some(writer.read_known()?);
        Ok(writer)
    }

    fn read_known(&self) -> Result<Known, StoreError> {
        let number = |sql: &str| self.conn.query_row(sql, [], |row| row.get::<_, i64>(0));
        let high = number("SELECT value FROM meta WHERE name = 'max_id_high'")?;
        let low = number("SELECT value FROM meta WHERE name = 'max_id_low'")?;
        Ok(Known {
            catalog: Catalog::read(&self.conn)?,
            next_seq: number("SELECT value FROM meta WHERE name = 'next_seq'")?,
            max_id: u128::from(high as u64) << 64 | u128::from(low as u64),
            density: Density::default(),
            inbox: number("SELECT count(*) FROM inbox")?,
        })
    }

    /// Commits the units as one transaction.
    pub(super) fn commit(&mut self, units: &[Unit]) -> Result<Vec<UnitResult>, StoreError> {
        let mut known = match self.known.take() {
            Some(known) => known,
            None => self.read_known()?,
        };
        let result = self.transaction(units, &mut known);
        match result {
            Ok(results) => {
                self.known = Some(known);
                Ok(results)
            }
            Err(error) => {
                self.roll_back();
                Err(error)
            }
        }
    }

    /// Ends a failed transaction, if SQLite has not done so by itself.
    fn roll_back(&mut self) {
        if !self.conn.is_autocommit() {
            // The next BEGIN tells if this failed.
            let _ = self.conn.execute_batch("ROLLBACK");
        }
    }

    fn transaction(
        &mut self,
        units: &[Unit],
        known: &mut Known,
    ) -> Result<Vec<UnitResult>, StoreError> {
        self.execute("BEGIN IMMEDIATE")?;
        let first_seq = known.next_seq;
        let mut counts: HashMap<(QueueId, State), i64> = HashMap::new();
        let mut results = Vec::with_capacity(units.len());
        let mut tx = Tx { conn: &self.conn, known, changes: Changes::default(), insert: None };
        for unit in units {
            let seq = tx.known.next_seq;
            let result = self.unit(unit, &mut tx)?;
            let changes = std::mem::take(&mut tx.changes);
            match result {
                Ok(done) => {
                    tx.known.inbox += changes.inbox;
                    for (queue, state, by) in changes.counts {
                        *counts.entry((queue, state)).or_default() += by;
                    }
                    results.push(Ok(done));
                }
                Err(refused) => {
                    tx.known.next_seq = seq;
                    if changes.catalog {
                        tx.known.catalog = Catalog::read(&self.conn)?;
                    }
                    results.push(Err(refused));
                }
            }
        }
        drop(tx);
        self.write_counts(counts)?;
        if known.next_seq != first_seq {
            let mut set = self.conn.prepare_cached("UPDATE meta SET value = ?2 WHERE name = ?1")?;
            set.execute(("next_seq", known.next_seq))?;
            // It may name an id of a refused unit; it need only be great enough.
            set.execute(("max_id_high", (known.max_id >> 64) as i64))?;
            set.execute(("max_id_low", known.max_id as i64))?;
        }
        self.execute("COMMIT").map_err(|error| match kind_of(&error) {
            // Refused before the commit record was written.
            StoreErrorKind::Full | StoreErrorKind::Busy => StoreError::from(error),
            _ => StoreError::from(error).outcome_unknown(),
        })?;
        Ok(results)
    }

    fn execute(&self, sql: &str) -> Result<(), rusqlite::Error> {
        self.conn.prepare_cached(sql)?.execute([]).map(|_| ())
    }

    fn unit(&self, unit: &Unit, tx: &mut Tx<'_>) -> Result<UnitResult, StoreError> {
        let fenced = {
            let leases = lock(&self.leases);
            unit.fences.iter().any(|&(shard, epoch)| !leases.holds(shard, epoch))
        };
        if fenced {
            return Ok(Err(Refused { index: 0, why: Refusal::Fenced }));
        }
        let several = unit.writes.len() > 1;
        if several {
            self.execute("SAVEPOINT unit")?;
        }
        let mut done = Vec::with_capacity(unit.writes.len());
        for (index, write) in unit.writes.iter().enumerate() {
            match tx.write(write) {
                Ok(answer) => done.push(answer),
                Err(Stop::Failed(error)) => return Err(error),
                Err(Stop::Refused(why)) => {
                    if several {
                        self.execute("ROLLBACK TO unit")?;
                        self.execute("RELEASE unit")?;
                    }
                    return Ok(Err(Refused { index, why }));
                }
            }
        }
        if several {
            self.execute("RELEASE unit")?;
        }
        Ok(Ok(done))
    }

    fn write_counts(&self, counts: HashMap<(QueueId, State), i64>) -> Result<(), StoreError> {
        let counts: BTreeMap<_, _> = counts.into_iter().collect();
        let mut upsert = self.conn.prepare_cached(
            "INSERT INTO counters (queue, state, n) VALUES (?1, ?2, ?3)
             ON CONFLICT (queue, state) DO UPDATE SET n = n + excluded.n",
        )?;
        for ((queue, state), by) in counts {
            upsert.execute((queue.0, state as u8, by))?;
        }
        Ok(())
    }

    /// Changes leases; new epochs are on the disk before they are answered, and no batch that was
    /// fenced by the old ones is still under way.
    pub(super) fn ask(&mut self, ask: &LeaseAsk) -> Result<Vec<Lease>, StoreError> {
        let shared = self.leases.clone();
        let mut shared = lock(&shared);
        let mut leases = shared.clone();
        let answer = leases.ask(ask);
        if !answer.taken.is_empty() {
            let written = (|| {
                self.execute("BEGIN IMMEDIATE")?;
                {
                    let mut upsert = self.conn.prepare_cached(
                        "INSERT INTO leases (shard, epoch) VALUES (?1, ?2)
                         ON CONFLICT (shard) DO UPDATE SET epoch = excluded.epoch",
                    )?;
                    for (shard, epoch) in &answer.taken {
                        upsert.execute((shard.0, epoch.0))?;
                    }
                }
                self.execute("COMMIT")
            })();
            if let Err(error) = written {
                self.roll_back();
                return Err(error.into());
            }
        }
        *shared = leases;
        Ok(answer.held)
    }
}

impl Tx<'_> {
    fn write(&mut self, write: &Write) -> Result<Done, Stop> {
        match write {
            Write::EnsureQueue { namespace, name } => self.ensure_queue(namespace, name),
            Write::PutQueue { record } => self.put_queue(record),
            Write::Insert(new) => self.insert(new),
            Write::Start { seq, version, open } => self.start(*seq, *version, open),
            Write::End { seq, version, attempt, output, then } => {
                self.end(*seq, *version, attempt, output.as_deref(), then)
            }
            Write::Close { seq, version, to, at, reason, skipped } => {
                self.close(*seq, *version, *to, *at, reason.as_deref(), skipped.as_ref())
            }
            Write::RequestCancel { seq, version } => self.request_cancel(*seq, *version),
            Write::Edit { seq, version, due, spec } => self.edit(*seq, *version, *due, spec),
            Write::Discard { seq, version } => self.discard(*seq, *version),
            Write::Spill { seqs } => self.spill(seqs),
            Write::Progress { seq, version, claim_until, progress } => {
                self.progress(*seq, *version, *claim_until, progress.as_deref())
            }
            Write::Redrive { namespace, id, due } => self.redrive(*namespace, *id, *due),
            Write::PutSchedule(record) => self.put_schedule(record),
            Write::Advance { uid, version, cursor } => self.advance(*uid, *version, cursor),
            Write::DeleteSchedule { uid, version } => self.delete_schedule(*uid, *version),
            Write::PutCalendar { namespace, name, version, at, doc } => {
                self.put_calendar(namespace, name, *version, *at, doc)
            }
            Write::DeleteCalendar { namespace, name, version } => {
                self.delete_calendar(*namespace, name, *version)
            }
            Write::Stats(delta) => self.add_stats(delta),
            Write::FoldStats { shard, before_minute } => self.fold_stats(*shard, *before_minute),
            Write::PruneStats { before_minute, limit } => self.prune_stats(*before_minute, *limit),
            Write::TakeIn { shard, seqs } => self.take_in(*shard, seqs),
            Write::Prune { succeeded, before, limit } => self.prune(*succeeded, *before, *limit),
        }
    }
}
