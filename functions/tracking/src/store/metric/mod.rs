//! Metrics of runs: logging, histories and charts.

mod chart;
mod history;
mod history_page;
mod metric_logging;

pub use chart::SampleRange;
pub use history::RequestedRun;
pub(crate) use history::{points_in_response, points_on_page};
