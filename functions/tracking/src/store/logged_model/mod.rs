//! Logged models: lifecycle, metrics and searches.

mod lifecycle;
mod metrics;
mod search;
mod wanted;

pub use lifecycle::NewLoggedModel;
pub use metrics::ModelMetric;
pub(crate) use metrics::missing_model;
pub use search::LoggedModelSearch;
