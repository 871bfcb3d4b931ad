//! Traverses directories one name at a time, relative to an open directory, so that neither links
//! nor concurrent changes to the tree can lead outside the root. Everything except files and
//! directories (links, pipes, sockets, devices) is treated as absent.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

const DIRECTORY_FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Flags for opening a file. Without `NONBLOCK`, opening a pipe would wait for a writer. Without
/// `NOCTTY`, a terminal could become the controlling terminal of this process.
const FILE_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
/// Maximum number of times that a directory is created again after another process has deleted it.
const MAX_ATTEMPTS: usize = 10;

/// Converts the result of a system call to `None` if the name does not exist. This includes names
/// that the file system does not support, and paths in which a link or a file takes the place of a
/// directory.
fn present<T>(result: rustix::io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG | Errno::ILSEQ | Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Opens the root. Links in its path are followed, because it is configured by the operator.
pub(crate) fn root(path: &Path) -> io::Result<Option<OwnedFd>> {
    present(rustix::fs::open(path, DIRECTORY_FLAGS, Mode::empty()))
}

fn child(directory: BorrowedFd<'_>, name: &str) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(directory, name, DIRECTORY_FLAGS | OFlags::NOFOLLOW, Mode::empty())
}

/// Opens the directory at a path below `from`.
pub(crate) fn directory(from: OwnedFd, parts: &[String]) -> io::Result<Option<OwnedFd>> {
    let mut at = from;
    for part in parts {
        match present(child(at.as_fd(), part))? {
            Some(next) => at = next,
            None => return Ok(None),
        }
    }
    Ok(Some(at))
}

/// Opens the directory at a path below `from`. Missing directories are created so that they survive
/// a power cut. Returns `None` if a path component is invalid, or is not a directory.
pub(crate) fn make_directory(from: OwnedFd, parts: &[String]) -> io::Result<Option<OwnedFd>> {
    let mut at = from;
    for part in parts {
        match present(make_child(at.as_fd(), part))? {
            Some(next) => at = next,
            None => return Ok(None),
        }
    }
    Ok(Some(at))
}

fn make_child(directory: BorrowedFd<'_>, name: &str) -> rustix::io::Result<OwnedFd> {
    for _ in 0..MAX_ATTEMPTS {
        match child(directory, name) {
            Err(Errno::NOENT) => {}
            outcome => return outcome,
        }
        match rustix::fs::mkdirat(directory, name, Mode::from_raw_mode(0o777)) {
            Ok(()) => rustix::fs::fsync(directory)?,
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
    }
    Err(Errno::NOENT)
}

/// Checks whether a component of a path exists and is not a directory.
pub(crate) fn is_blocked(from: OwnedFd, parts: &[String]) -> io::Result<bool> {
    let mut at = from;
    for part in parts {
        match child(at.as_fd(), part) {
            Ok(next) => at = next,
            Err(Errno::NOENT) => return Ok(false),
            Err(Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG | Errno::ILSEQ) => return Ok(true),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(false)
}

/// Returns the status of a name, without following a link.
pub(crate) fn stat(directory: BorrowedFd<'_>, name: &str) -> io::Result<Option<Stat>> {
    present(rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW))
}

pub(crate) fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Opens a file for reading.
pub(crate) fn file(directory: BorrowedFd<'_>, name: &str) -> io::Result<Option<File>> {
    // Opening a device could have side effects, so the type is checked first.
    if !stat(directory, name)?.is_some_and(|stat| kind(&stat) == FileType::RegularFile) {
        return Ok(None);
    }
    let Some(file) = present(rustix::fs::openat(directory, name, FILE_FLAGS, Mode::empty()))? else { return Ok(None) };
    let file = File::from(file);
    // The file may have been replaced after its type was checked.
    Ok(file.metadata()?.is_file().then_some(file))
}

/// Returns the names in a directory, without those that are not UTF-8.
pub(crate) fn names(directory: BorrowedFd<'_>) -> io::Result<impl Iterator<Item = io::Result<String>>> {
    let entries = Dir::read_from(directory)?;
    Ok(entries.filter_map(|entry| match entry {
        Ok(entry) => {
            entry.file_name().to_str().ok().filter(|name| !matches!(*name, "." | "..")).map(|name| Ok(name.to_owned()))
        }
        Err(error) => Some(Err(error.into())),
    }))
}

/// Deletes an entry if it exists. A directory is deleted with its content, and a link without its
/// target.
pub(crate) fn remove(directory: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    match stat(directory, name)? {
        None => return Ok(()),
        Some(stat) if kind(&stat) == FileType::Directory => {
            if let Some(inner) = present(child(directory, name))? {
                for name in names(inner.as_fd())? {
                    remove(inner.as_fd(), &name?)?;
                }
            }
            present(rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR))?;
        }
        Some(_) => {
            present(rustix::fs::unlinkat(directory, name, AtFlags::empty()))?;
        }
    }
    Ok(())
}
