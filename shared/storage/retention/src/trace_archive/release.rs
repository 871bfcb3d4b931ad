//! Releases the documents and spans of traces that were packed with an earlier layout of the table.
//! Such traces are stored twice: in their block, and in documents and items of spans of their own.

use std::collections::BTreeSet;

use entities::attributes::{EDITS, RELEASED};
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::{Key, rows};
use mlflow_api::{Error, Result, TraceId};
use rand::RngExt;
use table::{Condition, Failure, Item, Query, Update, number};
use trace_blocks::{Block, PackedTrace, TraceKey, release_traces};

use super::partition::{MAX_WRITE_DURATION, PartitionArchiver};

/// Number of traces whose items of spans are read concurrently.
const CONCURRENCY: usize = 16;

impl PartitionArchiver<'_> {
    /// Replaces the documents of a block's traces by pointers and deletes the spans that are stored
    /// with the traces, except for traces that have changed since they were packed. `edits` identifies
    /// the current version of the block. Takes two requests per trace, and costs one read unit and, for
    /// each KB of the document and the spans, one write unit.
    pub(super) async fn release(&self, block: &Block, edits: i64) -> Result<()> {
        let table = &self.retention.table;
        let documents = block.traces()?;
        let groups = block.groups().iter().flat_map(|group| std::iter::repeat_n(group.digest.is_some(), group.traces));
        let reads = documents.iter().zip(groups).map(|(document, is_packed)| async move {
            // Spans that are too large for a block are only stored with their trace.
            if is_packed { self.own_spans(document.id()).await } else { Ok(Vec::new()) }
        });
        let spans: Vec<_> = stream::iter(reads.collect::<Vec<_>>()).buffered(CONCURRENCY).try_collect().await?;
        // Writers put a mark before they add spans. If a trace has no mark now, its spans that were
        // read before are those in the block.
        let marked = self.marked(block).await?;
        if self.begun.age() > MAX_WRITE_DURATION {
            return Err(Error::unavailable("releasing traces takes longer than the lock of their partition"));
        }
        let packed = documents.into_iter().zip(spans).filter(|(document, _)| !marked.contains(&TraceKey::of(document)));
        release_traces(table, packed.map(|(document, spans)| PackedTrace { document, spans }).collect()).await?;
        let next = rand::rng().random_range(1..=i64::MAX);
        let is_as_read = Condition::Equals(EDITS.into(), number(edits));
        let update = Update::new(block.key()).set(RELEASED, number(1)).set(EDITS, number(next)).only_if(is_as_read);
        match table.apply(&update).await {
            // The block was already written by an earlier attempt whose response was lost.
            Err(Failure::Refused { item: Some(item), .. }) if item.get(EDITS) == Some(next) => Ok(()),
            Err(Failure::Refused { .. }) => Err(Error::unavailable("another process is packing the partition")),
            outcome => Ok(outcome?),
        }
    }

    /// Returns the keys of the items with spans that are stored with a trace.
    async fn own_spans(&self, trace: &TraceId) -> Result<Vec<Key>> {
        let spans = Query::of(rows::TraceSpans::all(&self.partition.experiment, trace)).for_removal();
        Ok(self.retention.table.query(spans).await?.iter().filter_map(Item::key).collect())
    }

    /// Returns the places within a block that have marks.
    async fn marked(&self, block: &Block) -> Result<BTreeSet<TraceKey>> {
        let newest = block.core()?.first().map(|trace| trace.place.text());
        let range = self.partition.marks().until(&block.end().text());
        let range = newest.into_iter().fold(range, |range, newest| range.starting(&newest));
        let marks = self.retention.table.query(Query::of(range)).await?;
        Ok(marks.iter().filter_map(|mark| TraceKey::of_key(&mark.key()?)).collect())
    }
}
