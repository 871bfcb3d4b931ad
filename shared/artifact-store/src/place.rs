//! What a place of artifacts can do.

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt};
use mlflow_api::logged_models::FileInfo;
use mlflow_api::{Error, Result};
use service::Answer;

use crate::path::ArtifactPath;

/// The bytes of a file on their way to a place, piece by piece.
pub type Chunks = BoxStream<'static, Result<Bytes>>;

/// A place where artifacts are kept. Paths are below it.
pub trait Place: Send + Sync {
    /// What is in a directory, by name, each with its name as its path; nothing if it is a file, or not there.
    ///
    /// # Errors
    /// `INVALID_PARAMETER_VALUE` if it is more than one answer can list; internal ones, here and below, if the place fails.
    fn list(&self, path: ArtifactPath) -> BoxFuture<'static, Result<Vec<FileInfo>>>;

    /// A file as an answer that is read piece by piece.
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

    /// Deletes a file or a directory with all that is in it; what is not there is deleted already.
    ///
    /// # Errors
    /// `INVALID_PARAMETER_VALUE` for the place itself.
    fn delete(&self, path: ArtifactPath) -> BoxFuture<'static, Result<()>>;
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
