//! Experiments: lifecycle, tags and searches.

mod lifecycle;
mod list_entry;
mod search;
mod search_criteria;
mod tag;
mod time_lists;

pub use lifecycle::NewExperiment;
pub use search::ExperimentSearch;
pub(crate) use tag::too_many_custom_views;
