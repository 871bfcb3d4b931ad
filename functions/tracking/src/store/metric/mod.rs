//! Metrics of runs.

mod chart;
mod history;
mod log;

pub use history::{AskedRun, SampleRange};
pub(crate) use history::{points_in_answer, points_on_page};
