//! Limits the memory for pieces of files, across all uploads of the process.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::bucket::MIN_PART_BYTES;
use bytes::{Bytes, BytesMut};
use mlflow_api::{Error, ErrorCode, Result};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// Maximum number of concurrent uploads. Each holds at most one piece of 5 MB in memory. If all of
/// them are slow, they exceed [`MAX_PIECES`] and take 160 MB.
const MAX_UPLOADS: usize = 32;
/// Maximum time for which an upload waits to be admitted. It is shorter than the timeouts of
/// clients and of proxies, which are a minute or more.
pub(crate) const ADMISSION_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of pieces in memory, unless uploads are slow.
const MAX_PIECES: usize = 4;
/// Maximum time for which an upload waits for memory. After the timeout, the upload exceeds the
/// limit and does not wait again, so that a few clients that send slowly do not block all others.
pub(crate) const MEMORY_TIMEOUT: Duration = Duration::from_secs(10);

static UPLOAD_PERMITS: Semaphore = Semaphore::const_new(MAX_UPLOADS);

static PIECE_MEMORY: PieceMemory =
    PieceMemory { free: Semaphore::const_new(MAX_PIECES), buffers: Mutex::new(Vec::new()) };

struct PieceMemory {
    free: Semaphore,
    /// Buffers for reuse. If they were freed and allocated again, the process would retain the old
    /// memory for a while in addition to the new. A std mutex suffices, because it is not held
    /// across an await.
    buffers: Mutex<Vec<BytesMut>>,
}

/// A permit for one of the concurrent uploads, released on drop. It is acquired before the first
/// byte is read and held to the end, so that no upload is rejected after a large part of it has
/// been sent.
pub(crate) struct UploadPermit(#[expect(dead_code, reason = "kept until it is dropped")] SemaphorePermit<'static>);

impl UploadPermit {
    /// Waits for a permit, for at most `patience`.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if none becomes available in time.
    pub(crate) async fn take(patience: Duration) -> Result<Self> {
        let permit = timeout(patience, UPLOAD_PERMITS.acquire()).await.ok().and_then(std::result::Result::ok);
        let message = "Too many concurrent uploads. Try again later.";
        permit.map(Self).ok_or_else(|| Error::new(ErrorCode::ResourceExhausted, message))
    }
}

/// A permit for the memory of one piece, released on drop.
pub(crate) struct PiecePermit(Option<SemaphorePermit<'static>>);

impl PiecePermit {
    /// Waits for a permit for at most `patience`, and returns it with a buffer. After the timeout,
    /// returns a permit that does not count towards the limit.
    pub(crate) async fn take(patience: Duration) -> (Self, BytesMut) {
        let permit = timeout(patience, PIECE_MEMORY.free.acquire()).await;
        let mut buffer = PIECE_MEMORY.buffers().pop().unwrap_or_default();
        buffer.clear();
        // The whole size is reserved, because reserved memory takes no space until it is written
        // to, while a buffer that grows by doubling would take twice as much.
        buffer.reserve(MIN_PART_BYTES);
        (Self(permit.ok().and_then(std::result::Result::ok)), buffer)
    }

    /// Returns whether the permit counts towards the limit. Permits that were issued after a
    /// timeout exceed the limit.
    pub(crate) fn is_counted(&self) -> bool {
        self.0.is_some()
    }

    /// Releases the permit. The piece's buffer is kept for reuse, unless it is still referenced
    /// elsewhere. When no piece is left in memory, all buffers are freed.
    pub(crate) fn give_back(self, piece: Bytes) {
        let is_counted = self.is_counted();
        drop(self);
        let mut buffers = PIECE_MEMORY.buffers();
        if PIECE_MEMORY.free.available_permits() == MAX_PIECES {
            buffers.clear();
        } else if is_counted && buffers.len() < MAX_PIECES {
            buffers.extend(piece.try_into_mut().ok());
        }
    }
}

impl PieceMemory {
    fn buffers(&self) -> MutexGuard<'_, Vec<BytesMut>> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn pieces_wait_for_room_but_not_for_ever() {
        let mut taken = Vec::new();
        for _ in 0..MAX_PIECES {
            taken.push(PiecePermit::take(MEMORY_TIMEOUT).await);
        }
        let mut waiting = std::pin::pin!(PiecePermit::take(MEMORY_TIMEOUT));
        assert!(futures::poll!(waiting.as_mut()).is_pending(), "all room is taken");
        let (room, mut buffer) = taken.pop().unwrap();
        buffer.extend_from_slice(b"piece");
        room.give_back(buffer.freeze());
        let (room, buffer) = waiting.await;
        assert!(room.is_counted() && buffer.is_empty() && buffer.capacity() >= MIN_PART_BYTES);
        // The wait times out, because no other upload releases memory in the meantime.
        let (more, buffer) = PiecePermit::take(Duration::from_millis(1)).await;
        assert!(!more.is_counted());
        more.give_back(buffer.freeze());
        for (room, buffer) in taken.into_iter().chain([(room, BytesMut::new())]) {
            room.give_back(buffer.freeze());
        }
        assert_eq!((PIECE_MEMORY.free.available_permits(), PIECE_MEMORY.buffers().len()), (MAX_PIECES, 0));
    }

    #[tokio::test]
    async fn an_upload_too_many_is_refused_until_another_one_ends() {
        let mut taken = Vec::new();
        for _ in 0..MAX_UPLOADS {
            taken.push(UploadPermit::take(ADMISSION_TIMEOUT).await.unwrap());
        }
        let refused = UploadPermit::take(Duration::from_millis(1)).await.map(|_| ()).unwrap_err();
        assert_eq!(refused.code, ErrorCode::ResourceExhausted);
        let mut waiting = std::pin::pin!(UploadPermit::take(ADMISSION_TIMEOUT));
        assert!(futures::poll!(waiting.as_mut()).is_pending());
        taken.pop();
        waiting.await.unwrap();
    }
}
