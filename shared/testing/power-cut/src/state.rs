//! The simulated disk content of the files in watched directories.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::image::{DiskImage, FileChange, FileContents};

/// Average number of writes per image that is taken before a write. (Images are also taken before
/// each sync.)
const WRITES_PER_IMAGE: u32 = 64;

/// The watched disks, by directory.
static DISKS: Mutex<BTreeMap<PathBuf, DiskState>> = Mutex::new(BTreeMap::new());

/// The state of a watched disk.
pub(crate) struct DiskState {
    /// Content that is certainly on the disk.
    pub(crate) durable: FileContents,
    /// Changes that are not certain to be on the disk, by file, in the order they were made.
    pending: BTreeMap<String, Vec<FileChange>>,
    pub(crate) images: Vec<DiskImage>,
    random: StdRng,
    pub(crate) syncs: u64,
    pub(crate) loses_what_was_synced: bool,
}

/// Locks and returns the watched disks.
pub(crate) fn disks() -> MutexGuard<'static, BTreeMap<PathBuf, DiskState>> {
    DISKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a closure with the state of the disk that a file is on. Does nothing if the file is not
/// watched.
fn with_file(path: &Path, work: impl FnOnce(&mut DiskState, &str)) {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return;
    };
    if let Some(state) = disks().get_mut(directory) {
        work(state, name);
    }
}

/// Returns whether a file is watched.
pub(crate) fn is_watched(path: &Path) -> bool {
    path.parent().is_some_and(|directory| disks().contains_key(directory))
}

/// Records a file that existed before SQLite opened it. It counts as synced.
pub(crate) fn opened(path: &Path, content: Vec<u8>) {
    with_file(path, |state, name| {
        if !state.pending.contains_key(name) {
            state.durable.entry(name.to_owned()).or_insert_with(|| content.into());
        }
    });
}

/// Records a change that SQLite is about to make to a file.
pub(crate) fn changed(path: &Path, change: FileChange) {
    with_file(path, |state, name| {
        if state.random.random_range(0..WRITES_PER_IMAGE) == 0 {
            state.take_image();
        }
        state.pending.entry(name.to_owned()).or_default().push(change);
    });
}

/// Records that SQLite has synced a file.
pub(crate) fn synced(path: &Path) {
    with_file(path, |state, name| {
        state.syncs += 1;
        state.take_image();
        if state.loses_what_was_synced {
            return;
        }
        if !state.durable.contains_key(name) {
            state.sync_deletions();
        }
        let mut file = state.durable.remove(name);
        for change in state.pending.remove(name).unwrap_or_default() {
            change.apply(&mut file);
        }
        // Syncing a file also creates it on the disk if it is empty.
        state.durable.insert(name.to_owned(), file.unwrap_or_default());
    });
}

/// Records that SQLite has deleted a file, and whether it has synced the directory.
pub(crate) fn deleted(path: &Path, is_synced: bool) {
    with_file(path, |state, name| {
        if is_synced && !state.loses_what_was_synced {
            state.pending.remove(name);
            state.durable.remove(name);
        } else {
            state.pending.entry(name.to_owned()).or_default().push(FileChange::Delete);
        }
    });
}

impl DiskState {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            durable: FileContents::new(),
            pending: BTreeMap::new(),
            images: Vec::new(),
            random: StdRng::seed_from_u64(seed),
            syncs: 0,
            loses_what_was_synced: false,
        }
    }

    /// Applies pending deletions. Called when SQLite syncs a new file, because SQLite then syncs
    /// the directory as well.
    fn sync_deletions(&mut self) {
        for (name, changes) in &mut self.pending {
            if let Some(last) = changes.iter().rposition(|change| matches!(change, FileChange::Delete)) {
                changes.drain(..=last);
                self.durable.remove(name);
            }
        }
    }

    /// Takes an image of a possible disk content: everything that was synced, and some of the
    /// pending changes.
    fn take_image(&mut self) {
        let mut files = self.durable.clone();
        for (name, changes) in &self.pending {
            let mut file = files.remove(name);
            for part in changes.iter().flat_map(|change| change.in_part(&mut self.random)) {
                part.apply(&mut file);
            }
            if let Some(file) = file {
                files.insert(name.clone(), file);
            }
        }
        self.images.push(DiskImage { files });
    }
}
