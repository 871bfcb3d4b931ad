//! Packs traces into blocks, which searches read instead of documents
//! (`docs/adr/0034-blocks-of-traces.md`).
//!
//! The stream brings marks, and [`packing_requests`] schedules their partition to be packed some minutes later.
//! A tick then requests packing, and the stream brings this request to its consumer, so that no
//! other process packs the partition at the same time. [`packing_pass`] groups the partition's marks by the
//! blocks that own their places ([`block_ends`]). [`new_blocks`] creates new blocks, and [`block_rewrite`] changes
//! existing ones. [`trace_documents`] and [`span_reader`] read the traces, [`block_sizes`] calculates what fits, and
//! [`write`] writes. [`mark_rate`] counts the marks that a partition receives, and [`add_partitions()`] gives a
//! day more partitions.
//!
//! One rule holds at any moment, no matter where a pass is interrupted: at the place of each trace
//! there is a mark, or the block that owns the place has the current version of the trace.
//! Therefore spans are written first, and then the block. After that, the marks are deleted that
//! were quiet when the traces were read, each on condition that it has not been put again. A lock
//! keeps out a second packer, and the removal of the experiment or of expired traces.

mod block_ends;
mod block_rewrite;
mod block_sizes;
mod block_writer;
mod mark_rate;
mod new_blocks;
mod packing_pass;
mod packing_requests;
mod partition_growth;
mod span_reader;
mod trace_documents;

use std::time::Duration;

use entities::Moment;
use table::Table;
use trace_blocks::{MAX_TRACES, TraceKey, TracePartition};

pub(crate) use mark_rate::MarkTimes;
pub(crate) use packing_pass::pack_partition;
pub(crate) use packing_requests::{PackingSchedule, packing_request, partition_of_row, row_of};
pub(crate) use partition_growth::add_partitions;

/// Maximum number of marks of a block that are processed together. With the block's own traces,
/// they make no more blocks than fit into a transaction.
const MAX_MARKS_PER_BLOCK: usize = 128;
/// Default duration of a pass.
const DEFAULT_PASS_DURATION: Duration = Duration::from_secs(20);
/// Number of concurrent requests.
const CONCURRENCY: usize = 16;

/// The thresholds of packing. Tests use smaller ones.
#[derive(Clone, Copy, Debug)]
pub struct PackingThresholds {
    /// Minimum number of marks for new blocks. Fewer marks wait.
    pub min_new_marks: usize,
    /// Minimum number of marks within a block for rewriting it. Fewer marks wait.
    pub min_changed_marks: usize,
    /// Maximum number of traces in a block.
    pub max_traces: usize,
    /// Maximum duration of a pass. Changes of other entities wait for it.
    pub max_duration: Duration,
    /// Pause after each block, because clients write to the same partition, which handles 1,000
    /// write units per second.
    pub pause: Duration,
}

impl Default for PackingThresholds {
    fn default() -> Self {
        // A block has about 30 KB. In the worst case, a trace costs one write unit, and a block has
        // 15 marks whose traces readers read individually.
        Self {
            min_new_marks: 32,
            min_changed_marks: 16,
            max_traces: MAX_TRACES,
            max_duration: DEFAULT_PASS_DURATION,
            pause: Duration::from_millis(200),
        }
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
    thresholds: PackingThresholds,
    /// Start of the pass, in ms and by this process's monotonic clock.
    now: i64,
    begin: Moment,
}
