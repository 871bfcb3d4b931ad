//! Blocks of traces. A block packs the quiet traces of a partition together, which are the traces
//! that have not been changed recently. Searches read blocks instead of documents.
//!
//! A [`Block`] contains up to 128 traces in the order of their [`TraceKey`]s. Its range extends
//! from the end of the previous block, exclusive, to its own end, inclusive. A trace is therefore
//! in the range of the first block that ends at or after the trace's key. If a trace has a
//! mark, it may have changed after it was packed, so it is read by its ID. Its version in the block
//! is then used only if a pointer under the trace's key leads to it. Readers
//! therefore read the marks of an interval first, and then its blocks.
//!
//! The indexer decides when traces are packed, and writes the blocks. `functions/traces` reads
//! them. `retention` archives their spans, and removes blocks of expired traces. Writers put a mark
//! before they change a trace. This crate defines the contents of a block
//! and its maximum size (`block_packing.rs`). A [`PartitionLock`] protects a partition while it is
//! being packed. The whole protocol is described in `docs/design/traces-at-rest.md`.

mod archived_spans;
mod block;
mod block_packing;
mod block_reader;
mod bytes;
mod columns;
mod compression;
mod document_encoding;
mod groups;
mod item_encoding;
mod marked_spans;
mod partition_lock;
mod protocol_times;
mod release;
mod span_items;
mod trace_file;
mod trace_key;
mod trace_reader;
mod trace_spans;

pub use archived_spans::{ArchivedGroups, ArchivedRange, GroupError, ReadGroups, joined, objects, read_archived};
pub use block::Block;
pub use block_packing::{
    BlockItems, MAX_BLOCK_BYTES, MAX_TRACE_BYTES, MAX_TRACES, PackedSpans, SpansToPack, TraceToPack, keep_archived,
    pack, room, with_archived,
};
pub use block_reader::{read_block_spans, read_blocks, read_spans_to_pack};
pub use columns::TraceColumns;
pub use groups::SpanGroup;
pub use marked_spans::{
    copy_spans_of_mark, drop_marked_spans, in_mark_key, mark_with_spans, restore_marked_spans, spans_of_mark,
};
pub use partition_lock::{LOCK_DURATION_MS, PartitionLock};
pub use protocol_times::{LOCK_USE_DURATION, MAX_RELIABLE_MARK_AGE, PACKING_DELAY, QUIET_MARK_AGE, SETTLED_SPAN_AGE};
pub use release::{PackedTrace, release_block, release_traces, restore_spans};
pub use span_items::{StoredSpans, span_items};
pub use trace_file::{TraceFile, is_in_file, read_archived_spans, trace_tag};
pub use trace_key::{TraceKey, TracePartition, day_of, is_mark};
pub use trace_reader::{ReadTrace, read_documents, read_trace_item, read_traces, read_with_blocks, resolve_item};
pub use trace_spans::{
    LargeTraceTurn, TraceSpans, has_own_spans, read_few_spans, read_remaining_spans, read_trace_spans,
};
