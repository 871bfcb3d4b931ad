//! Finds the runs of a page among candidates.

mod found_runs;
mod gathered_runs;
mod run_finder;

pub(super) use found_runs::FoundRuns;
pub(super) use run_finder::{Finder, ReadFrom};
