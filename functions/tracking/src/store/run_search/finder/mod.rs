//! Finds the runs of a page among candidates.

mod fill_page;
mod found_runs;
mod gathered_runs;
mod list_intersection;
mod merged_sources;
mod progress;
mod run_finder;

pub(super) use found_runs::FoundRuns;
pub(super) use run_finder::{Finder, ReadFrom};
