//! The writer's memory of names: queues, namespaces and kinds by their interned ids.
//!
//! Queues are all in memory, kinds up to a bound. The writer is the only one who changes them, so
//! nothing here grows stale, except when a transaction or a unit is taken back: then the catalogue
//! is read again.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Row};

use crate::error::StoreError;
use crate::id::{NamespaceId, QueueId};
use crate::queue::QueueRecord;

use super::row::{parse, text};

/// Kinds that are remembered at once.
const KINDS_MAX: usize = 10_000;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    pub(super) queues: HashMap<QueueId, QueueRecord>,
    pub(super) names: HashMap<NamespaceId, HashMap<String, QueueId>>,
    pub(super) namespaces: HashMap<String, NamespaceId>,
    kinds: Kinds,
}

/// Kinds by id and by name, up to a bound, then forgotten and learnt again.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    ids: HashMap<String, u32>,
    names: HashMap<u32, String>,
}

impl Kinds {
    fn learn(&mut self, id: u32, name: &str) {
        if self.ids.len() >= KINDS_MAX {
            self.ids.clear();
            self.names.clear();
        }
        self.ids.insert(name.to_owned(), id);
        self.names.insert(id, name.to_owned());
    }

    /// The name of a kind that a committed row has.
    pub(super) fn name(&mut self, conn: &Connection, id: u32) -> Result<String, StoreError> {
        if let Some(name) = self.names.get(&id) {
            return Ok(name.clone());
        }
        let mut find = conn.prepare_cached("SELECT name FROM kinds WHERE id = ?1")?;
        let name: String = find.query_row([id], |row| row.get(0))?;
        self.learn(id, &name);
        Ok(name)
    }
}

impl Catalog {
    /// Reads it from the database.
    pub(super) fn read(conn: &Connection) -> Result<Catalog, StoreError> {
        let mut catalog = Catalog::default();
        let mut names = conn.prepare_cached("SELECT id, name FROM namespaces")?;
        let mut rows = names.query([])?;
        while let Some(row) = rows.next()? {
            catalog.namespaces.insert(row.get(1)?, NamespaceId(row.get(0)?));
        }
        for queue in read_queues(conn)? {
            catalog.put(queue);
        }
        Ok(catalog)
    }

    fn put(&mut self, queue: QueueRecord) {
        self.names.entry(queue.namespace).or_default().insert(queue.name.clone(), queue.id);
        self.queues.insert(queue.id, queue);
    }

    /// A queue by its names.
    pub(super) fn find(&self, namespace: &str, name: &str) -> Option<&QueueRecord> {
        let namespace = self.namespaces.get(namespace)?;
        self.queues.get(self.names.get(namespace)?.get(name)?)
    }

    /// A namespace, created when it does not exist.
    pub(super) fn namespace(
        &mut self,
        conn: &Connection,
        name: &str,
    ) -> Result<NamespaceId, StoreError> {
        if let Some(id) = self.namespaces.get(name) {
            return Ok(*id);
        }
        conn.prepare_cached("INSERT INTO namespaces (name) VALUES (?1)")?.execute([name])?;
        let id = NamespaceId(rowid(conn)?);
        self.namespaces.insert(name.to_owned(), id);
        Ok(id)
    }

    /// Creates a queue that does not exist, and its namespace when that does not.
    pub(super) fn create(
        &mut self,
        conn: &Connection,
        namespace: &str,
        name: &str,
    ) -> Result<QueueRecord, StoreError> {
        let namespace_id = self.namespace(conn, namespace)?;
        let config = crate::queue::QueueConfig::default();
        conn.prepare_cached(
            "INSERT INTO queues (namespace, name, version, partitions_ever, config)
             VALUES (?1, ?2, 1, ?3, ?4)",
        )?
        .execute((namespace_id.0, name, config.partitions, super::row::json(&config)?))?;
        let queue = QueueRecord {
            id: QueueId(rowid(conn)?),
            namespace: namespace_id,
            namespace_name: namespace.to_owned(),
            name: name.to_owned(),
            version: 1,
            partitions_ever: config.partitions,
            config,
        };
        self.put(queue.clone());
        Ok(queue)
    }

    /// Writes a queue that exists.
    pub(super) fn replace(
        &mut self,
        conn: &Connection,
        queue: QueueRecord,
    ) -> Result<(), StoreError> {
        conn.prepare_cached(
            "UPDATE queues SET version = ?2, partitions_ever = ?3, config = ?4 WHERE id = ?1",
        )?
        .execute((
            queue.id.0,
            queue.version,
            queue.partitions_ever,
            super::row::json(&queue.config)?,
        ))?;
        self.put(queue);
        Ok(())
    }

    /// The id of a kind, created when it is new; whether it was is the answer's second part.
    pub(super) fn kind(
        &mut self,
        conn: &Connection,
        name: &str,
    ) -> Result<(u32, bool), StoreError> {
        if let Some(id) = self.kinds.ids.get(name) {
            return Ok((*id, false));
        }
        let mut find = conn.prepare_cached("SELECT id FROM kinds WHERE name = ?1")?;
        let known = find.query_row([name], |row| row.get(0)).optional()?;
        let id = match known {
            Some(id) => id,
            None => {
                conn.prepare_cached("INSERT INTO kinds (name) VALUES (?1)")?.execute([name])?;
                rowid(conn)?
            }
        };
        self.kinds.learn(id, name);
        Ok((id, known.is_none()))
    }

    /// The name of a kind.
    pub(super) fn kind_name(&mut self, conn: &Connection, id: u32) -> Result<String, StoreError> {
        self.kinds.name(conn, id)
    }
}

/// The row just inserted, as a catalogue id.
fn rowid(conn: &Connection) -> Result<u32, StoreError> {
    let id = conn.last_insert_rowid();
    u32::try_from(id).map_err(|_| super::error::corrupt("more than 4 billion names"))
}

/// All queues, in order of id.
pub(super) fn read_queues(conn: &Connection) -> Result<Vec<QueueRecord>, StoreError> {
    let mut select = conn.prepare_cached(
        "SELECT q.id, q.namespace, n.name, q.name, q.version, q.partitions_ever, q.config
         FROM queues q JOIN namespaces n ON n.id = q.namespace ORDER BY q.id",
    )?;
    let mut rows = select.query([])?;
    let mut queues = Vec::new();
    while let Some(row) = rows.next()? {
        queues.push(queue(row)?);
    }
    Ok(queues)
}

fn queue(row: &Row<'_>) -> Result<QueueRecord, StoreError> {
    Ok(QueueRecord {
        id: QueueId(row.get(0)?),
        namespace: NamespaceId(row.get(1)?),
        namespace_name: row.get(2)?,
        name: row.get(3)?,
        version: row.get(4)?,
        partitions_ever: row.get(5)?,
        config: parse(text(row, 6)?)?,
    })
}
