//! SQLite's virtual file system on [`Disk`]s, one per data folder.
//!
//! `unsafe` is allowed in this file of a test because SQLite calls a file system through C function
//! pointers; there is no safe way to stand in for the disk. What makes it sound: SQLite passes a
//! file only between `xOpen` and `xClose`, each [`FileHandle`] owns a box made in the first and
//! freed in the second, shared-memory regions are boxes that live as long as any handle has them
//! mapped, and everything else is behind one mutex.
//!
//! Locks and shared memory are those of one process, which is all that a data folder has.

#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use rusqlite::ffi;

use crate::disk::{Disk, Trouble};

/// The name to open databases with.
pub(crate) const NAME: &str = "power-loss";

/// Slots of the lock on a write-ahead log's index.
const SHM_LOCKS: usize = 8;

type SharedDisk = Arc<Mutex<Disk>>;

#[derive(Default)]
struct World {
    disks: HashMap<String, SharedDisk>,
    shared: HashMap<String, Shared>,
}

/// What the handles of one file share.
#[derive(Default)]
struct Shared {
    handles: usize,
    readers: usize,
    reserved: bool,
    exclusive: bool,
    regions: Vec<Box<[u64]>>,
    mapped: usize,
    slots: [(usize, bool); SHM_LOCKS],
}

struct Handle {
    disk: SharedDisk,
    name: String,
    journal: bool,
    synced: bool,
    level: c_int,
    mapped: bool,
    shared: u8,
    exclusive: u8,
}

#[repr(C)]
struct FileHandle {
    base: ffi::sqlite3_file,
    handle: *mut Handle,
}

static WORLD: Mutex<Option<World>> = Mutex::new(None);

fn world() -> MutexGuard<'static, Option<World>> {
    WORLD.lock().unwrap_or_else(PoisonError::into_inner)
}

fn with<T>(f: impl FnOnce(&mut World) -> T) -> T {
    f(world().get_or_insert_default())
}

fn lock(disk: &SharedDisk) -> MutexGuard<'_, Disk> {
    disk.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Puts a disk under a folder, in place of the one that was there.
pub(crate) fn mount(folder: &Path, disk: Disk) -> SharedDisk {
    register();
    let disk = Arc::new(Mutex::new(disk));
    let key = folder.to_string_lossy().into_owned();
    with(|world| world.disks.insert(key, disk.clone()));
    disk
}

/// Takes the disk of a folder away.
pub(crate) fn unmount(folder: &Path) {
    with(|world| world.disks.remove(&*folder.to_string_lossy()));
}

fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // The name must live as long as the process.
        let name: &'static CStr = c"power-loss";
        let vfs = Box::leak(Box::new(ffi::sqlite3_vfs {
            iVersion: 1,
            szOsFile: size_of::<FileHandle>() as c_int,
            mxPathname: 1024,
            pNext: std::ptr::null_mut(),
            zName: name.as_ptr(),
            pAppData: std::ptr::null_mut(),
            xOpen: Some(open),
            xDelete: Some(delete),
            xAccess: Some(access),
            xFullPathname: Some(full_pathname),
            xDlOpen: None,
            xDlError: None,
            xDlSym: None,
            xDlClose: None,
            xRandomness: Some(randomness),
            xSleep: Some(sleep),
            xCurrentTime: Some(current_time),
            xGetLastError: Some(get_last_error),
            xCurrentTimeInt64: None,
            xSetSystemCall: None,
            xGetSystemCall: None,
            xNextSystemCall: None,
        }));
        // SAFETY: the structure is complete and never freed.
        let code = unsafe { ffi::sqlite3_vfs_register(vfs, 0) };
        assert_eq!(code, ffi::SQLITE_OK);
    });
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock_file),
    xUnlock: Some(unlock_file),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

/// The handle of an open file.
///
/// # Safety
///
/// `file` was opened by [`open`] and not closed, and no other borrow of its handle is alive;
/// SQLite uses a file from one thread at a time.
unsafe fn handle<'a>(file: *mut ffi::sqlite3_file) -> &'a mut Handle {
    // SAFETY: by the caller's promise the file is a `FileHandle` with a live box.
    unsafe { &mut *(*file.cast::<FileHandle>()).handle }
}

/// A path as text.
///
/// # Safety
///
/// `name` is a C string.
unsafe fn text(name: *const c_char) -> String {
    // SAFETY: by the caller's promise.
    unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
}

fn disk_of(name: &str) -> Option<SharedDisk> {
    let folder = Path::new(name).parent()?.to_string_lossy().into_owned();
    with(|world| world.disks.get(&folder).cloned())
}

unsafe extern "C" fn open(
    _: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    let file = file.cast::<FileHandle>();
    // SAFETY: SQLite gives `szOsFile` bytes for the file; no methods means "not open".
    unsafe { (*file).base.pMethods = std::ptr::null() };
    if name.is_null() {
        return ffi::SQLITE_CANTOPEN;
    }
    // SAFETY: SQLite's file names are C strings.
    let name = unsafe { text(name) };
    let Some(disk) = disk_of(&name) else { return ffi::SQLITE_CANTOPEN };
    {
        let mut disk = lock(&disk);
        if !disk.exists(&name) {
            if flags & ffi::SQLITE_OPEN_CREATE == 0 {
                return ffi::SQLITE_CANTOPEN;
            }
            disk.create(&name);
        }
    }
    with(|world| world.shared.entry(name.clone()).or_default().handles += 1);
    let journal = flags & (ffi::SQLITE_OPEN_WAL | ffi::SQLITE_OPEN_MAIN_JOURNAL) != 0;
    let handle = Box::new(Handle {
        disk,
        name,
        journal,
        synced: false,
        level: ffi::SQLITE_LOCK_NONE,
        mapped: false,
        shared: 0,
        exclusive: 0,
    });
    // SAFETY: as above; the box is freed in `close`.
    unsafe {
        (*file).handle = Box::into_raw(handle);
        (*file).base.pMethods = &METHODS;
        if !out_flags.is_null() {
            *out_flags = flags;
        }
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: the file is open; after this SQLite does not use it again, so the box is ours.
    let mut handle = unsafe { Box::from_raw((*file.cast::<FileHandle>()).handle) };
    unmap(&mut handle);
    set_level(&mut handle, ffi::SQLITE_LOCK_NONE);
    with(|world| {
        if let Some(shared) = world.shared.get_mut(&handle.name) {
            shared.handles -= 1;
            if shared.handles == 0 {
                world.shared.remove(&handle.name);
            }
        }
    });
    ffi::SQLITE_OK
}

unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    buffer: *mut c_void,
    amount: c_int,
    at: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: an open file and a buffer of `amount` bytes, as SQLite promises.
    let (handle, buffer) = unsafe {
        (handle(file), std::slice::from_raw_parts_mut(buffer.cast::<u8>(), amount as usize))
    };
    let n = lock(&handle.disk).read(&handle.name, at as usize, buffer);
    if n < buffer.len() {
        buffer[n..].fill(0);
        return ffi::SQLITE_IOERR_SHORT_READ;
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    bytes: *const c_void,
    amount: c_int,
    at: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: an open file and `amount` bytes, as SQLite promises.
    let (handle, bytes) =
        unsafe { (handle(file), std::slice::from_raw_parts(bytes.cast::<u8>(), amount as usize)) };
    let mut disk = lock(&handle.disk);
    match disk.trouble {
        Some(Trouble::Full(end))
            if handle.name.ends_with(end)
                && at as usize + bytes.len() > disk.size(&handle.name) =>
        {
            return ffi::SQLITE_FULL;
        }
        Some(Trouble::NoWrite(end)) if handle.name.ends_with(end) => {
            return ffi::SQLITE_IOERR_WRITE;
        }
        _ => {}
    }
    disk.write(&handle.name, at as usize, bytes);
    ffi::SQLITE_OK
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: ffi::sqlite3_int64) -> c_int {
    // SAFETY: an open file.
    let handle = unsafe { handle(file) };
    lock(&handle.disk).truncate(&handle.name, size as usize);
    ffi::SQLITE_OK
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, _: c_int) -> c_int {
    // SAFETY: an open file.
    let handle = unsafe { handle(file) };
    if let Some(Trouble::NoSync(end)) = lock(&handle.disk).trouble
        && handle.name.ends_with(end)
    {
        return ffi::SQLITE_IOERR_FSYNC;
    }
    let folder = handle.journal && !handle.synced;
    handle.synced = true;
    lock(&handle.disk).sync(&handle.name, folder);
    ffi::SQLITE_OK
}

unsafe extern "C" fn file_size(
    file: *mut ffi::sqlite3_file,
    size: *mut ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: an open file and a place for the answer.
    unsafe {
        let handle = handle(file);
        *size = lock(&handle.disk).size(&handle.name) as ffi::sqlite3_int64;
    }
    ffi::SQLITE_OK
}

/// Changes a handle's lock on its file; answers whether it could.
fn set_level(handle: &mut Handle, level: c_int) -> bool {
    with(|world| {
        let Some(shared) = world.shared.get_mut(&handle.name) else { return false };
        let holds = |wanted: c_int| handle.level >= wanted;
        let others = shared.readers - usize::from(holds(ffi::SQLITE_LOCK_SHARED));
        if level > handle.level {
            let exclusive = shared.exclusive && !holds(ffi::SQLITE_LOCK_EXCLUSIVE);
            let reserved = shared.reserved && !holds(ffi::SQLITE_LOCK_RESERVED);
            let refused = exclusive
                || (level >= ffi::SQLITE_LOCK_RESERVED && reserved)
                || (level >= ffi::SQLITE_LOCK_EXCLUSIVE && others > 0);
            if refused {
                return false;
            }
        }
        let changed = |wanted: c_int| (holds(wanted), level >= wanted);
        match changed(ffi::SQLITE_LOCK_SHARED) {
            (false, true) => shared.readers += 1,
            (true, false) => shared.readers -= 1,
            _ => {}
        }
        if let (was, is) = changed(ffi::SQLITE_LOCK_RESERVED)
            && was != is
        {
            shared.reserved = is;
        }
        if let (was, is) = changed(ffi::SQLITE_LOCK_EXCLUSIVE)
            && was != is
        {
            shared.exclusive = is;
        }
        handle.level = level;
        true
    })
}

unsafe extern "C" fn lock_file(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: an open file.
    let handle = unsafe { handle(file) };
    if level <= handle.level || set_level(handle, level) {
        ffi::SQLITE_OK
    } else {
        ffi::SQLITE_BUSY
    }
}

unsafe extern "C" fn unlock_file(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: an open file.
    let handle = unsafe { handle(file) };
    if level < handle.level {
        set_level(handle, level);
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn check_reserved_lock(
    file: *mut ffi::sqlite3_file,
    answer: *mut c_int,
) -> c_int {
    // SAFETY: an open file and a place for the answer.
    unsafe {
        let handle = handle(file);
        let reserved = with(|w| w.shared.get(&handle.name).is_some_and(|s| s.reserved));
        *answer = c_int::from(reserved);
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn file_control(_: *mut ffi::sqlite3_file, _: c_int, _: *mut c_void) -> c_int {
    ffi::SQLITE_NOTFOUND
}

unsafe extern "C" fn sector_size(_: *mut ffi::sqlite3_file) -> c_int {
    4096
}

unsafe extern "C" fn device_characteristics(_: *mut ffi::sqlite3_file) -> c_int {
    // As SQLite assumes of disks: bytes beside a torn write are not harmed.
    ffi::SQLITE_IOCAP_POWERSAFE_OVERWRITE
}

unsafe extern "C" fn shm_map(
    file: *mut ffi::sqlite3_file,
    region: c_int,
    size: c_int,
    extend: c_int,
    answer: *mut *mut c_void,
) -> c_int {
    // SAFETY: an open file.
    let handle = unsafe { handle(file) };
    with(|world| {
        let Some(shared) = world.shared.get_mut(&handle.name) else { return ffi::SQLITE_IOERR };
        if !handle.mapped {
            handle.mapped = true;
            shared.mapped += 1;
        }
        let region = region as usize;
        if extend != 0 {
            while shared.regions.len() <= region {
                shared.regions.push(vec![0u64; size as usize / 8].into_boxed_slice());
            }
        }
        let found = shared.regions.get_mut(region).map(|r| r.as_mut_ptr().cast::<c_void>());
        // SAFETY: a place for the answer. The region's box does not move and lives until the last
        // handle unmaps.
        unsafe { *answer = found.unwrap_or(std::ptr::null_mut()) };
        ffi::SQLITE_OK
    })
}

unsafe extern "C" fn shm_lock(
    file: *mut ffi::sqlite3_file,
    offset: c_int,
    n: c_int,
    flags: c_int,
) -> c_int {
    // SAFETY: an open file.
    let handle = unsafe { handle(file) };
    with(|world| {
        let Some(shared) = world.shared.get_mut(&handle.name) else { return ffi::SQLITE_IOERR };
        let slots = offset as usize..(offset + n) as usize;
        if flags & ffi::SQLITE_SHM_UNLOCK != 0 {
            for slot in slots {
                release(handle, &mut shared.slots[slot], slot);
            }
            return ffi::SQLITE_OK;
        }
        let exclusive = flags & ffi::SQLITE_SHM_EXCLUSIVE != 0;
        for slot in slots.clone() {
            let mine = usize::from(handle.shared & (1 << slot) != 0);
            let (readers, taken) = shared.slots[slot];
            let taken = taken && handle.exclusive & (1 << slot) == 0;
            if taken || (exclusive && readers > mine) {
                return ffi::SQLITE_BUSY;
            }
        }
        for slot in slots {
            let bit = 1 << slot;
            if exclusive {
                shared.slots[slot].1 = true;
                handle.exclusive |= bit;
            } else if handle.shared & bit == 0 {
                shared.slots[slot].0 += 1;
                handle.shared |= bit;
            }
        }
        ffi::SQLITE_OK
    })
}

fn release(handle: &mut Handle, state: &mut (usize, bool), slot: usize) {
    let bit = 1 << slot;
    if handle.shared & bit != 0 {
        handle.shared &= !bit;
        state.0 -= 1;
    }
    if handle.exclusive & bit != 0 {
        handle.exclusive &= !bit;
        state.1 = false;
    }
}

unsafe extern "C" fn shm_barrier(_: *mut ffi::sqlite3_file) {
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}

fn unmap(handle: &mut Handle) {
    with(|world| {
        let Some(shared) = world.shared.get_mut(&handle.name) else { return };
        for slot in 0..SHM_LOCKS {
            release(handle, &mut shared.slots[slot], slot);
        }
        if handle.mapped {
            handle.mapped = false;
            shared.mapped -= 1;
            if shared.mapped == 0 {
                shared.regions.clear();
            }
        }
    });
}

unsafe extern "C" fn shm_unmap(file: *mut ffi::sqlite3_file, _: c_int) -> c_int {
    // SAFETY: an open file.
    unmap(unsafe { handle(file) });
    ffi::SQLITE_OK
}

unsafe extern "C" fn delete(_: *mut ffi::sqlite3_vfs, name: *const c_char, folder: c_int) -> c_int {
    // SAFETY: a C string.
    let name = unsafe { text(name) };
    let Some(disk) = disk_of(&name) else { return ffi::SQLITE_IOERR_DELETE };
    if lock(&disk).delete(&name, folder != 0) {
        ffi::SQLITE_OK
    } else {
        ffi::SQLITE_IOERR_DELETE_NOENT
    }
}

unsafe extern "C" fn access(
    _: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    _: c_int,
    answer: *mut c_int,
) -> c_int {
    // SAFETY: a C string and a place for the answer.
    unsafe {
        let name = text(name);
        let there = disk_of(&name).is_some_and(|disk| lock(&disk).exists(&name));
        *answer = c_int::from(there);
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn full_pathname(
    _: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    size: c_int,
    out: *mut c_char,
) -> c_int {
    // SAFETY: a C string, and `size` bytes for the answer.
    unsafe {
        let length = CStr::from_ptr(name).to_bytes_with_nul().len();
        if length > size as usize {
            return ffi::SQLITE_CANTOPEN;
        }
        std::ptr::copy_nonoverlapping(name, out, length);
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn randomness(_: *mut ffi::sqlite3_vfs, n: c_int, out: *mut c_char) -> c_int {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0x9e37_79b9_7f4a_7c15);
    // SAFETY: `n` bytes for the answer.
    let out = unsafe { std::slice::from_raw_parts_mut(out.cast::<u8>(), n as usize) };
    for byte in out {
        let x = NEXT.fetch_add(0xd134_2543_de82_ef95, Ordering::Relaxed);
        *byte = (x >> 56) as u8;
    }
    n
}

unsafe extern "C" fn sleep(_: *mut ffi::sqlite3_vfs, micros: c_int) -> c_int {
    std::thread::yield_now();
    micros
}

unsafe extern "C" fn current_time(_: *mut ffi::sqlite3_vfs, answer: *mut f64) -> c_int {
    // SAFETY: a place for the answer: the Julian day of some day.
    unsafe { *answer = 2_461_000.5 };
    ffi::SQLITE_OK
}

unsafe extern "C" fn get_last_error(_: *mut ffi::sqlite3_vfs, _: c_int, _: *mut c_char) -> c_int {
    0
}
