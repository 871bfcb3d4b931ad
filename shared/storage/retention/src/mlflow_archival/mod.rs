//! The archival of traces to files, as MLflow does it: the spans of a trace are written to a file
//! `traces.pb` below a location that is configured, and the tags of the trace say so. Traces that are
//! archived without a location are the subject of other code (`docs/adr/0089-mlflow-archival.md`
//! explains the difference).
//!
//! [`experiments`] finds the experiments, [`day_walk`] their traces, and [`trace_archival`] archives
//! one trace:
//!
//! 1. The trace is *claimed*: its mark is replaced, unless a request has written the mark within the
//!    last three minutes. A writer that begins later replaces the mark before it relies on anything.
//! 2. The spans are read, and the file is written.
//! 3. What remains of the spans in the table, the fields that filters use, is written next to them.
//!    Readers ignore it as long as there are whole spans.
//! 4. One transaction changes the document and deletes the spans that were read, on condition that
//!    the document has not changed and the mark is still the claim. Spans that arrived in the
//!    meantime were therefore either read, or their writer sees the changed document and reports an
//!    error.
//!
//! If the process is stopped before step 4, nothing has changed for readers. The next pass overwrites
//! the file. Two processes never archive a trace at the same time, because a claim is not replaced
//! within three minutes, and a process does not use its claim after one minute.
//!
//! A day whose traces are all archived or in progress gets the attribute `filed`, so that later passes
//! skip it. It is examined again once a month, in case traces were added to it or have ended.

mod claim;
mod day_walk;
mod experiments;
mod trace_archival;
