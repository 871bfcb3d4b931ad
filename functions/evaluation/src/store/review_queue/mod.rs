//! Review queues and their items.
//!
//! A queue's key contains its creation time and its id, so that the queues of an experiment are a
//! range, newest first. The items of a queue have a partition of their own, with a local index that
//! sorts them by the time at which they were added. For each trace that was ever in a queue,
//! another row contains the ids of these queues. It is read to find the queues of a trace, and to
//! find the items that have to be deleted together with the trace.
//!
//! Adding items increments a counter in the queue, so that a concurrent change of the queue's
//! questions fails. Traces are checked again after their items were written, because a trace that
//! was deleted in the meantime leaves its items behind.

mod changes;
mod creation;
mod deletion;
mod item_changes;
mod item_reads;
mod queue_items;
mod reads;

pub use changes::ReviewQueueChange;
pub use queue_items::{
    ReviewItemState, item_of, name_key, name_row, queue_item, queue_key, queue_of, review_item, reviewed_trace,
    unreviewed_trace,
};
pub use reads::ReviewQueueConditions;
