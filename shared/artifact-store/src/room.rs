//! Room for pieces of files in memory, for all uploads of the process together.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bucket::SMALLEST_PART;
use bytes::{Bytes, BytesMut};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// Pieces that are in memory at a time.
const PIECES: usize = 4;
/// How long an upload waits for others to make room, once. Then it takes more: a few clients that send slowly must not hold up all others.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

static SHARED: Shared = Shared { free: Semaphore::const_new(PIECES), buffers: Mutex::new(Vec::new()) };

struct Shared {
    free: Semaphore,
    /// Memory that is taken again: what is freed and taken anew stays the process's for a while, beside the new one. A std mutex: nothing is awaited
    /// while it is held.
    buffers: Mutex<Vec<BytesMut>>,
}

/// Room for one piece, until it is dropped.
pub(crate) struct Room(Option<SemaphorePermit<'static>>);

impl Room {
    /// Waits until there is room, but no longer than `patience`; with it, memory for a piece.
    pub(crate) async fn take(patience: Duration) -> (Self, BytesMut) {
        let permit = timeout(patience, SHARED.free.acquire()).await;
        let mut buffer = SHARED.buffers().pop().unwrap_or_default();
        buffer.clear();
        // What is not filled takes no memory, and what grew by doubling would take twice as much.
        buffer.reserve(SMALLEST_PART);
        (Self(permit.ok().and_then(Result::ok)), buffer)
    }

    /// Whether it is one of the few, and not more.
    pub(crate) fn is_counted(&self) -> bool {
        self.0.is_some()
    }

    /// Makes room, and keeps the memory of the piece for the next one, if nobody else reads it any more and somebody has a piece meanwhile.
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
            taken.push(Room::take(PATIENCE).await);
        }
        let mut waiting = std::pin::pin!(Room::take(PATIENCE));
        assert!(futures::poll!(waiting.as_mut()).is_pending(), "all room is taken");
        let (room, mut buffer) = taken.pop().unwrap();
        buffer.extend_from_slice(b"piece");
        room.give_back(buffer.freeze());
        let (room, buffer) = waiting.await;
        assert!(room.is_counted() && buffer.is_empty() && buffer.capacity() >= SMALLEST_PART);
        // Nobody makes room.
        let (more, buffer) = Room::take(Duration::from_millis(1)).await;
        assert!(!more.is_counted());
        more.give_back(buffer.freeze());
        for (room, buffer) in taken.into_iter().chain([(room, BytesMut::new())]) {
            room.give_back(buffer.freeze());
        }
        assert_eq!((SHARED.free.available_permits(), SHARED.buffers().len()), (PIECES, 0));
    }
}
