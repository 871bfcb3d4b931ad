//! Packs traces into blocks, which searches read instead of documents
//! (`docs/adr/0034-blocks-of-traces.md`).
//!
//! The stream brings marks, and [`asks`] schedules their partition to be packed some minutes later.
//! A tick then requests packing, and the stream brings this request to its consumer, so that no
//! other process packs the partition at the same time. [`pass`] groups the partition's marks by the
//! blocks that own their places ([`ends`]). [`append`] creates new blocks, and [`rewrite`] changes
//! existing ones. [`documents`] and [`spans`] read the traces, [`cut`] calculates what fits, and
//! [`write`] writes. [`marked`] counts the marks that a partition receives, and [`grow()`] gives a
//! day more partitions.
//!
//! One rule holds at any moment, no matter where a pass is interrupted: at the place of each trace
//! there is a mark, or the block that owns the place has the current version of the trace.
//! Therefore spans are written first, and then the block. After that, the marks are deleted that
//! were quiet when the traces were read, each on condition that it has not been put again. A lock
//! keeps out a second packer, and the removal of the experiment or of expired traces.

mod append;
mod asks;
mod cut;
mod documents;
mod ends;
mod grow;
mod marked;
mod pass;
mod rewrite;
mod spans;
mod write;

use std::time::Duration;

use entities::Moment;
use table::Table;
use trace_blocks::{MOST_TRACES, TraceKey, TracePartition};

pub(crate) use asks::{Asks, asking, partition_of_row, row_of};
pub(crate) use grow::grow;
pub(crate) use marked::Marked;
pub(crate) use pass::pack_partition;

/// Maximum number of marks of a block that are processed together. With the block's own traces,
/// they make no more blocks than fit into a transaction.
const MOST_WITHIN: usize = 128;
/// Default duration of a pass.
const LONGEST: Duration = Duration::from_secs(20);
/// Number of concurrent requests.
const AT_ONCE: usize = 16;

/// The thresholds of packing. Tests use smaller ones.
#[derive(Clone, Copy, Debug)]
pub struct Packing {
    /// Minimum number of marks for new blocks. Fewer marks wait.
    pub least_new: usize,
    /// Minimum number of marks within a block for rewriting it. Fewer marks wait.
    pub least_changed: usize,
    /// Maximum number of traces in a block.
    pub most: usize,
    /// Maximum duration of a pass. Changes of other entities wait for it.
    pub longest: Duration,
    /// Pause after each block, because clients write to the same partition, which handles 1,000
    /// write units per second.
    pub rest: Duration,
}

impl Default for Packing {
    fn default() -> Self {
        // A block has about 30 KB. In the worst case, a trace costs one write unit, and a block has
        // 15 marks whose traces readers read individually.
        Self { least_new: 32, least_changed: 16, most: MOST_TRACES, longest: LONGEST, rest: Duration::from_millis(200) }
    }
}

/// A quiet mark.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mark {
    place: TraceKey,
    /// Time in ms when the mark was put.
    put: i64,
}

/// A partition that is being packed.
struct Packer<'a> {
    table: &'a Table,
    partition: TracePartition,
    sizes: Packing,
    /// Start of the pass, in ms and by this process's monotonic clock.
    now: i64,
    begin: Moment,
}
