//! Metrics of runs.

mod history;
mod log;

pub use history::{AskedRun, SampleRange};
pub(crate) use log::Series;
