//! The tracking function as its clients see it, over an engine that throttles, loses responses and
//! lags behind.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod artifact_locations;
mod attributes;
mod calls;
mod capacity;
mod charts;
mod conformance;
mod constant_costs;
mod creations;
mod documents;
mod experiment_deletion;
mod experiment_lists;
mod experiment_names;
mod expressions;
mod generated;
mod history;
mod indexed_search;
mod indexed_site;
mod indexes;
mod journal;
mod logged_model_artifacts;
mod logged_models;
mod model_metrics;
mod params;
mod rejected_requests;
mod run_deletion;
mod run_faults;
mod run_inputs;
mod run_packing;
mod search_pages;
mod table_layout;
mod ui_placeholders;

mod search_semantics;
mod server;
mod table_requests;
mod trace_archival;
mod trace_retention;
mod wide_runs;

/// Replaces libc's allocator, because tests with an embedded engine spent a fifth of their time in
/// it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
