//! An open file. SQLite's operations are forwarded to the underlying file, and changes are also
//! reported to the simulated disk.

use std::ffi::{c_int, c_void};
use std::path::PathBuf;
use std::slice;

use rusqlite::ffi::{self, sqlite3_file};

use crate::image::FileChange;
use crate::state;

/// The file object that SQLite uses. In memory, it is followed by the object of the underlying
/// file.
#[repr(C)]
pub(crate) struct WatchedFile {
    pub(crate) base: sqlite3_file,
    /// Freed when the file is closed. Points to `None` if the file is not watched.
    pub(crate) path: *mut Option<PathBuf>,
}

/// Size of this layer's object in bytes. The object consists of pointers only, so the object of the
/// underlying file, which follows it in memory, is aligned.
#[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "two pointers")]
pub(crate) const WATCHED_FILE_BYTES: c_int = size_of::<WatchedFile>() as c_int;

/// Returns the underlying file.
///
/// # Safety
/// `file` must have been allocated with room for both objects.
pub(crate) unsafe fn below(file: *mut sqlite3_file) -> *mut sqlite3_file {
    // SAFETY: by the contract of this function.
    unsafe { file.cast::<WatchedFile>().add(1).cast() }
}

/// Returns the path of a file, or `None` if the file is not watched.
///
/// # Safety
/// `file` must have been opened by this layer, and not be closed.
unsafe fn watched<'a>(file: *mut sqlite3_file) -> Option<&'a PathBuf> {
    // SAFETY: by the contract of this function, the path is set.
    unsafe { (*(*file.cast::<WatchedFile>()).path).as_ref() }
}

/// Defines functions that SQLite calls with a file of this layer. Each forwards to the underlying
/// file's function with an equal name.
macro_rules! forwarded {
    ($($name:ident ( $($argument:ident : $type:ty),* );)*) => {$(
        #[allow(non_snake_case, reason = "SQLite's name")]
        unsafe extern "C" fn $name(file: *mut sqlite3_file, $($argument: $type),*) -> c_int {
            // SAFETY: SQLite calls it with a file that this layer opened, so there is an underlying
            // file with methods.
            unsafe {
                let below = below(file);
                match (*(*below).pMethods).$name {
                    Some(forward) => forward(below, $($argument),*),
                    None => ffi::SQLITE_IOERR,
                }
            }
        }
    )*};
}

forwarded! {
    xRead(buffer: *mut c_void, amount: c_int, offset: i64);
    xFileSize(size: *mut i64);
    xLock(level: c_int);
    xUnlock(level: c_int);
    xCheckReservedLock(result: *mut c_int);
    xFileControl(operation: c_int, argument: *mut c_void);
    xSectorSize();
    xDeviceCharacteristics();
    xShmMap(page: c_int, size: c_int, extend: c_int, memory: *mut *mut c_void);
    xShmLock(offset: c_int, count: c_int, flags: c_int);
    xShmUnmap(delete: c_int);
    xWrite(bytes: *const c_void, amount: c_int, offset: i64);
    xTruncate(size: i64);
    xSync(flags: c_int);
    xClose();
}

unsafe extern "C" fn barrier(file: *mut sqlite3_file) {
    // SAFETY: as in the functions above.
    unsafe {
        let below = below(file);
        if let Some(forward) = (*(*below).pMethods).xShmBarrier {
            forward(below);
        }
    }
}

unsafe extern "C" fn write(file: *mut sqlite3_file, bytes: *const c_void, amount: c_int, offset: i64) -> c_int {
    // SAFETY: SQLite passes `amount` bytes, and a file that this layer opened.
    unsafe {
        if let (Some(path), Ok(length), Ok(offset)) = (watched(file), usize::try_from(amount), usize::try_from(offset))
        {
            let bytes = slice::from_raw_parts(bytes.cast::<u8>(), length).to_vec();
            state::changed(path, FileChange::Write { offset, bytes });
        }
        xWrite(file, bytes, amount, offset)
    }
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, size: i64) -> c_int {
    // SAFETY: SQLite calls it with a file that this layer opened.
    unsafe {
        if let (Some(path), Ok(size)) = (watched(file), usize::try_from(size)) {
            state::changed(path, FileChange::Truncate(size));
        }
        xTruncate(file, size)
    }
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: SQLite calls it with a file that this layer opened.
    unsafe {
        let status = xSync(file, flags);
        if let (ffi::SQLITE_OK, Some(path)) = (status, watched(file)) {
            state::synced(path);
        }
        status
    }
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    // SAFETY: SQLite closes a file once, and its path was allocated when it was opened.
    unsafe {
        let status = xClose(file);
        drop(Box::from_raw((*file.cast::<WatchedFile>()).path));
        status
    }
}

/// The functions of a file, in version 2 of SQLite's interface. Later versions support memory
/// mapping, whose writes would bypass this layer.
pub(crate) static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(xRead),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(xFileSize),
    xLock: Some(xLock),
    xUnlock: Some(xUnlock),
    xCheckReservedLock: Some(xCheckReservedLock),
    xFileControl: Some(xFileControl),
    xSectorSize: Some(xSectorSize),
    xDeviceCharacteristics: Some(xDeviceCharacteristics),
    xShmMap: Some(xShmMap),
    xShmLock: Some(xShmLock),
    xShmBarrier: Some(barrier),
    xShmUnmap: Some(xShmUnmap),
    xFetch: None,
    xUnfetch: None,
};
