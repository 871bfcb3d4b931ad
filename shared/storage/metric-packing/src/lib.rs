//! Packs the journals of runs: moves points that calls have added into metrics documents, segments
//! and chart rows.
//!
//! The protocol is described in `docs/design/run-metrics.md`. Requests add to journals
//! (`functions/tracking`), and readers merge journal and documents (the crate `entities`). Only the
//! indexer packs. It decides when ([`is_due`]) and calls [`pack()`].
//!
//! Packing is not part of the crate `entities`, because functions that serve requests do not need
//! it.

mod chart_rows;
mod history;
mod journal_batch;
mod pack;
mod sealing;

pub use history::HistoryPacker;
pub use pack::{PackingResult, is_due, pack};
