//! The archive: objects next to the artifacts that contain data which is rarely read, and which the
//! table only refers to.
//!
//! An object is written once, under a name that is used for no other object, and is never changed.
//! The table records which objects exist ([`ArchiveObject`] describes why names are not reused), so
//! objects are not listed except to check the archive.

mod bucket;
mod directory;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use mlflow_api::{ArchiveObject, Error, ErrorCode};
use thiserror::Error as ThisError;

use crate::artifacts::ArtifactStore;

/// An error of the archive. The messages are meant for the log.
#[derive(Clone, Debug, ThisError, PartialEq, Eq)]
pub enum ArchiveError {
    /// The object does not exist.
    #[error("object {0} of the archive is missing")]
    Missing(ArchiveObject),
    /// The object is shorter than the requested range.
    #[error("object {0} of the archive is incomplete")]
    Incomplete(ArchiveObject),
    /// The archive cannot be reached at this time. Repeating the request may succeed.
    #[error("the archive is unavailable: {0}")]
    Unavailable(String),
    /// The request failed for another reason, such as missing permissions.
    #[error("the archive failed: {0}")]
    Failed(String),
    /// The server stores no artifacts, and therefore has no archive.
    #[error("this server has no archive, because it stores no artifacts")]
    Absent,
}

impl ArchiveError {
    /// Returns whether the object itself is missing or damaged, so that repeating the request does
    /// not help.
    #[must_use]
    pub fn is_of_object(&self) -> bool {
        matches!(self, Self::Missing(_) | Self::Incomplete(_))
    }
}

/// Converts the error for clients. `Unavailable` becomes a status that clients retry.
impl From<ArchiveError> for Error {
    fn from(error: ArchiveError) -> Self {
        match &error {
            ArchiveError::Missing(_) | ArchiveError::Incomplete(_) => {
                let message =
                    "Archived data cannot be read, because an object of the archive is missing or incomplete.";
                Self { cause: Some(error.to_string()), ..Self::new(ErrorCode::InternalError, message) }
            }
            ArchiveError::Unavailable(cause) => Self::unavailable(cause),
            ArchiveError::Failed(_) | ArchiveError::Absent => Self::internal(error),
        }
    }
}

/// An object in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchivedFile {
    /// Name.
    pub object: ArchiveObject,
    /// Length in bytes.
    pub length: u64,
}

/// A page of the list of all objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchivePage {
    /// The objects of this page.
    pub objects: Vec<ArchivedFile>,
    /// Token of the next page, or `None` on the last page.
    pub next: Option<String>,
}

/// A backend of the archive. Tests implement it to simulate failures.
pub trait ArchiveBackend: fmt::Debug + Send + Sync {
    /// Writes an object. The write is atomic, and durable once this method returns.
    ///
    /// # Errors
    /// [`ArchiveError::Unavailable`] or [`ArchiveError::Failed`], like all methods of this trait.
    fn write(&self, object: ArchiveObject, content: Bytes) -> BoxFuture<'_, Result<(), ArchiveError>>;

    /// Reads exactly `length` bytes of an object, starting at `offset`.
    ///
    /// # Errors
    /// [`ArchiveError::Missing`] and [`ArchiveError::Incomplete`] as well.
    fn read(&self, object: ArchiveObject, offset: u64, length: usize) -> BoxFuture<'_, Result<Bytes, ArchiveError>>;

    /// Deletes an object. Deleting one that does not exist is a no-op.
    ///
    /// # Errors
    /// See [`ArchiveBackend::write`].
    fn delete(&self, object: ArchiveObject) -> BoxFuture<'_, Result<(), ArchiveError>>;

    /// Lists a page of the objects, in no particular order, from a token of the previous page.
    ///
    /// # Errors
    /// See [`ArchiveBackend::write`].
    fn list(&self, from: Option<String>) -> BoxFuture<'_, Result<ArchivePage, ArchiveError>>;
}

/// Where archived data is stored: below the artifact root, which is a bucket or, on a laptop, a
/// directory. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Archive {
    store: ArtifactStore,
    backend: Option<Arc<dyn ArchiveBackend>>,
}

impl Archive {
    /// Maximum number of bytes that one call of [`Archive::read`] returns.
    pub const MAX_READ_BYTES: usize = crate::bucket::MAX_RANGE_BYTES;

    /// Returns the archive in the given artifact store. If the server stores no artifacts, there is
    /// no archive, and every request returns [`ArchiveError::Absent`].
    #[must_use]
    pub fn new(store: ArtifactStore) -> Self {
        let in_directory = store.directory().cloned().map(|directory| Arc::new(directory) as Arc<dyn ArchiveBackend>);
        let backend = in_directory.or_else(|| store.prefix().cloned().map(|prefix| Arc::new(prefix) as _));
        Self { store, backend }
    }

    /// Returns an archive with a custom backend.
    #[must_use]
    pub fn over(backend: impl ArchiveBackend + 'static) -> Self {
        Self { store: ArtifactStore::default(), backend: Some(Arc::new(backend)) }
    }

    /// Returns the artifact store that contains the archive.
    #[must_use]
    pub fn store(&self) -> &ArtifactStore {
        &self.store
    }

    /// Returns whether there is an archive.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.backend.is_some()
    }

    /// Draws a name for a new object.
    #[must_use]
    pub fn new_object() -> ArchiveObject {
        ArchiveObject::new(rand::random())
    }

    fn backend(&self) -> Result<&dyn ArchiveBackend, ArchiveError> {
        self.backend.as_deref().ok_or(ArchiveError::Absent)
    }

    /// Writes an object. The write is atomic, and durable once this method returns. Takes one
    /// request.
    ///
    /// # Errors
    /// Any [`ArchiveError`] except those about objects. The object may exist nevertheless.
    pub async fn write(&self, object: ArchiveObject, content: Bytes) -> Result<(), ArchiveError> {
        self.backend()?.write(object, content).await
    }

    /// Reads exactly `length` bytes of an object, starting at `offset`. `length` is at most
    /// [`Archive::MAX_READ_BYTES`]. Takes one request.
    ///
    /// # Errors
    /// Any [`ArchiveError`].
    pub async fn read(&self, object: ArchiveObject, offset: u64, length: usize) -> Result<Bytes, ArchiveError> {
        if length == 0 {
            return Ok(Bytes::new());
        }
        if length > Self::MAX_READ_BYTES {
            return Err(ArchiveError::Failed(format!("{length} bytes of an object cannot be read at once")));
        }
        self.backend()?.read(object, offset, length).await
    }

    /// Deletes an object. Deleting one that does not exist is a no-op. Takes one request.
    ///
    /// # Errors
    /// Any [`ArchiveError`] except those about objects.
    pub async fn delete(&self, object: ArchiveObject) -> Result<(), ArchiveError> {
        self.backend()?.delete(object).await
    }

    /// Lists a page of the objects, in no particular order, starting at the token of the previous
    /// page. Takes one request per page of 1,000 objects. Meant for checks of the whole archive.
    ///
    /// # Errors
    /// Any [`ArchiveError`] except those about objects.
    pub async fn list(&self, from: Option<String>) -> Result<ArchivePage, ArchiveError> {
        self.backend()?.list(from).await
    }
}
