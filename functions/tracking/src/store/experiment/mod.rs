//! Experiments: lifecycle, tags and searches.

mod by_time;
mod lifecycle;
mod listed;
mod search;
mod tag;
mod wanted;

pub use lifecycle::NewExperiment;
pub use search::ExperimentSearch;
pub(crate) use tag::too_many_custom_views;
