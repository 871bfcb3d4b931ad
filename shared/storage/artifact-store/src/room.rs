//! Room for pieces of files in memory, for all uploads of the process together.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::bucket::SMALLEST_PART;
use bytes::{Bytes, BytesMut};
use mlflow_api::{Error, ErrorCode, Result};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// Uploads that are taken at a time, each with one piece in memory: 160 MB, where all of them are slow.
const UPLOADS: usize = 32;
/// How long another upload waits until it is taken. Clients, and proxies between, wait a minute and
/// more.
pub(crate) const UNTIL_TAKEN: Duration = Duration::from_secs(30);

/// Pieces that are in memory at a time, unless uploads are slow.
const PIECES: usize = 4;
/// How long an upload waits for others to make room, once. Then it takes more: a few clients that send slowly must not hold up all others.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

static TAKEN: Semaphore = Semaphore::const_new(UPLOADS);

static SHARED: Shared = Shared { free: Semaphore::const_new(PIECES), buffers: Mutex::new(Vec::new()) };

struct Shared {
    free: Semaphore,
    /// Memory that is used again. If it were freed and allocated again, the process would keep the
    /// old memory for a while, in addition to the new one. It is a std mutex, as nothing is awaited
    /// while it is held.
    buffers: Mutex<Vec<BytesMut>>,
}

/// A place among the running uploads, until it is dropped. An upload has it before its first byte
/// is read and keeps it to its end. So no upload is refused when much of it has been sent.
pub(crate) struct UploadRoom(#[expect(dead_code, reason = "kept until it is dropped")] SemaphorePermit<'static>);

impl UploadRoom {
    /// Waits until there is a place, but no longer than `patience`.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED`, where there is none for so long.
    pub(crate) async fn take(patience: Duration) -> Result<Self> {
        let permit = timeout(patience, TAKEN.acquire()).await.ok().and_then(std::result::Result::ok);
        let message = "There are too many uploads at this time. Try again later.";
        permit.map(Self).ok_or_else(|| Error::new(ErrorCode::ResourceExhausted, message))
    }
}

/// Room for one piece, until it is dropped.
pub(crate) struct PieceRoom(Option<SemaphorePermit<'static>>);

impl PieceRoom {
    /// Waits until there is room, but no longer than `patience`; with it, memory for a piece.
    pub(crate) async fn take(patience: Duration) -> (Self, BytesMut) {
        let permit = timeout(patience, SHARED.free.acquire()).await;
        let mut buffer = SHARED.buffers().pop().unwrap_or_default();
        buffer.clear();
        // Reserved memory that is not filled takes none, while a buffer that grows by doubling
        // would take twice as much.
        buffer.reserve(SMALLEST_PART);
        (Self(permit.ok().and_then(std::result::Result::ok)), buffer)
    }

    /// Whether it is one of the few, and not more.
    pub(crate) fn is_counted(&self) -> bool {
        self.0.is_some()
    }

    /// Makes room. It keeps the memory of the piece for the next one, if nobody reads the piece any
    /// more and others have pieces meanwhile.
    pub(crate) fn give_back(self, piece: Bytes) {
        let is_counted = self.is_counted();
        drop(self);
        let mut buffers = SHARED.buffers();
        if SHARED.free.available_permits() == PIECES {
            buffers.clear();
        } else if is_counted && buffers.len() < PIECES {
            buffers.extend(piece.try_into_mut().ok());
        }
    }
}

impl Shared {
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
        for _ in 0..PIECES {
            taken.push(PieceRoom::take(PATIENCE).await);
        }
        let mut waiting = std::pin::pin!(PieceRoom::take(PATIENCE));
        assert!(futures::poll!(waiting.as_mut()).is_pending(), "all room is taken");
        let (room, mut buffer) = taken.pop().unwrap();
        buffer.extend_from_slice(b"piece");
        room.give_back(buffer.freeze());
        let (room, buffer) = waiting.await;
        assert!(room.is_counted() && buffer.is_empty() && buffer.capacity() >= SMALLEST_PART);
        // Nobody makes room.
        let (more, buffer) = PieceRoom::take(Duration::from_millis(1)).await;
        assert!(!more.is_counted());
        more.give_back(buffer.freeze());
        for (room, buffer) in taken.into_iter().chain([(room, BytesMut::new())]) {
            room.give_back(buffer.freeze());
        }
        assert_eq!((SHARED.free.available_permits(), SHARED.buffers().len()), (PIECES, 0));
    }

    #[tokio::test]
    async fn an_upload_too_many_is_refused_until_another_one_ends() {
        let mut taken = Vec::new();
        for _ in 0..UPLOADS {
            taken.push(UploadRoom::take(UNTIL_TAKEN).await.unwrap());
        }
        let refused = UploadRoom::take(Duration::from_millis(1)).await.map(|_| ()).unwrap_err();
        assert_eq!(refused.code, ErrorCode::ResourceExhausted);
        let mut waiting = std::pin::pin!(UploadRoom::take(UNTIL_TAKEN));
        assert!(futures::poll!(waiting.as_mut()).is_pending());
        taken.pop();
        waiting.await.unwrap();
    }
}
