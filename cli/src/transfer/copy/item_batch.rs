//! Batches of items that are passed from the reader of a source to the writer of the target.

use table::Item;
use tokio::sync::mpsc;

use crate::Failure;

/// Maximum number of items in a batch: 16 requests of 25 items each, which are sent concurrently.
pub(super) const MAX_ITEMS: usize = 400;
/// Size in bytes at which a batch is full, which limits the memory that a copy needs.
const MAX_BYTES: usize = 4_000_000;
/// Number of batches that are read ahead.
const BATCHES_AHEAD: usize = 2;

/// The end of the channel by which the reader sends batches.
pub(super) type BatchSender = mpsc::Sender<Result<Vec<Item>, Failure>>;
/// The end of the channel by which the writer receives batches.
pub(super) type BatchReceiver = mpsc::Receiver<Result<Vec<Item>, Failure>>;

/// Creates the channel for batches.
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

    /// Returns the remaining items.
    pub(super) fn rest(self) -> Vec<Item> {
        self.items
    }
}
