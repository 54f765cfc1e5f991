//! One process per data folder: an exclusive lock on `DATA/lock`.
//!
//! The operating system drops the lock with the process, however it ends. The file holds the
//! process id of whoever took it last, to name it in the refusal; the id alone decides nothing.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

use crate::error::{StoreError, StoreErrorKind};

/// A held lock; dropping it gives it up.
#[derive(Debug)]
pub(super) struct FolderLock {
    _file: File,
}

/// Takes the lock of a data folder.
pub(super) fn take(folder: &Path) -> Result<FolderLock, StoreError> {
    let path = folder.join("lock");
    let io = |what: &str, error: &dyn std::fmt::Display| {
        StoreError::new(StoreErrorKind::Io, format!("cannot {what} {}: {error}", path.display()))
    };
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(|error| io("open", &error))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            let known = file.read_to_string(&mut holder).is_ok() && !holder.trim().is_empty();
            let holder = if known {
                format!("process {}", holder.trim())
            } else {
                "another process".to_owned()
            };
            return Err(StoreError::new(
                StoreErrorKind::InUse,
                format!(
                    "the data folder {} is in use by {holder} (it holds the lock on {}); stop it, \
                     or give another folder",
                    folder.display(),
                    path.display()
                ),
            ));
        }
        Err(TryLockError::Error(error)) => return Err(io("lock", &error)),
    }
    let write_pid = |file: &mut File| {
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{}", std::process::id())
    };
    // The lock holds without it; on a full disk the name of the holder is all that is lost.
    let _ = write_pid(&mut file);
    Ok(FolderLock { _file: file })
}
