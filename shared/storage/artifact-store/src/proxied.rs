//! Uploads through the server into a bucket: a few megabytes are in memory at a time, whatever the file's length; where many clients send slowly, 5 MB
//! of each of them, and only so many are taken (`room.rs`).

use std::time::Duration;

use crate::bucket::{Bucket, MOST_PARTS, Part, SMALLEST_PART};
use bytes::Bytes;
use futures::StreamExt;
use mlflow_api::{Error, Result};
use tokio::time::timeout;

use crate::backend::{Chunks, failed};
use crate::room::{PATIENCE, PieceRoom, UNTIL_TAKEN, UploadRoom};

/// For how long a refused body is read: a client that is refused while it sends may not see the
/// answer.
const DRAINED: Duration = Duration::from_secs(5);

/// Writes an object and returns its length in bytes: in one request, or in parts, if it is longer than one. It is seen whole or not at all.
///
/// # Errors
/// Those of the chunks and of the bucket; `RESOURCE_EXHAUSTED`, where too many uploads are under way for too long, and nothing was written.
pub(crate) async fn write(bucket: &Bucket, key: &str, mut chunks: Chunks) -> Result<u64> {
    let _room = match UploadRoom::take(UNTIL_TAKEN).await {
        Ok(room) => room,
        Err(error) => {
            let _ = timeout(DRAINED, async { while let Some(Ok(_)) = chunks.next().await {} }).await;
            return Err(error);
        }
    };
    let mut pieces = Pieces { chunks, rest: Bytes::new(), room: None, patience: PATIENCE };
    let first = pieces.next().await?;
    if first.len() < SMALLEST_PART {
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
        tracing::warn!(%failure, "parts of an unfinished upload stay until the bucket's lifecycle removes them");
    }
    outcome
}

async fn in_parts(bucket: &Bucket, key: &str, upload: &str, first: Bytes, mut pieces: Pieces) -> Result<u64> {
    let (mut parts, mut length, mut piece): (Vec<Part>, u64, Bytes) = (Vec::new(), 0, first);
    for number in 1..=MOST_PARTS {
        length += piece.len() as u64;
        parts.push(bucket.put_part(key, upload, number, piece.clone()).await.map_err(failed)?);
        pieces.give_back(piece);
        piece = pieces.next().await?;
        if piece.is_empty() {
            bucket.complete_upload(key, upload, &parts).await.map_err(failed)?;
            return Ok(length);
        }
    }
    Err(Error::invalid("The file is too long to be sent through the server. Send it in parts."))
}

/// The bytes of a file, cut into other pieces.
struct Pieces {
    chunks: Chunks,
    rest: Bytes,
    /// Of the piece that was made last.
    room: Option<PieceRoom>,
    /// How long it waits for room: not again, if it has waited in vain.
    patience: Duration,
}

impl Pieces {
    /// As many bytes as the smallest part has; fewer at the end, and none after it. Waits for room in memory before it reads them.
    async fn next(&mut self) -> Result<Bytes> {
        let (room, mut piece) = PieceRoom::take(self.patience).await;
        if !room.is_counted() {
            self.patience = Duration::ZERO;
        }
        self.room = Some(room);
        loop {
            let fitting = self.rest.len().min(SMALLEST_PART - piece.len());
            piece.extend_from_slice(&self.rest.split_to(fitting));
            if piece.len() == SMALLEST_PART {
                return Ok(piece.freeze());
            }
            let Some(chunk) = self.chunks.next().await else { return Ok(piece.freeze()) };
            self.rest = chunk?;
        }
    }

    /// Makes room for others, now that a piece was sent.
    fn give_back(&mut self, piece: Bytes) {
        if let Some(room) = self.room.take() {
            room.give_back(piece);
        }
    }
}
