//! A block of traces.

use entities::attributes::{BEHIND, BLOCK_SPANS, CORE, COUNT, EDITS, HEADS, NEWEST, WRITTEN};
use entities::{StoredTrace, unreadable};
use key_schema::Key;
use mlflow_api::{Error, Result};
use table::{Failure, Item};

use crate::columns::{self, CoreTrace};
use crate::documents;
use crate::frame::decompress;
use crate::groups::{self, Group};
use crate::trace_key::{TraceKey, TracePartition};

/// A block, as its item has it: nothing is unpacked before it is asked for.
#[derive(Clone, Debug)]
pub struct Block {
    item: Item,
    partition: TracePartition,
    end: TraceKey,
    newest: i64,
    count: usize,
    groups: Vec<Group>,
}

impl Block {
    /// The block of an item.
    ///
    /// # Errors
    /// An internal one, if it cannot be read.
    pub fn of(item: Item) -> Result<Self> {
        let read = || {
            let key = item.key()?;
            let groups = groups::read(item.bytes(BLOCK_SPANS)?)?;
            let count = usize::try_from(item.get(COUNT)?).ok()?;
            let spans: usize = groups.iter().map(|group| group.traces).try_fold(0, usize::checked_add)?;
            let (partition, end) = (TracePartition::of_key(&key)?, TraceKey::of_key(&key)?);
            (count > 0 && spans == count).then_some((partition, end, item.get(NEWEST)?, count, groups))
        };
        let Some((partition, end, newest, count, groups)) = read() else { return Err(unreadable(&item, "a block")) };
        Ok(Self { item, partition, end, newest, count, groups })
    }

    /// Its key.
    #[must_use]
    pub fn key(&self) -> Key {
        self.partition.block_key(&self.end)
    }

    /// Its partition.
    #[must_use]
    pub fn partition(&self) -> TracePartition {
        self.partition
    }

    /// Up to where it owns the places, itself included: its oldest trace is there, or was when the block was made.
    #[must_use]
    pub fn end(&self) -> &TraceKey {
        &self.end
    }

    /// Where the newer half ends, if this block was cut in two after this time, in ms.
    #[must_use]
    pub fn behind(&self, since: i64) -> Option<TraceKey> {
        let written = self.item.get(WRITTEN)?;
        if written > since { self.item.get(BEHIND).and_then(TraceKey::parse) } else { None }
    }

    /// When the newest of its traces began, in ms.
    #[must_use]
    pub fn newest(&self) -> i64 {
        self.newest
    }

    /// How many traces it has.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Tells this state of the block from others.
    #[must_use]
    pub fn edits(&self) -> i64 {
        self.item.get(EDITS).unwrap_or_default()
    }

    /// How many bytes it takes, packed.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.item.size()
    }

    /// Where the spans of its traces are, newest first.
    #[must_use]
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The columns of its traces for overviews, newest first.
    ///
    /// # Errors
    /// An internal one, if it cannot be read.
    pub fn core(&self) -> Result<Vec<CoreTrace>> {
        let read = || {
            let traces = columns::read(&decompress(self.item.bytes(CORE)?)?)?;
            let newest = traces.first()?.place.time;
            let is_within = traces.last()?.place <= self.end;
            (traces.len() == self.count && newest == self.newest && is_within).then_some(traces)
        };
        read().ok_or_else(|| unreadable(&self.item, "the columns of a block"))
    }

    /// The documents of its traces, newest first.
    ///
    /// # Errors
    /// An internal one, if they cannot be read.
    pub fn traces(&self) -> Result<Vec<StoredTrace>> {
        let core = self.core()?;
        let read = || {
            let documents = decompress(self.item.bytes(HEADS)?)?;
            documents::read(&documents, core.iter().map(|trace| &trace.place.trace))
        };
        read().ok_or_else(|| unreadable(&self.item, "the documents of a block"))
    }
}

/// The error about an unreadable item, as a failure of the table.
#[expect(clippy::needless_pass_by_value, reason = "`map_err` hands it over")]
pub(crate) fn failed(error: Error) -> Failure {
    Failure::Unexpected(error.to_string())
}
