//! Blocks of traces: quiet traces of a partition, packed together. Searches read blocks instead of
//! documents.
//!
//! A [`Block`] contains up to 128 traces in the order of their [`TraceKey`]s. It owns all places
//! after the end of the previous block, up to its own end, so the block of a place is the first one
//! that ends there or later. The block's version of a trace only counts if there is no mark at the
//! trace's place. Readers therefore read the marks of an interval first, and then its blocks.
//!
//! The indexer decides when traces are packed, and writes the blocks.
//! `functions/traces` reads them. Writers put a mark before they change a trace. This crate defines
//! the contents of a block and its maximum size (`pack.rs`). A [`PartitionLock`] protects a
//! partition while it is being packed. The whole protocol is described in `docs/design/traces-at-rest.md`.

mod block;
mod bytes;
mod columns;
mod documents;
mod frame;
mod groups;
mod pack;
mod partition_lock;
mod read;
mod times;
mod trace_key;
mod trace_spans;
mod values;

pub use block::Block;
pub use columns::CoreTrace;
pub use groups::Group;
pub use pack::{LARGEST, MOST_TRACES, PackedBlock, PackedSpans, ROOM, SpansToPack, ToPack, pack, room};
pub use partition_lock::{LOCK_LASTS, PartitionLock};
pub use read::{read_block_spans, read_blocks, read_spans_to_pack};
pub use times::{ARRIVED_BEFORE, ASKED_AFTER, LOCK_USE, QUIET, RELIABLE};
pub use trace_key::{TraceKey, TracePartition, day_of};
pub use trace_spans::{TraceSpans, Turn, read_few_spans, read_trace_spans};
