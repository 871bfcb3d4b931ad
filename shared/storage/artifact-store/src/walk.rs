//! Steps through directories, one name at a time from an open directory on. So neither a link nor a
//! change of the tree meanwhile leads elsewhere. Anything but files and directories (links, pipes,
//! sockets, devices) counts as absent.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// A pipe would wait for a writer, and a terminal become this process's own.
const FILE: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
/// Times that a directory is made again which somebody else has deleted meanwhile.
const ATTEMPTS: usize = 10;

/// The result of a system call; `None` where there is nothing of this name. That includes a link or
/// a file in the place of a directory, and names that no file system takes.
fn present<T>(result: rustix::io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG | Errno::ILSEQ | Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The root itself, where links lead to it: it is the operator's choice.
pub(crate) fn root(path: &Path) -> io::Result<Option<OwnedFd>> {
    present(rustix::fs::open(path, DIRECTORY, Mode::empty()))
}

fn child(directory: BorrowedFd<'_>, name: &str) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(directory, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())
}

/// The directory that these parts lead to.
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

/// The directory that these parts lead to, made where it is missing, so that a power cut does not take it away; `None` where something
/// else is in the way, or a name is none.
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
    for _ in 0..ATTEMPTS {
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

/// Whether something that is no directory is in the way of these parts.
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

/// The status of a name itself, a link not followed.
pub(crate) fn stat(directory: BorrowedFd<'_>, name: &str) -> io::Result<Option<Stat>> {
    present(rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW))
}

pub(crate) fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// A file, open for reading.
pub(crate) fn file(directory: BorrowedFd<'_>, name: &str) -> io::Result<Option<File>> {
    // Opening a device could have effects, so it is not opened.
    if !stat(directory, name)?.is_some_and(|stat| kind(&stat) == FileType::RegularFile) {
        return Ok(None);
    }
    let Some(file) = present(rustix::fs::openat(directory, name, FILE, Mode::empty()))? else { return Ok(None) };
    let file = File::from(file);
    // Something else may have taken the file's place meanwhile.
    Ok(file.metadata()?.is_file().then_some(file))
}

/// The names in a directory; those that are no text are left out.
pub(crate) fn names(directory: BorrowedFd<'_>) -> io::Result<impl Iterator<Item = io::Result<String>>> {
    let entries = Dir::read_from(directory)?;
    Ok(entries.filter_map(|entry| match entry {
        Ok(entry) => {
            entry.file_name().to_str().ok().filter(|name| !matches!(*name, "." | "..")).map(|name| Ok(name.to_owned()))
        }
        Err(error) => Some(Err(error.into())),
    }))
}

/// Deletes the entry of this name, if there is one: a directory with everything in it, and of a
/// link only the link.
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
