//! The directory of files that are being written, and the removal of files that killed servers have
//! left there.
//!
//! The directory is in the root of the artifact directory, on the file system of the final paths.
//! Each file is locked by the process that writes it, so that another process does not remove it as
//! a leftover.

use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use tokio::io::AsyncWriteExt;

use crate::directory_traversal;

/// Prefix of names that are reserved, because MLflow's client uses them for temporary files.
pub(crate) const RESERVED_PREFIX: &str = ".artifact.uploading.";
const STAGING_DIRECTORY: &str = ".artifact.uploading.here";

pub(crate) fn is_reserved(name: &str) -> bool {
    name.starts_with(RESERVED_PREFIX)
}

/// Returns a unique name in the staging directory.
fn new_name() -> String {
    format!("{:032x}", rand::random::<u128>())
}

/// Opens the staging directory of a root. Creates both if they do not exist.
fn open(root: &Path) -> io::Result<OwnedFd> {
    std::fs::create_dir_all(root)?;
    let root = directory_traversal::root(root)?;
    let directory = root
        .map(|root| directory_traversal::make_directory(root, &[STAGING_DIRECTORY.to_owned()]))
        .transpose()?
        .flatten();
    directory.ok_or_else(|| io::Error::other("the staging directory is not a directory"))
}

/// A file that is being written. If it is dropped before it is published, it is deleted.
pub(crate) struct StagedFile {
    directory: OwnedFd,
    name: String,
    file: tokio::fs::File,
    is_published: bool,
}

impl StagedFile {
    /// Creates an empty file. Blocks on the disk.
    pub(crate) fn create(root: &Path) -> io::Result<Self> {
        let directory = open(root)?;
        loop {
            let name = new_name();
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = File::from(rustix::fs::openat(&directory, &name, flags, Mode::from_raw_mode(0o666))?);
            file.lock()?;
            // If the file has no links left, another process has removed it as a leftover before it
            // was locked.
            if file.metadata()?.nlink() > 0 {
                return Ok(Self { directory, name, file: tokio::fs::File::from_std(file), is_published: false });
            }
        }
    }

    /// Appends bytes.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes).await
    }

    /// Flushes the file to the disk.
    pub(crate) async fn sync(&mut self) -> io::Result<()> {
        self.file.flush().await?;
        self.file.sync_all().await
    }

    /// Moves the file to its name in a directory, durably. Blocks on the disk.
    pub(crate) fn publish(mut self, directory: &OwnedFd, name: &str) -> io::Result<()> {
        rustix::fs::renameat(&self.directory, &self.name, directory, name)?;
        self.is_published = true;
        Ok(rustix::fs::fsync(directory)?)
    }
}

impl Drop for StagedFile {
    fn drop(&mut self) {
        if self.is_published {
            return;
        }
        if let Err(error) = directory_traversal::remove(self.directory.as_fd(), &self.name) {
            tracing::warn!(%error, "failed to delete an unfinished upload; the next start will remove it");
        }
    }
}

/// Deletes an entry of a directory. The entry disappears atomically. If it is a directory, its
/// content is removed afterwards. Blocks on the disk.
pub(crate) fn delete(root: &Path, directory: &OwnedFd, name: &str) -> io::Result<()> {
    let staging = open(root)?;
    let trash = new_name();
    match rustix::fs::renameat(directory, name, &staging, &trash) {
        Err(rustix::io::Errno::NOENT) => return Ok(()),
        outcome => outcome?,
    }
    rustix::fs::fsync(directory)?;
    directory_traversal::remove(staging.as_fd(), &trash)
}

/// Deletes the files that killed processes have left behind in the staging directory, and returns
/// their number. Blocks on the disk.
pub(crate) fn remove_leftovers(root: &Path) -> io::Result<usize> {
    let Some(staging) = directory_traversal::root(root)?
        .map(|root| directory_traversal::directory(root, &[STAGING_DIRECTORY.to_owned()]))
        .transpose()?
        .flatten()
    else {
        return Ok(0);
    };
    let mut removed = 0;
    for name in directory_traversal::names(staging.as_fd())? {
        let name = name?;
        let file = directory_traversal::file(staging.as_fd(), &name)?;
        match file.as_ref().map(File::try_lock) {
            Some(Err(TryLockError::WouldBlock)) => continue,
            Some(Err(TryLockError::Error(error))) => return Err(error),
            // A directory is the leftover of an interrupted deletion.
            Some(Ok(())) | None => directory_traversal::remove(staging.as_fd(), &name)?,
        }
        removed += 1;
    }
    Ok(removed)
}
