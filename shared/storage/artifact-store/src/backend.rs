//! The interface of artifact backends.

use std::time::Duration;

use crate::bucket::BucketFailure;
use crate::download::Download;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt};
use mlflow_api::logged_models::FileInfo;
use mlflow_api::{Error, ErrorCode, Result};

use crate::path::ArtifactPath;

/// Maximum size in bytes of a directory listing as JSON. Listings have no pages, because MLflow's
/// client requests a directory as a whole.
pub(crate) const MAX_LIST_BYTES: usize = 4 << 20;
/// Maximum size in bytes of an entry of a directory listing, not counting its name.
pub(crate) const MAX_ENTRY_BYTES: usize = 64;

/// A stream with the content of a file.
pub type Chunks = BoxStream<'static, Result<Bytes>>;

/// Time for which a download URL is valid (MLflow's `MLFLOW_PRESIGNED_DOWNLOAD_URL_TTL_SECONDS`).
/// The client must start reading within this time.
pub const DOWNLOAD_EXPIRATION: Duration = Duration::from_mins(5);

/// Returns the error for a file that exceeds the server's maximum size.
#[must_use]
pub fn too_large(longest: u64) -> Error {
    Error::invalid(format!("Artifact size is too large. Max size is {longest} bytes."))
}

/// A multipart upload whose parts a client sends directly to the backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartedUpload {
    /// The backend's id of the upload.
    pub id: String,
    /// The URL for each part, starting with part 1.
    pub urls: Vec<String>,
}

/// A part that a client has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentPart {
    /// Part number, starting at 1.
    pub number: i64,
    /// The ETag that the backend assigned to the part.
    pub etag: String,
}

/// A URL from which a client reads a file directly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DownloadUrl {
    /// The URL, which is valid only for reading this file.
    pub url: String,
    /// Length of the file in bytes.
    pub length: u64,
}

/// A URL to which a client writes a file directly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadUrl {
    /// The URL, which is valid only for writing this file.
    pub url: String,
    /// The content type that the client has to send.
    pub content_type: &'static str,
}

/// A backend that stores artifacts. Paths are relative to its root. The methods after
/// [`ArtifactBackend::has_urls`] are optional. By default, they return `NOT_IMPLEMENTED` with
/// MLflow's message, which makes MLflow's client fall back to transferring files through the
/// server.
pub trait ArtifactBackend: Send + Sync {
    /// Lists a directory, sorted by name. The path of each entry is its name. The list is empty if
    /// the path is a file or does not exist.
    ///
    /// # Errors
    /// `INVALID_PARAMETER_VALUE` if the directory has more entries than one response can list. Like
    /// every method of this trait, returns an internal error if the backend fails.
    fn list(&self, path: ArtifactPath) -> BoxFuture<'static, Result<Vec<FileInfo>>>;

    /// Opens a file for a client, or returns a URL from which the client reads it.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST`; `INVALID_PARAMETER_VALUE` for a directory.
    fn download(&self, path: ArtifactPath) -> BoxFuture<'static, Result<Download>>;

    /// Reads a whole file of at most `most` bytes for the server itself. Returns `None` if there is
    /// no such file.
    ///
    /// # Errors
    /// `INVALID_PARAMETER_VALUE` if the file is longer.
    fn read(&self, path: ArtifactPath, most: usize) -> BoxFuture<'static, Result<Option<Bytes>>>;

    /// Writes or replaces a file and returns its length in bytes. The write is atomic, and durable
    /// once this method returns.
    ///
    /// # Errors
    /// The error of the chunks, in which case nothing is written; `INVALID_PARAMETER_VALUE` if the
    /// path cannot be a file.
    fn write(&self, path: ArtifactPath, chunks: Chunks) -> BoxFuture<'static, Result<u64>>;

    /// Deletes a file, or a directory with its content. Deleting a path that does not exist is a
    /// no-op.
    ///
    /// # Errors
    /// `INVALID_PARAMETER_VALUE` for the root.
    fn delete(&self, path: ArtifactPath) -> BoxFuture<'static, Result<()>>;

    /// Returns whether the backend supports multipart uploads and presigned URLs. If not, the
    /// methods for them return `NOT_IMPLEMENTED`.
    fn has_urls(&self) -> bool {
        false
    }

    /// Starts an upload with this number of parts.
    ///
    /// # Errors
    /// `INVALID_PARAMETER_VALUE` if the path cannot be a file, or if the backend does not support
    /// this number of parts.
    fn start_upload(&self, path: ArtifactPath, parts: i64) -> BoxFuture<'static, Result<StartedUpload>> {
        let _ = (path, parts);
        refused("Multipart upload")
    }

    /// Joins the uploaded parts into a file of at most `longest` bytes, which is not visible
    /// before. Completing an upload again is a no-op.
    ///
    /// # Errors
    /// `INVALID_PARAMETER_VALUE` if a part is missing, if there are too many parts, or if the parts
    /// exceed `longest` bytes; `RESOURCE_DOES_NOT_EXIST` if the upload does not exist.
    fn complete_upload(
        &self,
        path: ArtifactPath,
        id: String,
        parts: Vec<SentPart>,
        longest: Option<u64>,
    ) -> BoxFuture<'static, Result<()>> {
        let _ = (path, id, parts, longest);
        refused("Multipart upload")
    }

    /// Aborts an upload and discards its parts. Aborting an upload that does not exist is a no-op.
    ///
    /// # Errors
    /// Internal errors.
    fn abort_upload(&self, path: ArtifactPath, id: String) -> BoxFuture<'static, Result<()>> {
        let _ = (path, id);
        refused("Multipart upload")
    }

    /// Returns a URL from which a client reads a file directly, valid for `expiration`. `what` is
    /// MLflow's name of the operation, for error messages.
    ///
    /// # Errors
    /// The errors of [`ArtifactBackend::download`].
    fn download_url(
        &self,
        path: ArtifactPath,
        expiration: Duration,
        what: &'static str,
    ) -> BoxFuture<'static, Result<DownloadUrl>> {
        let _ = (path, expiration);
        refused(what)
    }

    /// Returns a URL to which a client writes a file directly, valid for `expiration`.
    ///
    /// # Errors
    /// `INVALID_PARAMETER_VALUE` if the path cannot be a file.
    fn upload_url(&self, path: ArtifactPath, expiration: Duration) -> BoxFuture<'static, Result<UploadUrl>> {
        let _ = (path, expiration);
        refused("Presigned upload")
    }
}

/// Returns the error for an operation that a backend does not support. MLflow's client depends on
/// the wording.
#[must_use]
pub fn unsupported(what: &str) -> Error {
    let message = format!("{what} is not supported for the current artifact repository");
    Error::new(ErrorCode::NotImplemented, message)
}

fn refused<T: Send + 'static>(what: &str) -> BoxFuture<'static, Result<T>> {
    Box::pin(std::future::ready(Err(unsupported(what))))
}

pub(crate) fn too_long() -> Error {
    Error::invalid("The directory has more files than one response can list.")
}

pub(crate) fn is_directory(path: &ArtifactPath) -> Error {
    Error::invalid(format!("Artifact path refers to a directory, not a file: '{path}'"))
}

pub(crate) fn not_there(path: &ArtifactPath) -> Error {
    Error::not_found(format!("No such artifact: '{path}'"))
}

pub(crate) fn no_file_there(path: &ArtifactPath) -> Error {
    Error::invalid(format!(
        "Cannot write a file at '{path}': its name is too long, it is a directory, or a parent is not a directory."
    ))
}

/// Converts a bucket's failure to an error for the client. The error only says whether the client
/// should retry.
pub(crate) fn failed(failure: BucketFailure) -> Error {
    match failure {
        BucketFailure::Unavailable(cause) => Error::unavailable(cause),
        other => Error::internal(other),
    }
}

/// Limits a stream to a number of bytes. The chunk that exceeds the limit is replaced with the
/// error.
#[must_use]
pub fn at_most(chunks: Chunks, bytes: u64, error: Error) -> Chunks {
    let mut left = bytes;
    let limited = chunks.map(move |chunk| {
        let chunk = chunk?;
        left = left.checked_sub(chunk.len() as u64).ok_or_else(|| error.clone())?;
        Ok(chunk)
    });
    limited.boxed()
}
