//! What the tracking domain keeps in the table. One file per resource; methods are named noun first.

mod experiment;
mod experiment_search;
mod experiment_tag;
mod history;
mod log_batch;
mod logged_model;
mod logged_model_metrics;
mod logged_model_search;
mod metric;
mod names;
mod run;
mod run_dataset;
mod run_document;
mod run_lifecycle;
mod run_links;
mod run_read;
mod run_search;
mod run_tag;

use std::sync::Arc;
use std::time::Duration;

pub use experiment::NewExperiment;
pub use experiment_search::ExperimentSearch;
pub(crate) use experiment_tag::too_many_custom_views;
use experiments::Experiments;
pub use history::{AskedRun, SampleRange};
use listing::IndexedFieldsCache;
pub use log_batch::{Batch, LoggedMetric, MeasuredModel, Models};
pub use logged_model::NewLoggedModel;
pub use logged_model_metrics::ModelMetric;
pub(crate) use logged_model_metrics::missing_model;
pub use logged_model_search::LoggedModelSearch;
pub use run::{NewRun, RunChange};
pub use run_search::RunSearch;
pub(crate) use run_search::known_experiments;
use table::Table;

/// The tracking store. Cheap to clone; one a process.
#[derive(Clone)]
pub struct Store {
    table: Table,
    artifact_root: Arc<str>,
    experiments: Experiments,
    indexed_fields: IndexedFieldsCache,
}

impl Store {
    /// A store over the table. Experiments without a location of their own keep their artifacts below `artifact_root`.
    #[must_use]
    pub fn new(table: Table, artifact_root: &str) -> Self {
        Self::with_lease(table, artifact_root, experiments::LEASE)
    }

    /// A store whose leases are of another length; every process on one table needs the same.
    #[must_use]
    pub fn with_lease(table: Table, artifact_root: &str, lease: Duration) -> Self {
        Self {
            experiments: Experiments::new(table.clone(), lease),
            indexed_fields: IndexedFieldsCache::new(table.clone()),
            table,
            artifact_root: artifact_root.into(),
        }
    }

    /// The server's artifact root.
    #[must_use]
    pub fn artifact_root(&self) -> &str {
        &self.artifact_root
    }
}

impl service::Store for Store {
    fn table(&self) -> &Table {
        &self.table
    }
}
