//! A block of traces.

use entities::attributes::{ARCHIVED_SPANS, BEHIND, BLOCK_SPANS, CORE, COUNT, EDITS, HEADS, NEWEST, RELEASED, WRITTEN};
use entities::{StoredTrace, unreadable};
use key_schema::Key;
use mlflow_api::{Error, Result};
use table::{Failure, Item};

use crate::archived_spans::{self, ArchivedGroups};
use crate::columns::{self, TraceColumns};
use crate::compression::decompress;
use crate::document_encoding;
use crate::groups::{self, SpanGroup};
use crate::trace_key::{TraceKey, TracePartition};

/// A block as stored in its item. Its parts are only unpacked on demand.
#[derive(Clone, Debug)]
pub struct Block {
    item: Item,
    partition: TracePartition,
    end: TraceKey,
    newest: i64,
    count: usize,
    groups: Vec<SpanGroup>,
    archived: ArchivedGroups,
}

impl Block {
    /// Reads a block from its item.
    ///
    /// # Errors
    /// Returns an internal error if the item cannot be read.
    pub fn of(item: Item) -> Result<Self> {
        let read = || {
            let key = item.key()?;
            let archived = item.bytes(ARCHIVED_SPANS).map_or(Some(ArchivedGroups::new()), archived_spans::read)?;
            let groups = groups::read(item.bytes(BLOCK_SPANS)?, &archived)?;
            let count = usize::try_from(item.get(COUNT)?).ok()?;
            let spans: usize = groups.iter().map(|group| group.traces).try_fold(0, usize::checked_add)?;
            let (partition, end) = (TracePartition::of_key(&key)?, TraceKey::of_key(&key)?);
            (count > 0 && spans == count).then_some((partition, end, item.get(NEWEST)?, count, groups, archived))
        };
        let Some((partition, end, newest, count, groups, archived)) = read() else {
            return Err(unreadable(&item, "a block"));
        };
        Ok(Self { item, partition, end, newest, count, groups, archived })
    }

    /// Returns the block's key.
    #[must_use]
    pub fn key(&self) -> Key {
        self.partition.block_key(&self.end)
    }

    /// Returns the block's partition.
    #[must_use]
    pub fn partition(&self) -> TracePartition {
        self.partition
    }

    /// Returns the last position in the block's range. It is the position of the trace that was the
    /// block's oldest when the block was created.
    #[must_use]
    pub fn end(&self) -> &TraceKey {
        &self.end
    }

    /// Returns the position where the newer half of a split block ends, if this block is the older
    /// half, and the block was split after `since`, in ms.
    #[must_use]
    pub fn behind(&self, since: i64) -> Option<TraceKey> {
        let written = self.item.get(WRITTEN)?;
        if written > since { self.item.get(BEHIND).and_then(TraceKey::parse) } else { None }
    }

    /// Returns the start time in ms of the newest trace.
    #[must_use]
    pub fn newest(&self) -> i64 {
        self.newest
    }

    /// Returns the number of traces.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the version of the block, a number that differs between versions.
    #[must_use]
    pub fn edits(&self) -> i64 {
        self.item.get(EDITS).unwrap_or_default()
    }

    /// Checks whether the table contains no other copies of the documents and spans of those traces
    /// that have no mark, except for spans that the block does not contain.
    #[must_use]
    pub fn is_released(&self) -> bool {
        self.item.has(RELEASED)
    }

    /// Returns the size of the block's item in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.item.size()
    }

    /// Returns the groups that contain the spans of the traces, newest first.
    #[must_use]
    pub fn groups(&self) -> &[SpanGroup] {
        &self.groups
    }

    /// Checks whether the block contains the spans of the trace at a place. Returns `None` if it does not
    /// contain the trace.
    ///
    /// # Errors
    /// Returns an internal error if the columns cannot be read.
    pub(crate) fn has_spans_of(&self, place: &TraceKey) -> Result<Option<bool>> {
        let Some(at) = self.core()?.iter().position(|trace| trace.place == *place) else { return Ok(None) };
        let mut last = 0;
        let group = self.groups.iter().find(|group| {
            last += group.traces;
            at < last
        });
        Ok(Some(group.is_some_and(|group| group.digest.is_some())))
    }

    /// Returns the archived spans of the block.
    #[must_use]
    pub fn archived(&self) -> &ArchivedGroups {
        &self.archived
    }

    /// Returns the columns of the block's traces that overviews need, newest first.
    ///
    /// # Errors
    /// Returns an internal error if the columns cannot be read.
    pub fn core(&self) -> Result<Vec<TraceColumns>> {
        let read = || {
            let traces = columns::read(&decompress(self.item.bytes(CORE)?)?)?;
            let newest = traces.first()?.place.time;
            let is_within = traces.last()?.place <= self.end;
            (traces.len() == self.count && newest == self.newest && is_within).then_some(traces)
        };
        read().ok_or_else(|| unreadable(&self.item, "the columns of a block"))
    }

    /// Returns the documents of the block's traces, newest first.
    ///
    /// # Errors
    /// Returns an internal error if the documents cannot be read.
    pub fn traces(&self) -> Result<Vec<StoredTrace>> {
        let core = self.core()?;
        let read = || {
            let documents = decompress(self.item.bytes(HEADS)?)?;
            document_encoding::read(&documents, core.iter().map(|trace| &trace.place.trace))
        };
        read().ok_or_else(|| unreadable(&self.item, "the documents of a block"))
    }
}

/// Converts the error for an unreadable item into a failure of the table.
#[expect(clippy::needless_pass_by_value, reason = "`map_err` hands it over")]
pub(crate) fn failed(error: Error) -> Failure {
    Failure::Unexpected(error.to_string())
}
