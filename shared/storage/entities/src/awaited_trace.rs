//! Traces that clients have named before they came.
//!
//! Clients export traces in the background: a trace is linked to a run before it is there. Such
//! links are in a stub under the trace's own key. So a request that makes the document finds them,
//! without another request (`docs/adr/0042-early-links.md`).

use key_schema::rows;
use mlflow_api::traces::TraceState;
use mlflow_api::{ExperimentId, Result, TraceId};
use table::{Item, Map, Table, bytes_set, map, number, text};

use crate::attributes::{ASSESSMENTS, EDITS, EXPERIMENT, EXPIRES, MARKED_AT, METADATA, RUNS, START_TIME, STATE, TAGS};
use crate::trace::{StoredTrace, texts};

/// A trace that was named before it came. It is never shown.
#[derive(Clone, Debug, PartialEq)]
pub struct AwaitedTrace {
    runs: Vec<String>,
    edits: i64,
}

impl AwaitedTrace {
    /// The stub of a trace that is linked to a run of an experiment. `edits` is a random number, `expires` a time in seconds.
    #[must_use]
    pub fn item(trace: &TraceId, run: &str, experiment: ExperimentId, edits: i64, expires: i64) -> Item {
        let empty = || map(Map::new());
        // All that documents have to have: one that lacks something cannot be read.
        Item::new(rows::Trace::key(trace))
            .with(EXPERIMENT, text(experiment.to_string()))
            .with(START_TIME, number(0))
            .with(STATE, text(TraceState::Unspecified.name()))
            .with(TAGS, empty())
            .with(METADATA, empty())
            .with(ASSESSMENTS, empty())
            .with(RUNS, bytes_set([run.as_bytes().to_vec()]))
            .with(MARKED_AT, number(0))
            .with(EDITS, number(edits))
            .with(EXPIRES, number(expires))
    }

    /// That of an item under a trace's key, if it is one.
    #[must_use]
    pub fn of(item: &Item) -> Option<Self> {
        item.has(EXPIRES).then(|| Self { runs: texts(item, RUNS), edits: item.get(EDITS).unwrap_or_default() })
    }

    /// The runs that it was linked to.
    #[must_use]
    pub fn runs(&self) -> &[String] {
        &self.runs
    }

    /// How often it was written, from a random number on.
    #[must_use]
    pub fn edits(&self) -> i64 {
        self.edits
    }
}

/// The item under the key of a trace.
#[derive(Clone, Debug, PartialEq)]
pub enum TraceItem {
    /// The trace.
    Trace(StoredTrace),
    /// A stub, from before it came.
    Awaited(AwaitedTrace),
}

impl TraceItem {
    /// Of an item.
    ///
    /// # Errors
    /// An internal one, if it cannot be read.
    pub fn of(item: Item) -> Result<Self> {
        match AwaitedTrace::of(&item) {
            Some(awaited) => Ok(Self::Awaited(awaited)),
            None => StoredTrace::of(item).map(Self::Trace),
        }
    }

    /// The trace, if it is there.
    #[must_use]
    pub fn trace(self) -> Option<StoredTrace> {
        if let Self::Trace(trace) = self { Some(trace) } else { None }
    }
}

/// The item under the key of a trace, if there is one. One request; a read unit per 4 KB.
pub async fn read_trace_item(table: &Table, id: &TraceId) -> Result<Option<TraceItem>> {
    table.get(&rows::Trace::key(id)).await?.map(TraceItem::of).transpose()
}
