//! Registers the layer as SQLite's default file system. The layer differs from the underlying file
//! system in how it opens and deletes files.

use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr;
use std::sync::Once;

use rusqlite::ffi;

use crate::file::{self, WatchedFile};
use crate::state;

/// Flags of temporary files. SQLite does not open these files again, so their content does not
/// matter after a power cut.
const TEMPORARY: c_int = ffi::SQLITE_OPEN_TEMP_DB
    | ffi::SQLITE_OPEN_TEMP_JOURNAL
    | ffi::SQLITE_OPEN_TRANSIENT_DB
    | ffi::SQLITE_OPEN_SUBJOURNAL
    | ffi::SQLITE_OPEN_DELETEONCLOSE;

/// Registers the layer as the default file system of the process, once.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: SQLite keeps its default file system forever. The copy of it is never freed, nor
        // is its name, as registration requires. Functions that are not replaced work on the copy
        // as they do on the original.
        unsafe {
            let below = ffi::sqlite3_vfs_find(ptr::null());
            let mut layer = *below;
            layer.zName = c"power-cut".as_ptr();
            layer.pAppData = below.cast();
            layer.szOsFile += file::WATCHED_FILE_BYTES;
            layer.pNext = ptr::null_mut();
            layer.xOpen = Some(open);
            layer.xDelete = Some(delete);
            let status = ffi::sqlite3_vfs_register(Box::into_raw(Box::new(layer)), 1);
            assert_eq!(status, ffi::SQLITE_OK, "the layer is not registered");
        }
    });
}

/// Returns the path for a name that SQLite passes.
///
/// # Safety
/// The name must be null or end with a zero byte.
unsafe fn path(name: *const c_char) -> Option<PathBuf> {
    if name.is_null() {
        return None;
    }
    // SAFETY: by the contract of this function.
    let bytes = unsafe { CStr::from_ptr(name) }.to_bytes();
    Some(OsStr::from_bytes(bytes).into())
}

/// Opens a file, and reports its content to the simulated disk if the file is watched.
///
/// # Safety
/// Must be called by SQLite, with `layer` as it was registered, and with `szOsFile` bytes of memory
/// for the file.
unsafe extern "C" fn open(
    layer: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    opened: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: by the contract of this function. The underlying file uses the memory after this
    // layer's object.
    unsafe {
        let below: *mut ffi::sqlite3_vfs = (*layer).pAppData.cast();
        let Some(open) = (*below).xOpen else { return ffi::SQLITE_CANTOPEN };
        let watched = path(name).filter(|path| flags & TEMPORARY == 0 && state::is_watched(path));
        let before = watched.as_ref().and_then(|path| std::fs::read(path).ok());
        let file: *mut WatchedFile = opened.cast();
        (*file).base.pMethods = ptr::null();
        let status = open(below, name, file::below(opened), flags, out_flags);
        if status == ffi::SQLITE_OK {
            if let (Some(path), Some(before)) = (&watched, before) {
                state::opened(path, before);
            }
            (*file).path = Box::into_raw(Box::new(watched));
            (*file).base.pMethods = &raw const file::METHODS;
        }
        status
    }
}

/// Deletes a file, and reports the deletion to the simulated disk.
///
/// # Safety
/// Must be called by SQLite, with `layer` as it was registered.
unsafe extern "C" fn delete(layer: *mut ffi::sqlite3_vfs, name: *const c_char, syncs_directory: c_int) -> c_int {
    // SAFETY: by the contract of this function.
    unsafe {
        let below: *mut ffi::sqlite3_vfs = (*layer).pAppData.cast();
        let Some(delete) = (*below).xDelete else { return ffi::SQLITE_IOERR_DELETE };
        let status = delete(below, name, syncs_directory);
        if let (ffi::SQLITE_OK, Some(path)) = (status, path(name)) {
            state::deleted(&path, syncs_directory != 0);
        }
        status
    }
}
