//! Pointers to packed traces. When a trace has been packed, a pointer replaces its document, because
//! the block that covers the trace's place contains the document (`docs/design/traces-at-rest.md`).

use std::collections::HashMap;
use std::sync::Arc;

use key_schema::{Key, rows};
use mlflow_api::{ExperimentId, Result, TraceId};
use table::{Item, Table, number, text};

use crate::attributes::{
    ASSESSMENTS, CLIENT_REQUEST, EDITS, EXPERIMENT, IMPORTED, IN_BLOCK, MARKED_AT, METADATA, SHARD, START_TIME, STATE,
    TAGS,
};
use crate::client_request::client_request_entry;
use crate::trace::{POINTER, StoredTrace};
use crate::trace_stub::TraceStub;
use crate::unreadable_item::unreadable;

/// Attributes of every document that a pointer does not have.
const DOCUMENT_ATTRIBUTES: [&str; 5] =
    [STATE.name(), TAGS.name(), METADATA.name(), ASSESSMENTS.name(), MARKED_AT.name()];
/// Value of [`IN_BLOCK`] in the document of a trace that was packed before it was changed.
const CHANGED: i64 = 2;

/// Pointer to a packed trace. It contains the trace's place and experiment. Cheap to clone.
#[derive(Clone, Debug, PartialEq)]
pub struct TracePointer {
    id: TraceId,
    experiment: ExperimentId,
    item: Arc<Item>,
}

impl TracePointer {
    /// Returns the item that replaces the document of a trace once a block contains the document.
    /// Its edit counter is that of the document plus one, so that a writer that has read the
    /// document does not overwrite the pointer by mistake.
    #[must_use]
    pub fn item(document: &StoredTrace) -> Item {
        let mut item = Item::new(rows::Trace::key(document.id()))
            .with(EXPERIMENT, text(document.experiment().to_string()))
            .with(START_TIME, number(document.request_time()))
            .with(EDITS, number(document.edits().saturating_add(1)))
            .with(IN_BLOCK, number(POINTER));
        if document.shard() > 0 {
            item = item.with(SHARD, number(document.shard()));
        }
        match document.client_request() {
            // Searches by the client's request ID find the trace by this index entry.
            Some(request) => item.with(CLIENT_REQUEST, text(request)).indexed(client_request_entry(
                request,
                document.experiment(),
                document.id(),
            )),
            None => item,
        }
    }

    /// Reads the pointer from an item under a trace's key. Returns `None` if the item is not a
    /// pointer.
    #[must_use]
    pub fn of(item: &Item) -> Option<Self> {
        if item.get(IN_BLOCK) != Some(POINTER) {
            return None;
        }
        let id = rows::Trace::parse(&item.key()?)?.trace;
        Some(Self { id, experiment: item.get(EXPERIMENT)?, item: Arc::new(item.clone()) })
    }

    /// Returns the trace's ID.
    #[must_use]
    pub fn id(&self) -> &TraceId {
        &self.id
    }

    /// Returns the trace's experiment.
    #[must_use]
    pub fn experiment(&self) -> ExperimentId {
        self.experiment
    }

    /// Returns the start time in ms.
    #[must_use]
    pub fn request_time(&self) -> i64 {
        self.item.get(START_TIME).unwrap_or_default()
    }

    /// Returns the number of the partition, among those of the trace's day, that contains the block.
    #[must_use]
    pub fn shard(&self) -> u32 {
        self.item.get(SHARD).unwrap_or_default()
    }

    /// Returns the edit counter of the pointer.
    #[must_use]
    pub fn edits(&self) -> i64 {
        self.item.get(EDITS).unwrap_or_default()
    }

    /// Returns the trace that this pointer stands for, given a trace in a block. Returns `None` if
    /// the block contains another version of the trace, or another trace.
    #[must_use]
    pub fn resolve(&self, packed: &StoredTrace) -> Option<StoredTrace> {
        let is_it = *packed.id() == self.id
            && packed.experiment() == self.experiment
            && packed.edits().saturating_add(1) == self.edits();
        let trace = is_it.then(|| StoredTrace::behind_pointer(packed))?;
        // An import that replaces the trace records this in the pointer.
        Some(match self.item.value(IMPORTED) {
            Some(imported) => trace.with_import(imported.clone()),
            None => trace,
        })
    }
}

impl StoredTrace {
    /// Returns a packed trace as the document that a change of the trace is based on, given its
    /// document in a block that is the only place of the document.
    #[must_use]
    pub fn behind_pointer(packed: &Self) -> Self {
        let edits = packed.edits().saturating_add(1);
        let item = packed.item().clone().with(EDITS, number(edits)).with(IN_BLOCK, number(CHANGED));
        packed.with_item(item, true)
    }

    /// Checks whether the block that covers the trace's place may contain spans of the trace.
    #[must_use]
    pub fn has_packed_spans(&self) -> bool {
        self.item().has(IN_BLOCK)
    }
}

/// The item under a trace's key as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub enum TraceRow {
    /// The document of a trace.
    Document(StoredTrace),
    /// The pointer to a packed trace.
    Pointer(TracePointer),
    /// A stub that was written before the trace arrived.
    Stub(TraceStub),
}

impl TraceRow {
    /// Reads an item under a trace's key.
    ///
    /// # Errors
    /// Returns an internal error if the item cannot be read.
    pub fn of(item: Item) -> Result<Self> {
        if let Some(stub) = TraceStub::of(&item) {
            return Ok(Self::Stub(stub));
        }
        if item.get(IN_BLOCK) == Some(POINTER) {
            return TracePointer::of(&item).map(Self::Pointer).ok_or_else(|| unreadable(&item, "a pointer to a trace"));
        }
        // The table does not check these attributes, because pointers lack them.
        let is_whole = DOCUMENT_ATTRIBUTES.iter().all(|name| item.0.contains_key(*name));
        if !is_whole {
            return Err(unreadable(&item, "a trace"));
        }
        StoredTrace::of(item).map(Self::Document)
    }
}

/// A trace as it is stored under its key: its document, or the pointer to the block with its document.
/// Cheap to clone.
#[derive(Clone, Debug, PartialEq)]
pub enum LocatedTrace {
    /// The document of a trace.
    Document(StoredTrace),
    /// The pointer to a packed trace.
    Pointer(TracePointer),
}

impl LocatedTrace {
    /// Returns the trace's ID.
    #[must_use]
    pub fn id(&self) -> &TraceId {
        match self {
            Self::Document(trace) => trace.id(),
            Self::Pointer(pointer) => pointer.id(),
        }
    }

    /// Returns the trace's experiment.
    #[must_use]
    pub fn experiment(&self) -> ExperimentId {
        match self {
            Self::Document(trace) => trace.experiment(),
            Self::Pointer(pointer) => pointer.experiment(),
        }
    }

    /// Returns the start time in ms.
    #[must_use]
    pub fn request_time(&self) -> i64 {
        match self {
            Self::Document(trace) => trace.request_time(),
            Self::Pointer(pointer) => pointer.request_time(),
        }
    }
}

/// Returns those of the given traces that exist, without reading the blocks of packed ones. Stubs are
/// skipped. Takes one request per hundred traces, and one read unit per 4 KB of each item.
///
/// # Errors
/// Returns failures of the table, and an internal error if an item cannot be read.
pub async fn locate_traces(table: &Table, ids: &[&TraceId]) -> Result<HashMap<TraceId, LocatedTrace>> {
    let rows = read_trace_rows(table, ids).await?;
    let located = rows.into_iter().filter_map(|(id, row)| match row {
        TraceRow::Document(trace) => Some((id, LocatedTrace::Document(trace))),
        TraceRow::Pointer(pointer) => Some((id, LocatedTrace::Pointer(pointer))),
        TraceRow::Stub(_) => None,
    });
    Ok(located.collect())
}

/// Returns the items under the keys of the given traces, as they are stored. Takes one request per
/// hundred traces, and one read unit per 4 KB of each item.
pub async fn read_trace_rows(table: &Table, ids: &[&TraceId]) -> Result<HashMap<TraceId, TraceRow>> {
    let keys: Vec<Key> = ids.iter().map(|id| rows::Trace::key(id)).collect();
    let items: Vec<Item> = if let [key] = keys.as_slice() {
        // A single item is read with `GetItem`, the request with the lowest latency.
        table.get(key).await?.into_iter().collect()
    } else {
        table.get_many(&keys).await?.into_values().collect()
    };
    let rows = items.into_iter().map(|item| {
        let id = item.key().as_ref().and_then(rows::Trace::parse).map(|row| row.trace);
        let id = id.ok_or_else(|| unreadable(&item, "a trace"))?;
        TraceRow::of(item).map(|row| (id, row))
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use mlflow_api::traces::TraceState;
    use table::{Map, map};

    use super::*;

    fn document() -> StoredTrace {
        let map = || map(Map::new());
        let item = Item::new(rows::Trace::key(&TraceId::new(7)))
            .with(EXPERIMENT, text("3"))
            .with(START_TIME, number(1_000))
            .with(STATE, text(TraceState::Ok.name()))
            .with(TAGS, map())
            .with(METADATA, map())
            .with(ASSESSMENTS, map())
            .with(MARKED_AT, number(5))
            .with(SHARD, number(2))
            .with(EDITS, number(41));
        StoredTrace::of(item).unwrap()
    }

    #[test]
    fn a_pointer_leads_to_the_version_that_it_replaced() {
        let document = document();
        let item = TracePointer::item(&document);
        let TraceRow::Pointer(pointer) = TraceRow::of(item.clone()).unwrap() else { panic!("not a pointer") };
        assert_eq!((pointer.request_time(), pointer.shard(), pointer.edits()), (1_000, 2, 42));
        let resolved = pointer.resolve(&document).unwrap();
        assert_eq!((resolved.edits(), resolved.marked_at(), resolved.is_behind_pointer()), (42, 5, true));
        assert!(resolved.has_packed_spans() && !document.has_packed_spans());
        let later = StoredTrace::of(document.item().clone().with(EDITS, number(42))).unwrap();
        assert_eq!(pointer.resolve(&later), None);
        assert!(StoredTrace::of(item).is_err(), "a pointer is not a document");
    }

    #[test]
    fn a_document_without_one_of_its_attributes_is_unreadable() {
        assert!(TraceRow::of(document().item().clone()).is_ok());
        for name in DOCUMENT_ATTRIBUTES {
            let mut item = document().item().clone();
            item.0.remove(name);
            assert!(TraceRow::of(item).is_err(), "{name}");
        }
    }
}
