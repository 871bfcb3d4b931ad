//! The disk's content of the files in the watched directories.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::image::{Change, Files, Image};

/// Of so many writes, an image is taken before one.
const WRITES_PER_IMAGE: u32 = 64;

/// The disks that are watched, by their directories.
static DISKS: Mutex<BTreeMap<PathBuf, State>> = Mutex::new(BTreeMap::new());

/// One of them.
pub(crate) struct State {
    /// The content that is on the disk for certain.
    pub(crate) durable: Files,
    /// The other changes, by file, in the order in which they were made.
    pending: BTreeMap<String, Vec<Change>>,
    pub(crate) images: Vec<Image>,
    random: StdRng,
    pub(crate) syncs: u64,
    pub(crate) loses_what_was_synced: bool,
}

/// All of them, locked.
pub(crate) fn disks() -> MutexGuard<'static, BTreeMap<PathBuf, State>> {
    DISKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs for a file of a watched directory; for others not at all.
fn with_file(path: &Path, work: impl FnOnce(&mut State, &str)) {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return;
    };
    if let Some(state) = disks().get_mut(directory) {
        work(state, name);
    }
}

/// Whether a file is watched.
pub(crate) fn is_watched(path: &Path) -> bool {
    path.parent().is_some_and(|directory| disks().contains_key(directory))
}

/// A file was there before SQLite opened it: it counts as synced.
pub(crate) fn opened(path: &Path, content: Vec<u8>) {
    with_file(path, |state, name| {
        if !state.pending.contains_key(name) {
            state.durable.entry(name.to_owned()).or_insert_with(|| content.into());
        }
    });
}

/// SQLite is about to change a file.
pub(crate) fn changed(path: &Path, change: Change) {
    with_file(path, |state, name| {
        if state.random.random_range(0..WRITES_PER_IMAGE) == 0 {
            state.take_image();
        }
        state.pending.entry(name.to_owned()).or_default().push(change);
    });
}

/// SQLite has synced a file.
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
        // A file that was only made is there, too.
        state.durable.insert(name.to_owned(), file.unwrap_or_default());
    });
}

/// SQLite has deleted a file, and synced the directory or not.
pub(crate) fn deleted(path: &Path, is_synced: bool) {
    with_file(path, |state, name| {
        if is_synced && !state.loses_what_was_synced {
            state.pending.remove(name);
            state.durable.remove(name);
        } else {
            state.pending.entry(name.to_owned()).or_default().push(Change::Delete);
        }
    });
}

impl State {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            durable: Files::new(),
            pending: BTreeMap::new(),
            images: Vec::new(),
            random: StdRng::seed_from_u64(seed),
            syncs: 0,
            loses_what_was_synced: false,
        }
    }

    /// With a new file SQLite syncs the directory, so its deletions are synced, too.
    fn sync_deletions(&mut self) {
        for (name, changes) in &mut self.pending {
            if let Some(last) = changes.iter().rposition(|change| matches!(change, Change::Delete)) {
                changes.drain(..=last);
                self.durable.remove(name);
            }
        }
    }

    /// Keeps a possible content of the disk now: everything that was synced, and some of the rest.
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
        self.images.push(Image { files });
    }
}
