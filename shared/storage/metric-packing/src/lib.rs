//! Packs the journals of runs: points that calls have added go into metrics documents, segments
//! and chart rows.
//!
//! `docs/run-metrics.md` tells the protocol. Requests add to journals (`functions/tracking`), and
//! readers merge journal and documents (the crate `entities`). Only the indexer packs. It says when
//! ([`is_due`]), and calls [`pack()`].
//!
//! A crate of its own, and not a part of `entities`: functions that answer requests do without it.

mod charts;
mod pack;
mod portion;
mod sealing;

pub use pack::{Packed, is_due, pack};
