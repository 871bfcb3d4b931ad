//! Experiments.

mod lifecycle;
mod search;
mod tag;

pub use lifecycle::NewExperiment;
pub use search::ExperimentSearch;
pub(crate) use tag::too_many_custom_views;
