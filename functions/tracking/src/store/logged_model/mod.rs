//! Logged models: lifecycle, metrics and searches.

mod items;
mod lifecycle;
mod metrics;
mod search;
mod search_criteria;

pub use items::{StoredLoggedModel, logged_model_metric_items};
pub use lifecycle::NewLoggedModel;
pub use metrics::LoggedModelPoint;
pub(crate) use metrics::missing_model;
pub use search::LoggedModelSearch;
