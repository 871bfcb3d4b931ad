//! Logged models: lifecycle, metrics and searches.

mod lifecycle;
mod metrics;
mod search;
mod search_criteria;

pub use lifecycle::NewLoggedModel;
pub use metrics::LoggedModelPoint;
pub(crate) use metrics::missing_model;
pub use search::LoggedModelSearch;
