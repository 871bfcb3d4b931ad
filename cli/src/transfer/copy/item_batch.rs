//! Items on their way from a source to a table.

use table::Item;
use tokio::sync::mpsc;

use crate::Failure;

/// Maximum number of items in a batch: as many requests of 25 as run concurrently.
pub(super) const MAX_ITEMS: usize = 400;
/// Size in bytes from which no further item is added to a batch, so that memory stays flat.
const MAX_BYTES: usize = 4_000_000;
/// Number of batches that are read ahead.
const BATCHES_AHEAD: usize = 2;

/// Sends batches to the writer.
pub(super) type BatchSender = mpsc::Sender<Result<Vec<Item>, Failure>>;
/// Receives batches from the reader.
pub(super) type BatchReceiver = mpsc::Receiver<Result<Vec<Item>, Failure>>;

/// Returns a channel for batches.
pub(super) fn channel() -> (BatchSender, BatchReceiver) {
    mpsc::channel(BATCHES_AHEAD)
}

/// A batch that is being filled.
#[derive(Default)]
pub(super) struct ItemBatch {
    items: Vec<Item>,
    bytes: usize,
}

impl ItemBatch {
    /// Adds an item, and returns the batch if it is full.
    pub(super) fn add(&mut self, item: Item) -> Option<Vec<Item>> {
        self.bytes += item.size();
        self.items.push(item);
        (self.items.len() >= MAX_ITEMS || self.bytes >= MAX_BYTES).then(|| std::mem::take(self).items)
    }

    /// Returns what is left.
    pub(super) fn rest(self) -> Vec<Item> {
        self.items
    }
}
