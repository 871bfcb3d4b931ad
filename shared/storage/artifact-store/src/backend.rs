//! The operations of a place of artifacts.

use std::time::Duration;

use crate::bucket::Failure;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt};
use mlflow_api::logged_models::FileInfo;
use mlflow_api::{Error, ErrorCode, Result};
use service::Answer;

use crate::path::ArtifactPath;

/// Bytes of one list in JSON. There are no pages: MLflow's client asks for a directory as a whole.
pub(crate) const LONGEST_LIST: usize = 4 << 20;
/// Bytes of an entry of a list without its name, at most.
pub(crate) const ENTRY: usize = 64;

/// The bytes of a file on their way to a place, piece by piece.
pub type Chunks = BoxStream<'static, Result<Bytes>>;

/// For how long a client that was sent elsewhere may begin to read a file there (MLflow's `MLFLOW_PRESIGNED_DOWNLOAD_URL_TTL_SECONDS`).
pub const DOWNLOAD: Duration = Duration::from_mins(5);

/// A file has more bytes than this server takes.
#[must_use]
pub fn too_large(longest: u64) -> Error {
    Error::invalid(format!("Artifact size is too large. Max size is {longest} bytes."))
}

/// An upload whose parts a client sends to the place itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartedUpload {
    /// The place's id of it.
    pub id: String,
    /// Where each part goes, from part 1 on.
    pub urls: Vec<String>,
}

/// A part that a client has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentPart {
    /// From 1 on.
    pub number: i64,
    /// The tag that the place gave it.
    pub etag: String,
}

/// Where a client reads a file itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DownloadUrl {
    /// Good for this file and for reading.
    pub url: String,
    /// Of the file, in bytes.
    pub length: u64,
}

/// Where a client writes a file itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadUrl {
    /// Good for this file and for writing.
    pub url: String,
    /// The type that the client has to send the file with.
    pub content_type: &'static str,
}

/// A place where artifacts are kept. Paths are below it. Not every place has the methods that
/// follow [`ArtifactBackend::has_urls`]. Their answer is then `NOT_IMPLEMENTED` in MLflow's words.
/// After that, its client sends and reads files through the server.
pub trait ArtifactBackend: Send + Sync {
    /// The entries of a directory, by name, each with its name as its path; none if it is a file,
    /// or not there.
    ///
    /// # Errors
    /// `INVALID_PARAMETER_VALUE` if it is more than one answer can list; internal ones, here and
    /// below, if the place fails.
    fn list(&self, path: ArtifactPath) -> BoxFuture<'static, Result<Vec<FileInfo>>>;

    /// A file as an answer: its bytes, piece by piece, or a URL at which the client reads it.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST`, `INVALID_PARAMETER_VALUE` for a directory.
    fn send(&self, path: ArtifactPath) -> BoxFuture<'static, Result<Answer>>;

    /// Writes a file, in the place of one that was there before, and returns its length in bytes. It is seen whole or not at all, and
    /// stays once this is done.
    ///
    /// # Errors
    /// That of the chunks, and nothing is written; `INVALID_PARAMETER_VALUE` where no file can be.
    fn write(&self, path: ArtifactPath, chunks: Chunks) -> BoxFuture<'static, Result<u64>>;

    /// Deletes a file, or a directory with everything in it. A path without either counts as
    /// deleted.
    ///
    /// # Errors
    /// `INVALID_PARAMETER_VALUE` for the place itself.
    fn delete(&self, path: ArtifactPath) -> BoxFuture<'static, Result<()>>;

    /// Whether it has the following methods.
    fn has_urls(&self) -> bool {
        false
    }

    /// Begins an upload of so many parts.
    ///
    /// # Errors
    /// `INVALID_PARAMETER_VALUE` where no file can be, or for a number of parts that the place does not take.
    fn start_upload(&self, path: ArtifactPath, parts: i64) -> BoxFuture<'static, Result<StartedUpload>> {
        let _ = (path, parts);
        refused("Multipart upload")
    }

    /// Makes a file of the parts that were sent, of at most `longest` bytes. Until then it is not seen. Completing an upload again changes
    /// nothing.
    ///
    /// # Errors
    /// `INVALID_PARAMETER_VALUE` for parts that were not sent, or are too many or too long; `RESOURCE_DOES_NOT_EXIST` for an upload that is
    /// not there.
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

    /// Ends an upload and forgets its parts; one that is not there has ended already.
    ///
    /// # Errors
    /// Internal ones.
    fn abort_upload(&self, path: ArtifactPath, id: String) -> BoxFuture<'static, Result<()>> {
        let _ = (path, id);
        refused("Multipart upload")
    }

    /// Where a client reads a file itself, for so long. `what` is this in MLflow's words.
    ///
    /// # Errors
    /// Those of [`ArtifactBackend::send`].
    fn download_url(
        &self,
        path: ArtifactPath,
        expiration: Duration,
        what: &'static str,
    ) -> BoxFuture<'static, Result<DownloadUrl>> {
        let _ = (path, expiration);
        refused(what)
    }

    /// Where a client writes a file itself, for so long.
    ///
    /// # Errors
    /// `INVALID_PARAMETER_VALUE` where no file can be.
    fn upload_url(&self, path: ArtifactPath, expiration: Duration) -> BoxFuture<'static, Result<UploadUrl>> {
        let _ = (path, expiration);
        refused("Presigned upload")
    }
}

/// The refusal of an operation that a place lacks, in MLflow's words: its client looks for them.
#[must_use]
pub fn unsupported(what: &str) -> Error {
    let message = format!("{what} is not supported for the current artifact repository");
    Error::new(ErrorCode::NotImplemented, message)
}

fn refused<T: Send + 'static>(what: &str) -> BoxFuture<'static, Result<T>> {
    Box::pin(std::future::ready(Err(unsupported(what))))
}

pub(crate) fn too_long() -> Error {
    Error::invalid("The directory holds more files than one answer can list.")
}

pub(crate) fn is_directory(path: &ArtifactPath) -> Error {
    Error::invalid(format!("Artifact path refers to a directory, not a file: '{path}'"))
}

pub(crate) fn not_there(path: &ArtifactPath) -> Error {
    Error::not_found(format!("No such artifact: '{path}'"))
}

pub(crate) fn no_file_there(path: &ArtifactPath) -> Error {
    Error::invalid(format!(
        "No file can be at '{path}': its name is too long, a directory is there, or a file is where a directory would have to be."
    ))
}

/// A client's error after a failure: it only says whether to try again.
pub(crate) fn failed(failure: Failure) -> Error {
    match failure {
        Failure::Unavailable(cause) => Error::unavailable(cause),
        other => Error::internal(other),
    }
}

/// The same chunks, an error in the place of the one with which they are longer than this, in bytes.
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
