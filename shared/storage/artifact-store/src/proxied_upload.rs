//! Uploads through the server into a bucket. Regardless of the size of the files, only a few
//! megabytes are in memory at a time. If many clients send slowly, each of their uploads takes 5
//! MB. The number of concurrent uploads is therefore limited (`upload_limits.rs`).

use std::time::Duration;

use crate::bucket::{Bucket, MAX_PARTS, MIN_PART_BYTES, UploadedPart};
use bytes::Bytes;
use futures::StreamExt;
use mlflow_api::{Error, Result};
use tokio::time::timeout;

use crate::backend::{Chunks, failed};
use crate::upload_limits::{ADMISSION_TIMEOUT, MEMORY_TIMEOUT, PiecePermit, UploadPermit};

/// Maximum time for reading the body of a rejected request. The body is read because a client that
/// is rejected while it sends may not see the response.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Writes an object and returns its length in bytes. Uses one request, or a multipart upload if the
/// content exceeds one part. The object becomes visible as a whole or not at all.
///
/// # Errors
/// The errors of the chunks and of the bucket; `RESOURCE_EXHAUSTED` if the upload has waited too
/// long for other uploads to finish, in which case nothing is written.
pub(crate) async fn write(bucket: &Bucket, key: &str, mut chunks: Chunks) -> Result<u64> {
    let _room = match UploadPermit::take(ADMISSION_TIMEOUT).await {
        Ok(room) => room,
        Err(error) => {
            let _ = timeout(DRAIN_TIMEOUT, async { while let Some(Ok(_)) = chunks.next().await {} }).await;
            return Err(error);
        }
    };
    let mut pieces = PieceStream { chunks, rest: Bytes::new(), room: None, patience: MEMORY_TIMEOUT };
    let first = pieces.next().await?;
    if first.len() < MIN_PART_BYTES {
        let length = first.len() as u64;
        bucket.put(key, first.clone()).await.map_err(failed)?;
        pieces.give_back(first);
        return Ok(length);
    }
    let upload = bucket.create_upload(key).await.map_err(failed)?;
    let outcome = in_parts(bucket, key, &upload, first, pieces).await;
    if outcome.is_err()
        && let Err(failure) = bucket.abort_upload(key, &upload).await
    {
        tracing::warn!(%failure, "failed to abort an upload; the bucket's lifecycle rules will remove its parts");
    }
    outcome
}

async fn in_parts(bucket: &Bucket, key: &str, upload: &str, first: Bytes, mut pieces: PieceStream) -> Result<u64> {
    let (mut parts, mut length, mut piece): (Vec<UploadedPart>, u64, Bytes) = (Vec::new(), 0, first);
    for number in 1..=MAX_PARTS {
        length += piece.len() as u64;
        parts.push(bucket.put_part(key, upload, number, piece.clone()).await.map_err(failed)?);
        pieces.give_back(piece);
        piece = pieces.next().await?;
        if piece.is_empty() {
            bucket.complete_upload(key, upload, &parts).await.map_err(failed)?;
            return Ok(length);
        }
    }
    Err(Error::invalid("The file is too large to be sent through the server. Use a multipart upload."))
}

/// Regroups a stream into pieces of equal size.
struct PieceStream {
    chunks: Chunks,
    rest: Bytes,
    /// Permit for the memory of the last piece.
    room: Option<PiecePermit>,
    /// Maximum time to wait for memory. Set to zero after the first wait that times out.
    patience: Duration,
}

impl PieceStream {
    /// Waits for memory, and returns the next piece of the stream. A piece has the minimum size of
    /// a multipart part. The last piece may be smaller, and is followed by empty pieces.
    async fn next(&mut self) -> Result<Bytes> {
        let (room, mut piece) = PiecePermit::take(self.patience).await;
        if !room.is_counted() {
            self.patience = Duration::ZERO;
        }
        self.room = Some(room);
        loop {
            let fitting = self.rest.len().min(MIN_PART_BYTES - piece.len());
            piece.extend_from_slice(&self.rest.split_to(fitting));
            if piece.len() == MIN_PART_BYTES {
                return Ok(piece.freeze());
            }
            let Some(chunk) = self.chunks.next().await else { return Ok(piece.freeze()) };
            self.rest = chunk?;
        }
    }

    /// Releases the memory of a piece that was sent.
    fn give_back(&mut self, piece: Bytes) {
        if let Some(room) = self.room.take() {
            room.give_back(piece);
        }
    }
}
