//! The artifact backend for a local directory.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use mlflow_api::logged_models::FileInfo;
use mlflow_api::{Error, ErrorCode, Result};
use rustix::fs::FileType;

use crate::backend::{
    ArtifactBackend, Chunks, MAX_ENTRY_BYTES, MAX_LIST_BYTES, is_directory, no_file_there, not_there, too_large,
    too_long,
};
use crate::content_type::content_type;
use crate::directory_traversal;
use crate::download::{Download, StoredFile};
use crate::path::{ArtifactPath, is_hidden};
use crate::staging::{self, StagedFile};

/// Number of bytes per read. Larger reads are no faster, and the allocator would retain pages of 4
/// MB for them.
const CHUNK_BYTES: usize = 64 << 10;

/// Artifacts in a local directory, which is created on the first write.
#[derive(Clone, Debug)]
pub struct ArtifactDirectory(Arc<Path>);

impl ArtifactDirectory {
    /// Returns the backend for this directory.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self(root.into())
    }

    /// Deletes the leftovers of interrupted uploads and deletions, and returns their number. Files
    /// that a running server is working on are kept.
    ///
    /// # Errors
    /// An internal error if the disk fails.
    pub async fn remove_leftovers(&self) -> Result<usize> {
        self.blocking(|root| staging::remove_leftovers(root).map_err(Error::internal)).await
    }

    /// Calls a function with the root on a thread that may block.
    pub(crate) fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Path) -> Result<T> + Send + 'static,
    ) -> BoxFuture<'static, Result<T>> {
        let root = Arc::clone(&self.0);
        Box::pin(async move { tokio::task::spawn_blocking(move || work(&root)).await.map_err(Error::internal)? })
    }
}

impl ArtifactBackend for ArtifactDirectory {
    fn list(&self, path: ArtifactPath) -> BoxFuture<'static, Result<Vec<FileInfo>>> {
        self.blocking(move |root| {
            let found = if is_hidden(&path) { None } else { find(root, path.parts()).map_err(Error::internal)? };
            let Some(directory) = found else { return Ok(Vec::new()) };
            list(&directory, &path).map_err(Error::internal)?.ok_or_else(too_long)
        })
    }

    fn download(&self, path: ArtifactPath) -> BoxFuture<'static, Result<Download>> {
        let opened = self.blocking(move |root| {
            let is_directory = || is_directory(&path);
            let not_there = || not_there(&path);
            let (name, parents) = path.split_last().ok_or_else(is_directory)?;
            if is_hidden(&path) {
                return Err(not_there());
            }
            let parent = find(root, parents).map_err(Error::internal)?.ok_or_else(not_there)?;
            if let Some(file) = directory_traversal::file(parent.as_fd(), name).map_err(Error::internal)? {
                return Ok((name.to_owned(), file));
            }
            let stat = directory_traversal::stat(parent.as_fd(), name).map_err(Error::internal)?;
            let found = stat.as_ref().map(directory_traversal::kind);
            Err(if found == Some(FileType::Directory) { is_directory() } else { not_there() })
        });
        Box::pin(async move {
            let (name, file) = opened.await?;
            stored_file(name, file).map(Download::File).map_err(Error::internal)
        })
    }

    fn read(&self, path: ArtifactPath, most: usize) -> BoxFuture<'static, Result<Option<Bytes>>> {
        let opened = self.download(path);
        Box::pin(async move {
            let file = match opened.await {
                Ok(Download::File(file)) => file,
                Ok(Download::Url(_)) => return Err(Error::internal("a directory returned a URL")),
                Err(error) if error.code == ErrorCode::ResourceDoesNotExist => return Ok(None),
                Err(error) => return Err(error),
            };
            if file.length > most as u64 {
                return Err(too_large(most as u64));
            }
            let mut chunks = (file.read)(0..file.length);
            let mut content = BytesMut::with_capacity(usize::try_from(file.length).unwrap_or_default());
            while let Some(chunk) = chunks.next().await {
                content.extend_from_slice(&chunk.map_err(Error::internal)?);
            }
            Ok(Some(content.freeze()))
        })
    }

    fn write(&self, path: ArtifactPath, mut chunks: Chunks) -> BoxFuture<'static, Result<u64>> {
        let this = self.clone();
        Box::pin(async move {
            let target = path.clone();
            let mut staged = this
                .blocking(move |root| {
                    check_target(root, &target)?;
                    StagedFile::create(root).map_err(Error::internal)
                })
                .await?;
            let mut length = 0;
            while let Some(chunk) = chunks.next().await {
                let chunk = chunk?;
                staged.write(&chunk).await.map_err(Error::internal)?;
                length += chunk.len() as u64;
            }
            staged.sync().await.map_err(Error::internal)?;
            this.blocking(move |root| publish(root, &path, staged)).await?;
            Ok(length)
        })
    }

    fn delete(&self, path: ArtifactPath) -> BoxFuture<'static, Result<()>> {
        self.blocking(move |root| {
            let (name, parents) = path.split_last().ok_or_else(|| Error::invalid("Invalid path"))?;
            if is_hidden(&path) {
                return Ok(());
            }
            let Some(parent) = find(root, parents).map_err(Error::internal)? else { return Ok(()) };
            let stat = directory_traversal::stat(parent.as_fd(), name).map_err(Error::internal)?;
            if stat.is_none() { Ok(()) } else { staging::delete(root, &parent, name).map_err(Error::internal) }
        })
    }
}

fn find(root: &Path, parts: &[String]) -> io::Result<Option<OwnedFd>> {
    directory_traversal::root(root)?.map_or(Ok(None), |root| directory_traversal::directory(root, parts))
}

/// Lists the directory at a path, or returns `None` if it has too many entries.
fn list(directory: &OwnedFd, path: &ArtifactPath) -> io::Result<Option<Vec<FileInfo>>> {
    let mut files = Vec::new();
    let mut length = 0;
    for name in directory_traversal::names(directory.as_fd())? {
        let name = name?;
        let Some(stat) = directory_traversal::stat(directory.as_fd(), &name)? else { continue };
        let kind = directory_traversal::kind(&stat);
        if staging::is_reserved(&name) || !matches!(kind, FileType::RegularFile | FileType::Directory) {
            continue;
        }
        if path.parts().is_empty() && ArtifactPath::parse(&name).is_ok_and(|name| is_hidden(&name)) {
            continue;
        }
        length += name.len() + MAX_ENTRY_BYTES;
        if length > MAX_LIST_BYTES {
            return Ok(None);
        }
        let is_dir = kind == FileType::Directory;
        let file_size = (!is_dir).then(|| u64::try_from(stat.st_size).unwrap_or_default());
        files.push(FileInfo { path: name, is_dir, file_size });
    }
    files.sort_unstable();
    Ok(Some(files))
}

/// Describes an open file. A file that replaces it has another inode number, and therefore
/// another ETag.
fn stored_file(name: String, file: File) -> io::Result<StoredFile> {
    let metadata = file.metadata()?;
    let length = metadata.len();
    let tag = format!("\"{:x}-{:x}.{:x}-{length:x}\"", metadata.ino(), metadata.mtime(), metadata.mtime_nsec());
    let read = move |range: Range<u64>| {
        let left = range.end - range.start;
        let chunks = stream::try_unfold((file, Some(range.start), left), |state| async move {
            // The buffer is allocated here rather than on the blocking thread, because the
            // allocator retains memory per thread, and there are many blocking threads.
            let bytes = BytesMut::zeroed(usize::try_from(state.2).unwrap_or(usize::MAX).min(CHUNK_BYTES));
            tokio::task::spawn_blocking(move || chunk(state, bytes)).await?
        });
        chunks.boxed()
    };
    Ok(StoredFile { content_type: content_type(&name), name, length, tag, read: Box::new(read) })
}

/// A file, the offset to seek to before the next read (`None` if the next read continues where the
/// previous one ended), and the number of bytes left to read.
type ReadState = (File, Option<u64>, u64);

/// Reads the next chunk of a file. Returns it with the state for reading the chunk after it, or
/// `None` at the end of the file.
fn chunk((mut file, begin, left): ReadState, mut bytes: BytesMut) -> io::Result<Option<(Bytes, ReadState)>> {
    if let Some(begin) = begin {
        file.seek(SeekFrom::Start(begin))?;
    }
    let length = file.read(&mut bytes)?;
    bytes.truncate(length);
    let left = left - length as u64;
    Ok((length > 0).then(|| (bytes.freeze(), (file, None, left))))
}

/// Rejects a path that cannot be a file. Called before the content of the file is received.
fn check_target(root: &Path, path: &ArtifactPath) -> Result<()> {
    let Some((name, parents)) = path.split_last() else { return Err(no_file_there(path)) };
    if is_hidden(path) {
        return Err(no_file_there(path));
    }
    let Some(opened) = directory_traversal::root(root).map_err(Error::internal)? else { return Ok(()) };
    if name.len() > 255 || directory_traversal::is_blocked(opened, parents).map_err(Error::internal)? {
        return Err(no_file_there(path));
    }
    let Some(parent) = find(root, parents).map_err(Error::internal)? else { return Ok(()) };
    let stat = directory_traversal::stat(parent.as_fd(), name).map_err(Error::internal)?;
    let is_directory = stat.is_some_and(|stat| directory_traversal::kind(&stat) == FileType::Directory);
    if is_directory { Err(no_file_there(path)) } else { Ok(()) }
}

fn publish(root: &Path, path: &ArtifactPath, staged: StagedFile) -> Result<()> {
    let (name, parents) = path.split_last().ok_or_else(|| no_file_there(path))?;
    let opened = directory_traversal::root(root).map_err(Error::internal)?;
    let parent = opened
        .map(|opened| directory_traversal::make_directory(opened, parents))
        .transpose()
        .map_err(Error::internal)?;
    let parent = parent.flatten().ok_or_else(|| no_file_there(path))?;
    staged.publish(&parent, name).map_err(|error| match error.kind() {
        io::ErrorKind::IsADirectory | io::ErrorKind::InvalidFilename => no_file_there(path),
        _ => Error::internal(error),
    })
}

/// Returns the part of a path that follows the root. Returns `None` if the path is not below the
/// root.
pub(crate) fn below(root: &Path, path: &Path) -> Option<PathBuf> {
    path.strip_prefix(root).ok().map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::process::Command;
    use std::time::Duration;

    use mlflow_api::ErrorCode;

    use super::*;

    fn path(text: &str) -> ArtifactPath {
        ArtifactPath::parse(text).unwrap()
    }

    fn chunks(parts: &[&'static str]) -> Chunks {
        stream::iter(parts.to_vec()).map(|part| Ok(part.into())).boxed()
    }

    /// Returns a directory of artifacts with a file, and with entries that are neither files nor
    /// directories.
    fn directory() -> (tempfile::TempDir, ArtifactDirectory) {
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().join("root");
        fs::create_dir_all(root.join("inner")).unwrap();
        fs::create_dir(parent.path().join("outside")).unwrap();
        fs::write(parent.path().join("outside/secret"), "secret").unwrap();
        fs::write(root.join("file"), "text").unwrap();
        assert!(Command::new("mkfifo").arg(root.join("pipe")).status().unwrap().success());
        drop(UnixListener::bind(root.join("socket")).unwrap());
        symlink("/dev/zero", root.join("device")).unwrap();
        symlink("pipe", root.join("link")).unwrap();
        symlink("file", root.join("same")).unwrap();
        symlink("../outside", root.join("out")).unwrap();
        (parent, ArtifactDirectory::new(&root))
    }

    async fn listed(directory: &ArtifactDirectory, at: &str) -> Vec<String> {
        directory.list(path(at)).await.unwrap().into_iter().map(|file| file.path).collect()
    }

    #[tokio::test]
    async fn links_pipes_sockets_and_devices_are_not_there() {
        let (parent, directory) = directory();
        assert_eq!(listed(&directory, "").await, ["file", "inner"]);
        assert!(directory.download(path("file")).await.is_ok());
        for name in ["pipe", "link", "same", "socket", "device", "out", "out/secret", "file/x", &"n".repeat(300)] {
            let answer = tokio::time::timeout(Duration::from_mins(1), directory.download(path(name))).await;
            let code =
                answer.unwrap_or_else(|_| panic!("reading {name} blocks")).map(|_| ()).map_err(|error| error.code);
            assert_eq!(code, Err(ErrorCode::ResourceDoesNotExist), "{name}");
            assert_eq!(listed(&directory, name).await, [""; 0], "{name}");
        }
        for name in ["out/secret", "out/new", "file/x", "inner", &"n".repeat(300), &format!("{}/x", "n".repeat(300))] {
            let code = directory.write(path(name), chunks(&["x"])).await.map_err(|error| error.code);
            assert_eq!(code, Err(ErrorCode::InvalidParameterValue), "{name}");
        }
        // Links themselves are replaced or deleted; their targets are not touched.
        directory.write(path("same"), chunks(&["new"])).await.unwrap();
        directory.delete(path("out")).await.unwrap();
        directory.delete(path("device")).await.unwrap();
        let read = |name: &str| fs::read_to_string(parent.path().join(name)).unwrap();
        assert_eq!(
            (read("root/file"), read("root/same"), read("outside/secret")),
            ("text".into(), "new".into(), "secret".into())
        );
    }

    #[tokio::test]
    async fn a_file_is_seen_whole_or_not_at_all() {
        let (parent, directory) = directory();
        let root = parent.path().join("root");
        let staging = root.join(".artifact.uploading.here");
        assert_eq!(directory.write(path("a/b/c"), chunks(&["one ", "two"])).await, Ok(7));
        assert_eq!(fs::read_to_string(root.join("a/b/c")).unwrap(), "one two");
        // A stream that ends in an error leaves the existing file.
        let broken = stream::iter([Ok("half".into()), Err(Error::invalid("broken"))]).boxed();
        assert_eq!(directory.write(path("a/b/c"), broken).await.unwrap_err().message, "broken");
        assert_eq!(fs::read_to_string(root.join("a/b/c")).unwrap(), "one two");
        let broken = stream::iter([Err(Error::invalid("broken"))]).boxed();
        directory.write(path("new/x"), broken).await.unwrap_err();
        assert!(!root.join("new").exists());
        // The write is cancelled before its stream ends.
        let endless = stream::iter([Ok("half".into())]).chain(stream::pending()).boxed();
        let writing = tokio::time::timeout(Duration::from_millis(200), directory.write(path("a/d"), endless));
        assert!(writing.await.is_err());
        assert_eq!(fs::read_dir(&staging).unwrap().count(), 0);
        assert_eq!(listed(&directory, "a").await, ["b"]);
        directory.write(path("a/b/c"), chunks(&[])).await.unwrap();
        assert_eq!(fs::read_to_string(root.join("a/b/c")).unwrap(), "");
        directory.delete(path("a")).await.unwrap();
        directory.delete(path("a")).await.unwrap();
        assert_eq!(listed(&directory, "").await, ["file", "inner"]);
        assert_eq!(fs::read_dir(&staging).unwrap().count(), 0);
        assert!(directory.delete(path("")).await.is_err());
    }

    #[tokio::test]
    async fn the_archive_is_not_there_for_clients() {
        let (parent, directory) = directory();
        fs::create_dir(parent.path().join("root/.archive")).unwrap();
        fs::write(parent.path().join("root/.archive/x"), "kept").unwrap();
        assert_eq!(listed(&directory, "").await, ["file", "inner"]);
        for name in [".archive", ".archive/x", ".answers/x", ".ARCHIVE/x"] {
            assert_eq!(listed(&directory, name).await, [""; 0], "{name}");
            let code = directory.download(path(name)).await.map(|_| ()).map_err(|error| error.code);
            assert_eq!(code, Err(ErrorCode::ResourceDoesNotExist), "{name}");
            let code = directory.write(path(name), chunks(&["x"])).await.map_err(|error| error.code);
            assert_eq!(code, Err(ErrorCode::InvalidParameterValue), "{name}");
            directory.delete(path(name)).await.unwrap();
        }
        assert_eq!(fs::read_to_string(parent.path().join("root/.archive/x")).unwrap(), "kept");
        // Only the first name of a path is reserved.
        directory.write(path("inner/.archive/x"), chunks(&["x"])).await.unwrap();
        assert_eq!(listed(&directory, "inner/.archive").await, ["x"]);
    }

    #[tokio::test]
    async fn leftovers_are_removed_and_what_is_being_written_is_not() {
        let (parent, directory) = directory();
        let root = parent.path().join("root");
        let staging = root.join(".artifact.uploading.here");
        assert_eq!(directory.remove_leftovers().await, Ok(0));
        let staged = StagedFile::create(&root).unwrap();
        fs::write(staging.join("left"), "half").unwrap();
        fs::create_dir_all(staging.join("deleted/deep")).unwrap();
        fs::write(staging.join("deleted/deep/file"), "x").unwrap();
        assert_eq!(directory.remove_leftovers().await, Ok(2));
        assert_eq!(fs::read_dir(&staging).unwrap().count(), 1);
        drop(staged);
        assert_eq!(fs::read_dir(&staging).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn a_list_that_is_too_long_is_refused() {
        let (parent, directory) = directory();
        let name = "n".repeat(200);
        let most = MAX_LIST_BYTES / (name.len() + 6 + MAX_ENTRY_BYTES);
        for number in 0..=most {
            fs::write(parent.path().join(format!("root/{name}{number:06}")), "").unwrap();
            if number == 0 {
                assert_eq!(directory.list(path("")).await.unwrap().len(), 3);
            }
        }
        let refused = directory.list(path("")).await.unwrap_err();
        assert_eq!(refused, too_long());
    }
}
