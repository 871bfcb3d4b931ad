//! Finds the runs on one page of results.
//!
//! The candidates of all experiments are merged in the order of the search
//! ([`MergedSources`](merged_sources)) and taken in batches until the page is full
//! ([`page_filler`], [`search_progress`]). If few candidates pass, further lists narrow them down
//! ([`list_intersection`]). Each run is read from its copy or its documents ([`run_source`],
//! [`batch_reader`]), checked against the whole filter, and sorted ([`run_collector`]).

mod batch_reader;
mod found_runs;
mod gathered_runs;
mod list_intersection;
mod merged_sources;
mod page_filler;
mod run_collector;
mod run_finder;
mod run_source;
mod search_progress;

pub(super) use found_runs::FoundRuns;
pub(super) use run_finder::RunFinder;
pub(super) use run_source::{RunSource, RunToRead};
