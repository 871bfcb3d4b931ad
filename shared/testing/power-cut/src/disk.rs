use std::path::{Path, PathBuf};

use crate::image::DiskImage;
use crate::state::{self, DiskState, disks};
use crate::vfs;

/// A directory whose SQLite files are watched until this value is dropped.
#[derive(Debug)]
pub struct WatchedDisk {
    directory: PathBuf,
}

impl WatchedDisk {
    /// Watches the SQLite databases that are opened in this directory from now on. The seed
    /// determines which images are taken.
    #[must_use]
    pub fn watch(directory: &Path, seed: u64) -> Self {
        vfs::install();
        let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        disks().insert(directory.clone(), DiskState::new(seed));
        Self { directory }
    }

    /// Returns the content of the disk if the power is cut now and the disk contains only what was
    /// synced.
    #[must_use]
    pub fn cut(&self) -> DiskImage {
        self.state(|state| DiskImage { files: state.durable.clone() })
    }

    /// Returns the images that were taken since the last call. Each is a possible content of the
    /// disk after a power cut at that time.
    #[must_use]
    pub fn images(&self) -> Vec<DiskImage> {
        self.state(|state| std::mem::take(&mut state.images))
    }

    /// Returns how often SQLite has synced a file.
    #[must_use]
    pub fn syncs(&self) -> u64 {
        self.state(|state| state.syncs)
    }

    /// Records that code other than SQLite has synced a file of the directory. The sync is treated
    /// like one by SQLite.
    pub fn sync(file: &Path) {
        state::synced(file);
    }

    /// Makes all further syncs have no effect on the disk. A test can use this to show that it
    /// detects lost data.
    pub fn lose_what_is_synced(&self) {
        self.state(|state| state.loses_what_was_synced = true);
    }

    fn state<T: Default>(&self, work: impl FnOnce(&mut DiskState) -> T) -> T {
        disks().get_mut(&self.directory).map(work).unwrap_or_default()
    }
}

impl Drop for WatchedDisk {
    fn drop(&mut self) {
        disks().remove(&self.directory);
    }
}
