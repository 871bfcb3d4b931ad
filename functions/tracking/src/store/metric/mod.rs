//! Metrics of runs: logging, histories and charts.

mod chart;
mod history;
mod log;

pub use chart::SampleRange;
pub use history::AskedRun;
pub(crate) use history::{points_in_answer, points_on_page};
