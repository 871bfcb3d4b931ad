//! The archive in a local directory.

use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use bytes::Bytes;
use futures::future::BoxFuture;
use mlflow_api::{ArchiveObject, Error};

use super::{ArchiveBackend, ArchiveError, ArchivePage, ArchivedFile};
use crate::directory::ArtifactDirectory;
use crate::directory_traversal;
use crate::path::ARCHIVE_DIRECTORY;
use crate::staging::{self, StagedFile};

fn parts() -> [String; 1] {
    [ARCHIVE_DIRECTORY.to_owned()]
}

/// Opens the directory of the archive, if it exists.
fn open(root: &Path) -> io::Result<Option<OwnedFd>> {
    directory_traversal::root(root)?.map_or(Ok(None), |root| directory_traversal::directory(root, &parts()))
}

/// Opens the directory of the archive, and creates it if necessary.
fn create(root: &Path) -> io::Result<OwnedFd> {
    let root = directory_traversal::root(root)?;
    let directory = root.map(|root| directory_traversal::make_directory(root, &parts())).transpose()?.flatten();
    directory.ok_or_else(|| io::Error::other("the directory of the archive is not a directory"))
}

/// Reads a range of an object. The result is shorter than `length` if the object ends before.
fn read(root: &Path, object: ArchiveObject, offset: u64, length: usize) -> io::Result<Option<Vec<u8>>> {
    let Some(directory) = open(root)? else { return Ok(None) };
    let Some(mut file) = directory_traversal::file(directory.as_fd(), &object.to_string())? else { return Ok(None) };
    file.seek(SeekFrom::Start(offset))?;
    let mut content = Vec::with_capacity(length);
    file.take(length as u64).read_to_end(&mut content)?;
    Ok(Some(content))
}

fn list(root: &Path) -> io::Result<Vec<ArchivedFile>> {
    let Some(directory) = open(root)? else { return Ok(Vec::new()) };
    let mut objects = Vec::new();
    for name in directory_traversal::names(directory.as_fd())? {
        let name = name?;
        let Some(object) = ArchiveObject::parse(&name) else { continue };
        let Some(stat) = directory_traversal::stat(directory.as_fd(), &name)? else { continue };
        objects.push(ArchivedFile { object, length: u64::try_from(stat.st_size).unwrap_or_default() });
    }
    Ok(objects)
}

fn failed(error: Error) -> ArchiveError {
    ArchiveError::Failed(error.cause.unwrap_or(error.message))
}

impl ArchiveBackend for ArtifactDirectory {
    fn write(&self, object: ArchiveObject, content: Bytes) -> BoxFuture<'_, Result<(), ArchiveError>> {
        Box::pin(async move {
            let created = self.blocking(|root| StagedFile::create(root).map_err(Error::internal));
            let mut staged = created.await.map_err(failed)?;
            let written = async {
                staged.write(&content).await?;
                staged.sync().await
            };
            written.await.map_err(|error| ArchiveError::Failed(error.to_string()))?;
            let published = self.blocking(move |root| {
                let publish = || staged.publish(&create(root)?, &object.to_string());
                publish().map_err(Error::internal)
            });
            published.await.map_err(failed)
        })
    }

    fn read(&self, object: ArchiveObject, offset: u64, length: usize) -> BoxFuture<'_, Result<Bytes, ArchiveError>> {
        Box::pin(async move {
            let content = self.blocking(move |root| read(root, object, offset, length).map_err(Error::internal));
            match content.await.map_err(failed)? {
                Some(content) if content.len() == length => Ok(content.into()),
                Some(_) => Err(ArchiveError::Incomplete(object)),
                None => Err(ArchiveError::Missing(object)),
            }
        })
    }

    fn delete(&self, object: ArchiveObject) -> BoxFuture<'_, Result<(), ArchiveError>> {
        Box::pin(async move {
            let deleted = self.blocking(move |root| {
                let delete = || match open(root)? {
                    Some(directory) => staging::delete(root, &directory, &object.to_string()),
                    None => Ok(()),
                };
                delete().map_err(Error::internal)
            });
            deleted.await.map_err(failed)
        })
    }

    fn list(&self, _from: Option<String>) -> BoxFuture<'_, Result<ArchivePage, ArchiveError>> {
        Box::pin(async move {
            let objects = self.blocking(|root| list(root).map_err(Error::internal)).await.map_err(failed)?;
            Ok(ArchivePage { objects, next: None })
        })
    }
}
