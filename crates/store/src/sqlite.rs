//! The store of one node: SQLite, one file, one process.
//!
//! One connection writes, a few read, a thread keeps the write-ahead log small. What was answered
//! is on the disk: WAL with `synchronous=FULL`, read back when the store is opened and reported.
//! A lock on the data folder keeps other processes out, so leases need no waiting: whoever opens
//! the store finds every shard free.
//!
//! What is left out: several processes on one file, a clock of its own, a reader that blocks a
//! writer.

mod bucket;
mod calendars;
mod catalog;
mod checkpoint;
mod error;
mod history;
mod insert;
mod list;
mod live;
mod load;
mod lock;
mod migrate;
mod options;
mod queries;
mod readers;
mod records;
mod row;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::calendar::CalendarRecord;
use crate::error::{StoreError, StoreErrorKind};
use crate::id::{Partition, Seq, Shard};
use crate::lease::Leases;
use crate::queue::QueueRecord;
use crate::store::{
    Edge, Lease, LeaseAsk, LeaseRow, Reloaded, Span, Store, StoreGauges, StoreInfo,
};
use crate::task::{Rank, Stub, Task};
use crate::time::Time;
use crate::write::{Unit, UnitResult};

use checkpoint::{Bounds, Checkpointer};
use lock::FolderLock;
use migrate::{MIGRATIONS, Migration};
pub use options::{SqliteOptions, Synchronous};
use readers::{Reader, Readers};
use writer::Writer;

/// Name of the database inside the data folder.
pub const DATABASE: &str = "tourbillon.db";

/// See the module. Dropping it ends its thread and empties the log, in bounded time.
pub struct SqliteStore {
    // In order of being dropped: the log is emptied while the writer is idle, the lock goes last.
    checkpointer: Checkpointer,
    readers: Readers,
    writer: Mutex<Writer>,
    leases: Arc<Mutex<Leases>>,
    commits: AtomicU64,
    info: StoreInfo,
    _lock: FolderLock,
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore").field("info", &self.info).finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens the store of a data folder, which is created (mode 0700) when it is missing, and
    /// brings its schema up to date. Every shard is free afterwards.
    ///
    /// # Errors
    ///
    /// `InUse` when another process (or store) has it, `TooNew` when a newer binary made its
    /// schema and this one may not use it, `Corrupt` when it is something else, `Full`, `Io`.
    pub fn open(
        folder: impl AsRef<Path>,
        options: &SqliteOptions,
    ) -> Result<SqliteStore, StoreError> {
        SqliteStore::open_with(folder.as_ref(), options, MIGRATIONS)
    }

    fn open_with(
        folder: &Path,
        options: &SqliteOptions,
        migrations: &[Migration],
    ) -> Result<SqliteStore, StoreError> {
        create_folder(folder)?;
        let lock = lock::take(folder)?;
        let path = folder.join(DATABASE);
        if options.vfs.is_none() {
            create_private(&path)?;
        }
        let mut conn = connect(&path, options, false)?;
        let mode: String = conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
        let schema = migrate::run(&mut conn, migrations)?;
        let frames = Arc::new(AtomicU64::new(0));
        let seen = frames.clone();
        conn.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages: std::ffi::c_int| {
            seen.store(u64::from(pages.unsigned_abs()), Ordering::Relaxed);
            Ok(())
        }))?;
        let readers = (0..options.readers.max(1))
            .map(|_| Reader::new(connect(&path, options, true)?, options.read_max))
            .collect::<Result<Vec<Reader>, StoreError>>()?;
        let background = connect(&path, options, false)?;
        let info = info(&path, &conn, &background, &mode, schema)?;
        let bounds = Bounds {
            every: options.checkpoint_every,
            nudge_bytes: options.wal_checkpoint_bytes,
            pause_bytes: options.wal_pause_bytes,
            max_bytes: options.wal_max_bytes,
        };
        let writer = Writer::new(conn)?;
        Ok(SqliteStore {
            checkpointer: Checkpointer::start(background, bounds, frames)?,
            readers: Readers::new(readers, options.read_max),
            leases: writer.leases.clone(),
            writer: Mutex::new(writer),
            commits: AtomicU64::new(0),
            info,
            _lock: lock,
        })
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn create_folder(folder: &Path) -> Result<(), StoreError> {
    if folder.is_dir() {
        return Ok(());
    }
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let created = builder.create(folder).and_then(|()| sync_parent(folder));
    created.map_err(|error| {
        let text = format!("cannot create the data folder {}: {error}", folder.display());
        StoreError::new(StoreErrorKind::Io, text)
    })
}

/// Makes the name of a new folder durable.
fn sync_parent(folder: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    if let Some(parent) = folder.parent().filter(|p| !p.as_os_str().is_empty()) {
        std::fs::File::open(parent)?.sync_all()?;
    }
    let _ = folder;
    Ok(())
}

/// Creates the file for its owner's eyes only: payloads may hold secrets.
fn create_private(path: &PathBuf) -> Result<(), StoreError> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(|_| ()).map_err(|error| {
        let text = format!("cannot create {}: {error}", path.display());
        StoreError::new(StoreErrorKind::Io, text)
    })
}

fn connect(path: &Path, options: &SqliteOptions, reader: bool) -> Result<Connection, StoreError> {
    // Without SQLITE_OPEN_URI: a path is a path, and no parameter in it changes how it is opened.
    let mut flags = OpenFlags::SQLITE_OPEN_NO_MUTEX;
    flags |= if reader {
        OpenFlags::SQLITE_OPEN_READ_ONLY
    } else {
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE
    };
    let conn = match &options.vfs {
        None => Connection::open_with_flags(path, flags)?,
        Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs.as_str())?,
    };
    conn.busy_timeout(options.busy_max)?;
    // Plans must not depend on bound values: a cached statement would be compiled anew each time.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    let cache = if reader { options.reader_cache_bytes } else { options.writer_cache_bytes } / 1024;
    conn.execute_batch(&format!(
        "PRAGMA synchronous = {};
         PRAGMA fullfsync = 1;
         PRAGMA checkpoint_fullfsync = 1;
         PRAGMA wal_autocheckpoint = 0;
         PRAGMA foreign_keys = 0;
         PRAGMA temp_store = MEMORY;
         PRAGMA cache_size = -{cache};
         PRAGMA query_only = {};",
        options.synchronous.code(),
        u8::from(reader),
    ))?;
    if let Some(bytes) = options.database_max_bytes.filter(|_| !reader) {
        let page: i64 = conn.query_row("PRAGMA page_size", [], |row| row.get(0))?;
        let pages = bytes / page.unsigned_abs().max(1);
        conn.execute_batch(&format!("PRAGMA max_page_count = {pages}"))?;
    }
    Ok(conn)
}

/// Reads back what was set, because only what SQLite says counts.
fn info(
    path: &Path,
    writer: &Connection,
    background: &Connection,
    mode: &str,
    schema: i64,
) -> Result<StoreInfo, StoreError> {
    let read = |conn: &Connection| -> Result<i64, StoreError> {
        Ok(conn.query_row("PRAGMA synchronous", [], |row| row.get(0))?)
    };
    let synchronous = read(writer)?.min(read(background)?);
    let name = match synchronous {
        0 => "OFF",
        1 => "NORMAL",
        2 => "FULL",
        _ => "EXTRA",
    };
    let durable = synchronous >= 2 && mode.eq_ignore_ascii_case("wal");
    let warning = if durable {
        ""
    } else {
        "; NOT DURABLE: a power failure may lose acknowledged work (wanted: journal_mode=WAL, \
         synchronous=FULL)"
    };
    let detail = format!(
        "SQLite {}, {}, schema {schema}, journal_mode={}, synchronous={name}{warning}",
        rusqlite::version(),
        path.display(),
        mode.to_uppercase(),
    );
    Ok(StoreInfo { name: "sqlite", exclusive: true, durable, detail })
}

impl Store for SqliteStore {
    fn info(&self) -> StoreInfo {
        self.info.clone()
    }

    fn gauges(&self) -> StoreGauges {
        let pages = self.readers.question().and_then(|question| {
            let number = |sql: &str| question.conn.query_row(sql, [], |row| row.get::<_, i64>(0));
            Ok(number("PRAGMA page_count")?.unsigned_abs()
                * number("PRAGMA page_size")?.unsigned_abs())
        });
        StoreGauges {
            commits: self.commits.load(Ordering::Relaxed),
            data_bytes: pages.unwrap_or(0),
            wal_bytes: self.checkpointer.wal_bytes(),
            checkpoints: self.checkpointer.finished(),
        }
    }

    fn time(&self) -> Result<Option<Time>, StoreError> {
        Ok(None)
    }

    fn commit(&self, units: &[Unit]) -> Result<Vec<UnitResult>, StoreError> {
        let mut writer = self.writer();
        self.checkpointer.make_room()?;
        let results = writer.commit(units)?;
        drop(writer);
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.checkpointer.committed();
        Ok(results)
    }

    fn load(&self, from: &[(Shard, Edge)], until: Time, limit: usize) -> Result<Span, StoreError> {
        self.readers.question()?.load(from, until, limit)
    }

    fn load_overdue(
        &self,
        partition: Partition,
        after: Option<Rank>,
        limit: usize,
    ) -> Result<Vec<Stub>, StoreError> {
        self.readers.question()?.load_overdue(partition, after, limit)
    }

    fn reload(&self, shard: Shard, probe: &[Seq]) -> Result<Reloaded, StoreError> {
        self.readers.question()?.reload(shard, probe)
    }

    fn fetch(&self, seqs: &[Seq]) -> Result<Vec<Option<Task>>, StoreError> {
        self.readers.question()?.fetch(seqs)
    }

    fn inbox(&self, shards: &[Shard]) -> Result<Vec<(Shard, Stub)>, StoreError> {
        let mut question = self.readers.question()?;
        let mut all = Vec::new();
        for &shard in shards {
            all.extend(question.inbox(shard)?.into_iter().map(|stub| (shard, stub)));
        }
        Ok(all)
    }

    fn leases(&self, ask: &LeaseAsk) -> Result<Vec<Lease>, StoreError> {
        if ask.acquire.is_empty() && ask.release.is_empty() {
            return Ok(writer::lock(&self.leases).ask(ask).held);
        }
        self.writer().ask(ask)
    }

    fn lease_table(&self) -> Result<Vec<LeaseRow>, StoreError> {
        Ok(writer::lock(&self.leases).table())
    }

    fn queues(&self) -> Result<Vec<QueueRecord>, StoreError> {
        catalog::read_queues(&self.readers.question()?.conn)
    }

    fn all_calendars(&self) -> Result<Vec<CalendarRecord>, StoreError> {
        let all = "true ORDER BY c.namespace, c.name";
        calendars::read(&self.readers.question()?.conn, all, [])
    }
}

#[cfg(test)]
mod tests;
