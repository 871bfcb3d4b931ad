//! Packs traces into blocks, which searches read instead of documents
//! (`docs/adr/0034-blocks-of-traces.md`).
//!
//! When the stream delivers marks, [`packing_requests`] schedules their partition to be packed some
//! minutes later. At that time, a tick requests packing, and the stream delivers this request to
//! its consumer, so that no other process packs the partition at the same time. [`packing_pass`]
//! groups the partition's marks by the blocks whose ranges contain them ([`block_ends`]).
//! [`new_blocks`] creates new blocks, and [`block_rewrite`] changes existing ones.
//! [`archived_day`] keeps track of days whose spans have been archived. [`trace_documents`] and
//! [`span_reader`] read the traces, [`block_sizes`] calculates how many of them fit into a block,
//! and [`block_writer`] writes blocks, releases the traces' own copies and deletes marks.
//! [`mark_rate`] counts the marks that a partition receives, and [`add_partitions()`] gives a day
//! more partitions.
//!
//! One invariant holds at any moment, no matter where a pass is interrupted: for each trace, either
//! there is a mark at its position in the time order, or the block whose range contains the
//! position has the current version of the trace. Therefore spans are written first, and then the
//! block. After that, pointers replace the documents of the packed traces, and the spans under the
//! traces' keys are deleted (from layout 8 on). The marks are deleted after that, each on condition
//! that it has not been put again. A mark is packed only if it is quiet, that is, if it was put some
//! minutes ago. A mark that has spans is not deleted while the document of its trace may refer to it.
//! A lock excludes a second packer, and also the removal of the experiment or of
//! expired traces.

mod archived_day;
mod block_ends;
mod block_rewrite;
mod block_sizes;
mod block_writer;
mod mark_rate;
mod marks;
mod new_blocks;
mod packing_pass;
mod packing_requests;
mod partition_growth;
mod span_reader;
mod trace_documents;

use artifact_store::Archive;
use std::time::Duration;

use entities::Moment;
use table::Table;
use trace_blocks::{MAX_TRACES, TracePartition};

pub(crate) use mark_rate::MarkTimes;
pub(crate) use packing_pass::pack_partition;
pub(crate) use packing_requests::{PackingSchedule, PackingScope, packing_request, partition_of_row, row_of};
pub(crate) use partition_growth::add_partitions;

/// Maximum number of marks of a block that are processed together. Together with the block's
/// existing traces, they result in no more blocks than fit into a transaction.
const MAX_MARKS_PER_BLOCK: usize = 128;
/// Default limit on the duration of a pass.
const DEFAULT_PASS_DURATION: Duration = Duration::from_secs(20);
/// Number of concurrent requests.
const CONCURRENCY: usize = 16;

/// The thresholds for packing traces. Tests use smaller values.
#[derive(Clone, Copy, Debug)]
pub struct PackingThresholds {
    /// Minimum number of marks for creating new blocks. If there are fewer, they wait for more.
    pub min_new_marks: usize,
    /// Minimum number of marks within a block for rewriting the block. If there are fewer, they
    /// wait for more.
    pub min_changed_marks: usize,
    /// Maximum number of traces in a block.
    pub max_traces: usize,
    /// Maximum duration of a pass. The stream's records about other entities wait until the pass
    /// ends.
    pub max_duration: Duration,
    /// Pause after each block, because clients write to the same partition, which handles 1,000
    /// write units per second.
    pub pause: Duration,
}

impl Default for PackingThresholds {
    fn default() -> Self {
        // With these thresholds, a block has about 30 KB. In the worst case, packing costs one
        // write unit per trace, and readers have to read the documents of 15 marked traces per
        // block.
        Self {
            min_new_marks: 32,
            min_changed_marks: 16,
            max_traces: MAX_TRACES,
            max_duration: DEFAULT_PASS_DURATION,
            pause: Duration::from_millis(200),
        }
    }
}

impl PackingThresholds {
    /// Returns the thresholds for packing traces even if they are few.
    #[must_use]
    pub(crate) fn for_few_traces(self) -> Self {
        Self { min_new_marks: 1, min_changed_marks: 1, ..self }
    }
}

/// A partition that is being packed.
struct Packer<'a> {
    table: &'a Table,
    /// Where the spans of archived traces are stored.
    archive: &'a Archive,
    partition: TracePartition,
    thresholds: PackingThresholds,
    /// Whether pointers may replace the documents of packed traces, which earlier layouts do not
    /// have.
    releases: bool,
    /// Start of the pass, in ms. `begin` is the start according to this process's monotonic clock.
    now: i64,
    begin: Moment,
}
