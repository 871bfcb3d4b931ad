//! Packing traces into blocks, which searches read in place of their documents
//! (`docs/adr/0034-blocks-of-traces.md`).
//!
//! The stream brings marks, and [`asks`] has their partition looked at some minutes later. Then a
//! tick asks for packing, and the stream brings that to its consumer, so that no other process
//! packs the partition meanwhile. [`pass`] sorts its marks by the blocks that own their places
//! ([`ends`]). [`append`] makes new blocks, and [`rewrite`] changes existing ones. [`documents`]
//! and [`spans`] read the traces, [`cut`] decides what fits, and [`write`] writes. [`marked`]
//! counts the marks that a partition gets, and [`grow()`] gives a day more partitions.
//!
//! One rule holds at any moment, wherever a pass is cut off. At the place of each trace there is a
//! mark, or the block that owns the place has the trace as it is. So spans are written first, then
//! the block. Then the marks are deleted that were quiet when the traces were read, each on
//! condition that it was not written again. A lock keeps out a second packer, and the removal of
//! the experiment or of traces that are kept no longer.
//!
//! A crate of its own, and not a part of `trace-blocks`: functions that read blocks do without it,
//! and only the indexer may pack (`tests/structure/test_floors.py`).

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

pub use asks::{Asks, asking, partition_of_row, row_of};
pub use grow::grow;
pub use marked::Marked;
pub use pass::{Again, pack_partition};

/// Marks of a block that are dealt with together: with the block's own traces, they make no more blocks than fit into a transaction.
const MOST_WITHIN: usize = 128;
/// How long a pass goes on, unless somebody says otherwise.
const LONGEST: Duration = Duration::from_secs(20);
/// Requests under way at a time.
const AT_ONCE: usize = 16;

/// How much is packed at a time. Tests pack less.
#[derive(Clone, Copy, Debug)]
pub struct Packing {
    /// Marks at which new blocks are made: fewer wait.
    pub least_new: usize,
    /// Marks within a block from which on it is written again: fewer wait.
    pub least_changed: usize,
    /// Traces of a block at most.
    pub most: usize,
    /// How long a pass goes on: the changes of other entities wait for it.
    pub longest: Duration,
    /// Pause after each block: clients write to the same partition, which takes 1,000 write units a second.
    pub rest: Duration,
}

impl Default for Packing {
    fn default() -> Self {
        // A block is about 30 KB: at worst, a trace costs a write unit, and a block has 15 marks that readers read one by one.
        Self { least_new: 32, least_changed: 16, most: MOST_TRACES, longest: LONGEST, rest: Duration::from_millis(200) }
    }
}

/// A mark that is quiet.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mark {
    place: TraceKey,
    /// When it was put, in ms.
    put: i64,
}

/// A partition that is being packed.
struct Packer<'a> {
    table: &'a Table,
    partition: TracePartition,
    sizes: Packing,
    /// When the pass began, in ms, and by this process's own clock.
    now: i64,
    begin: Moment,
}
