//! Stubs of traces. A stub stands for a trace that clients refer to before the trace itself
//! arrives.
//!
//! Clients export traces in the background, so a client may link a trace to a run before the trace
//! is stored. Such links are kept in a stub under the trace's own key. The request that creates the
//! trace's document then finds them without another read (`docs/adr/0042-early-links.md`).

use key_schema::rows;
use mlflow_api::traces::TraceState;
use mlflow_api::{ExperimentId, TraceId};
use table::{Item, Map, bytes_set, map, number, text};

use crate::attributes::{ASSESSMENTS, EDITS, EXPERIMENT, EXPIRES, MARKED_AT, METADATA, RUNS, START_TIME, STATE, TAGS};
use crate::trace::{StoredTrace, texts};

/// Stub of a trace that was linked before it arrived. Stubs are never shown to clients.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceStub {
    runs: Vec<String>,
    edits: i64,
}

impl TraceStub {
    /// Creates the stub of a trace that is linked to a run of an experiment. `edits` is a random
    /// number, and `expires` is a time in seconds.
    #[must_use]
    pub fn item(trace: &TraceId, run: &str, experiment: ExperimentId, edits: i64, expires: i64) -> Item {
        let empty = || map(Map::new());
        // The stub has every attribute of a document, because earlier versions cannot read an item that
        // lacks one of them.
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

    /// Reads the stub from an item under a trace's key. Returns `None` if the item is not a stub.
    #[must_use]
    pub fn of(item: &Item) -> Option<Self> {
        item.has(EXPIRES).then(|| Self { runs: texts(item, RUNS), edits: item.get(EDITS).unwrap_or_default() })
    }

    /// Returns the runs that the trace was linked to.
    #[must_use]
    pub fn runs(&self) -> &[String] {
        &self.runs
    }

    /// Returns the stub's edit counter. It starts at a random number, and each write to the stub
    /// increments it.
    #[must_use]
    pub fn edits(&self) -> i64 {
        self.edits
    }
}

/// The item under a trace's key, with the document in place of a pointer.
#[derive(Clone, Debug, PartialEq)]
pub enum TraceItem {
    /// The trace.
    Trace(StoredTrace),
    /// A stub that was written before the trace arrived.
    Stub(TraceStub),
}

impl TraceItem {
    /// Returns the trace, or `None` for a stub.
    #[must_use]
    pub fn trace(self) -> Option<StoredTrace> {
        if let Self::Trace(trace) = self { Some(trace) } else { None }
    }
}
