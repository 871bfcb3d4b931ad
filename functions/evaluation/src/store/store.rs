//! The store of the evaluation domain, and its configuration.

use std::time::Duration;

use access::{AuthorizerWrites, Scope};
use entities::experiments::{ExperimentLeases, check_is_active};
use mlflow_api::tracking::LifecycleStage;
use mlflow_api::{ExperimentId, Result};
use table::Table;

/// The evaluation domain's store. Cheap to clone. A process has one.
#[derive(Clone)]
pub struct Store {
    pub(super) table: Table,
    pub(super) experiments: ExperimentLeases,
    pub(super) authorizer_writes: AuthorizerWrites,
}

impl Store {
    /// Creates a store over the table.
    #[must_use]
    pub fn new(table: Table) -> Self {
        Self::with_lease(table, entities::experiments::LEASE_DURATION)
    }

    /// Creates a store with leases on experiments of another length. All processes that share a
    /// table must use the same length.
    #[must_use]
    pub fn with_lease(table: Table, lease: Duration) -> Self {
        Self {
            experiments: ExperimentLeases::new(table.clone(), lease),
            table,
            authorizer_writes: AuthorizerWrites::nothing(),
        }
    }

    /// Returns the experiment that a request refers to, and fails unless it is active. Takes one
    /// request, or none while a lease on the experiment lasts.
    pub(super) async fn active_experiment(&self, id: ExperimentId) -> Result<ExperimentId> {
        let state = self.experiments.state(id).await?.ok_or_else(|| id.not_found())?;
        check_is_active(id, state.stage)?;
        Ok(id)
    }

    /// Returns the experiment of label schemas, review queues or issues, and fails unless it is
    /// active. A deleted experiment is reported as missing, as in MLflow. Takes one request, or none
    /// while a lease on the experiment lasts.
    pub(super) async fn reviewed_experiment(&self, id: ExperimentId) -> Result<ExperimentId> {
        let state = self.experiments.state(id).await?;
        state.filter(|state| state.stage == LifecycleStage::Active).ok_or_else(|| id.not_found())?;
        Ok(id)
    }
}

impl service::DomainStore for Store {
    fn table(&self) -> &Table {
        &self.table
    }

    fn for_request(&self, scope: &Scope) -> Self {
        Self { authorizer_writes: scope.authorizer_writes().clone(), ..self.clone() }
    }
}
