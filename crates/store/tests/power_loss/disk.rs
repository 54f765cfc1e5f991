//! A disk in memory that keeps what was synced and, of what was not, whatever it likes.
//!
//! A file is its content as programs see it, its content as of its last sync, and the writes since.
//! When the power fails, each of those writes is kept, dropped or torn, independently: of a torn
//! one, any of its 512-byte sectors may have arrived. New names and deletions become durable with
//! a sync of the folder, which is what the first sync of a new log or journal is on real systems.
//!
//! Failing is looking: at chosen operations the disk copies itself, and goes on. So one run of a
//! workload gives as many crash points as there are copies.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tourbillon_store::conformance::Rng;

const SECTOR: usize = 512;

/// Files by their paths.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

#[derive(Debug, Clone)]
enum Unsynced {
    Write(usize, Vec<u8>),
    Truncate(usize),
}

#[derive(Debug, Clone, Default)]
struct FileState {
    data: Vec<u8>,
    synced: Vec<u8>,
    /// Whether the name survives.
    named: bool,
    unsynced: Vec<Unsynced>,
}

/// What a power failure at one moment finds.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    files: BTreeMap<String, FileState>,
    /// Deleted files whose names may come back.
    deleted: Vec<(String, FileState)>,
    /// Commits that were answered before.
    pub(crate) acknowledged: usize,
}

/// How a disk misbehaves while it has power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Files whose names end so do not grow.
    Full(&'static str),
    /// Syncs of files whose names end so fail.
    NoSync(&'static str),
    /// Writes to files whose names end so fail.
    NoWrite(&'static str),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Disk {
    /// What is wrong with it now.
    pub(crate) trouble: Option<Trouble>,
    files: BTreeMap<String, FileState>,
    deleted: Vec<(String, FileState)>,
    rng: Rng,
    one_in: u64,
    acknowledged: Arc<AtomicUsize>,
    pub(crate) snapshots: Vec<Snapshot>,
}

impl Disk {
    /// A disk that holds these files, all synced. It copies itself once in `one_in` operations,
    /// never when that is 0.
    pub(crate) fn new(
        files: Files,
        seed: u64,
        one_in: u64,
        acknowledged: Arc<AtomicUsize>,
    ) -> Disk {
        let synced = |data: Vec<u8>| FileState {
            synced: data.clone(),
            data,
            named: true,
            unsynced: Vec::new(),
        };
        Disk {
            trouble: None,
            files: files.into_iter().map(|(name, data)| (name, synced(data))).collect(),
            deleted: Vec::new(),
            rng: Rng::new(seed),
            one_in,
            acknowledged,
            snapshots: Vec::new(),
        }
    }

    /// Called before an operation takes effect on the disk.
    fn maybe_fail(&mut self) {
        if self.one_in > 0 && self.rng.one_in(self.one_in) {
            self.snapshots.push(Snapshot {
                files: self.files.clone(),
                deleted: self.deleted.clone(),
                acknowledged: self.acknowledged.load(Ordering::SeqCst),
            });
        }
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        self.files.contains_key(name)
    }

    pub(crate) fn create(&mut self, name: &str) {
        self.files.entry(name.to_owned()).or_default();
    }

    pub(crate) fn size(&self, name: &str) -> usize {
        self.files.get(name).map_or(0, |file| file.data.len())
    }

    /// Fills the buffer as far as the file goes; answers how far that is.
    pub(crate) fn read(&self, name: &str, at: usize, buffer: &mut [u8]) -> usize {
        let data = self.files.get(name).map_or(&[][..], |file| &file.data);
        let found = data.get(at..).unwrap_or(&[]);
        let n = found.len().min(buffer.len());
        buffer[..n].copy_from_slice(&found[..n]);
        n
    }

    pub(crate) fn write(&mut self, name: &str, at: usize, bytes: &[u8]) {
        let file = self.files.entry(name.to_owned()).or_default();
        put(&mut file.data, at, bytes);
        file.unsynced.push(Unsynced::Write(at, bytes.to_vec()));
        // After the write, so that the newest write is at stake too.
        self.maybe_fail();
    }

    pub(crate) fn truncate(&mut self, name: &str, size: usize) {
        let file = self.files.entry(name.to_owned()).or_default();
        file.data.resize(size, 0);
        file.unsynced.push(Unsynced::Truncate(size));
        self.maybe_fail();
    }

    /// Makes a file durable; `folder` its name and all deletions too.
    pub(crate) fn sync(&mut self, name: &str, folder: bool) {
        self.maybe_fail();
        if let Some(file) = self.files.get_mut(name) {
            file.synced.clone_from(&file.data);
            file.unsynced.clear();
            file.named = true;
        }
        if folder {
            self.sync_folder();
        }
        self.maybe_fail();
    }

    fn sync_folder(&mut self) {
        self.deleted.clear();
        self.files.values_mut().for_each(|file| file.named = true);
    }

    pub(crate) fn delete(&mut self, name: &str, folder: bool) -> bool {
        self.maybe_fail();
        let Some(file) = self.files.remove(name) else { return false };
        self.deleted.push((name.to_owned(), file));
        if folder {
            self.sync_folder();
        }
        self.maybe_fail();
        true
    }
}

impl Snapshot {
    /// What is left after the power came back.
    pub(crate) fn survivors(&self, rng: &mut Rng) -> Files {
        let mut left = Files::new();
        for (name, file) in &self.deleted {
            if rng.one_in(2) {
                left.insert(name.clone(), file.survivor(rng));
            }
        }
        for (name, file) in &self.files {
            if file.named || rng.one_in(2) {
                left.insert(name.clone(), file.survivor(rng));
            } else if !file.named {
                left.remove(name);
            }
        }
        left
    }
}

impl FileState {
    fn survivor(&self, rng: &mut Rng) -> Vec<u8> {
        let mut data = self.synced.clone();
        for change in &self.unsynced {
            match (change, rng.below(3)) {
                (_, 0) => {}
                (Unsynced::Truncate(size), _) => data.resize(*size, 0),
                (Unsynced::Write(at, bytes), 1) => put(&mut data, *at, bytes),
                (Unsynced::Write(at, bytes), _) => {
                    let mut done = 0;
                    while done < bytes.len() {
                        let from = at + done;
                        let n = (SECTOR - from % SECTOR).min(bytes.len() - done);
                        if rng.one_in(2) {
                            put(&mut data, from, &bytes[done..done + n]);
                        }
                        done += n;
                    }
                }
            }
        }
        data
    }
}

fn put(data: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    if data.len() < at + bytes.len() {
        data.resize(at + bytes.len(), 0);
    }
    data[at..at + bytes.len()].copy_from_slice(bytes);
}
