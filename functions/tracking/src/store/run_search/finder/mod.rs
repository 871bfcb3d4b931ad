//! Finds the runs of a page among candidates.
//!
//! Candidates of all experiments are merged in one order ([`MergedSources`](merged_sources)) and
//! taken in batches until the page is full ([`fill_page`], [`progress`]). If few of them pass,
//! further lists narrow them down ([`list_intersection`]). Each run is read from its copy or its
//! documents ([`run_source`], [`batch_reader`]), checked against the whole filter, and sorted
//! ([`run_collector`]).

mod batch_reader;
mod fill_page;
mod found_runs;
mod gathered_runs;
mod list_intersection;
mod merged_sources;
mod progress;
mod run_collector;
mod run_finder;
mod run_source;

pub(super) use found_runs::FoundRuns;
pub(super) use run_finder::RunFinder;
pub(super) use run_source::{RunSource, RunToRead};
