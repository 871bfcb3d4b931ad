//! Experiments: lifecycle, tags and searches.

mod items;
mod lifecycle;
mod list_entry;
mod search;
mod search_criteria;
mod tag;
mod time_lists;

pub use items::{ExperimentItems, StoredExperiment, name_key as experiment_name_key};
pub use lifecycle::NewExperiment;
pub use search::ExperimentSearch;
pub(crate) use tag::too_many_custom_views;
