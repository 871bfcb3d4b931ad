//! Metrics of runs.

mod history;
mod log;

pub(crate) use history::points_on_page;
pub use history::{AskedRun, SampleRange};
pub(crate) use log::Series;
