//! Finds the runs of a page among candidates.

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
pub(super) use run_finder::Finder;
pub(super) use run_source::RunToRead;
