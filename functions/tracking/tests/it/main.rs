//! The tracking function as its clients see it, over an engine that throttles, loses responses and
//! lags behind.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod absent;
mod attributes;
mod calls;
mod capacity;
mod charts;
mod conformance;
mod cost;
mod creations;
mod documents;
mod experiment_deletion;
mod experiment_lists;
mod expressions;
mod faults;
mod generated;
mod history;
mod indexed;
mod indexed_search;
mod indexes;
mod inputs;
mod journal;
mod layout;
mod locations;
mod logged_model_artifacts;
mod logged_models;
mod malformed;
mod measured_models;
mod names;
mod packing;
mod paging;
mod params;
mod run_deletion;

mod search_semantics;
mod server;
mod table_requests;
mod trace_retention;
mod wide_runs;

/// Without it, such tests spent a fifth of their time in libc's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
