//! Access to the tracking domain's data in the table. There is one folder per resource, and the
//! names of methods start with the resource.

mod experiment;
mod generated_names;
mod log_batch;
mod logged_model;
mod metric;
mod run;
mod run_search;
mod shown_archival;
#[expect(clippy::module_inception, reason = "the store itself, which the other files use")]
mod store;
mod trace_archival;

pub(crate) use experiment::too_many_custom_views;
pub use experiment::{ExperimentItems, ExperimentSearch, NewExperiment, StoredExperiment, experiment_name_key};
pub use log_batch::{LogBatchData, LoggedMetric, MeasuredModel, ModelLocations};
pub(crate) use logged_model::missing_model;
pub use logged_model::{
    LoggedModelPoint, LoggedModelSearch, NewLoggedModel, StoredLoggedModel, logged_model_metric_items,
};
pub use metric::{RequestedRun, SampleRange};
pub(crate) use metric::{points_in_response, points_on_page};
pub use run::{
    DatasetItems, MAX_DOCUMENT_POINT_BYTES, NewRun, NewRunItems, RunChange, RunStage, StoredRun, dataset_contexts,
    dataset_items, read_dataset,
};
pub(crate) use run_search::known_experiments;
pub use run_search::{RunSearch, SearchBounds};
pub use store::Store;
