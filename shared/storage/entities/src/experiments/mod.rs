//! The data about experiments that every domain needs: whether an experiment exists and is active,
//! and whether its runs may be written to.
//!
//! Deleting or restoring an experiment with any number of runs changes a single item, the
//! experiment's, and increments its **stage version**. A run's item only records the run's own
//! stage, and the version at which that stage was set. If that version is older than the
//! experiment's, the experiment's stage overrides the run's. A run's stage therefore depends on two
//! items, and every write to a run requires the experiment's stage version.
//!
//! Reading the experiment for each write would double the requests of the most frequent call,
//! `log-metric`. Instead, a process may rely on "active, version n" for the duration of a
//! **lease**, which begins when the process starts to read the experiment. The deletion of an
//! experiment only returns once all earlier leases have expired. A call that begins after the
//! deletion has returned therefore sees the deletion, in every process. `docs/adr/0004-leases.md`
//! has the reasoning. [`LEASE_DURATION`] is the duration for experiments and for the runs that a
//! process logs to. Users and grants have leases of their own, in the crate `permissions`.

mod experiment_settings;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::attributes::{STAGE, STAGE_VERSION};
use crate::{ExperimentState, Moment, experiment_state};
use key_schema::rows;
use mlflow_api::tracking::LifecycleStage;
use mlflow_api::{Error, ExperimentId, Result, RunId};
use table::{Condition, Item, Table, number, text};

pub use experiment_settings::forget_settings;

/// How long a process may cache an experiment's lifecycle stage, counted from the start of the
/// read.
pub const LEASE_DURATION: Duration = Duration::from_millis(300);

/// Capacity of the lease cache. When it is full, expired leases are dropped, and then all leases if
/// that is not enough.
const MAX_LEASES: usize = 10_000;

/// The experiments of a table, and this process's leases on their states. Cheap to clone; clones
/// share the leases.
#[derive(Clone)]
pub struct ExperimentLeases {
    table: Table,
    leases: Arc<LeaseCache>,
}

impl ExperimentLeases {
    /// Creates the leases on the experiments of a table, each with this duration. Every process
    /// that uses a table needs the same duration, [`LEASE_DURATION`].
    #[must_use]
    pub fn new(table: Table, lease: Duration) -> Self {
        Self { table, leases: Arc::new(LeaseCache { length: lease, held: Mutex::default() }) }
    }

    /// Returns the experiment's state, from a lease or from the table. Takes at most one request,
    /// which costs one read unit per 4 KB of the experiment.
    pub async fn state(&self, experiment: ExperimentId) -> Result<Option<ExperimentState>> {
        if let Some(state) = self.leases.get(experiment) {
            return Ok(Some(state));
        }
        let since = Moment::now();
        let item = self.table.get(&rows::Experiment::key(&experiment)).await?;
        Ok(item.map(|item| self.keep_lease(experiment, since, &item)))
    }

    /// Returns the experiment's state if this process holds a valid lease on it.
    #[must_use]
    pub fn held(&self, experiment: ExperimentId) -> Option<ExperimentState> {
        self.leases.get(experiment)
    }

    /// Returns the states of several experiments. Experiments that do not exist are left out. Takes
    /// one request per 100 experiments without a lease.
    pub async fn states(&self, experiments: &[ExperimentId]) -> Result<Vec<(ExperimentId, ExperimentState)>> {
        let leased: Vec<_> = experiments.iter().map(|id| (*id, self.leases.get(*id))).collect();
        let unknown = leased.iter().filter(|(_, state)| state.is_none());
        let keys: Vec<_> = unknown.map(|(id, _)| rows::Experiment::key(id)).collect();
        let since = Moment::now();
        let items = self.table.get_many(&keys).await?;
        let states = leased.into_iter().filter_map(|(id, state)| {
            let read = || items.get(&rows::Experiment::key(&id)).map(|item| self.keep_lease(id, since, item));
            Some((id, state.or_else(read)?))
        });
        Ok(states.collect())
    }

    /// Reads the state from an experiment's item and begins a lease on it. `since` is the time when
    /// reading the item began.
    #[expect(clippy::must_use_candidate, reason = "some callers only need the lease")]
    pub fn keep_lease(&self, experiment: ExperimentId, since: Moment, item: &Item) -> ExperimentState {
        let state = experiment_state(item);
        self.leases.keep(experiment, since, &state);
        state
    }

    /// Waits until the leases of all processes on an earlier state of the experiment have expired.
    pub async fn wait_out(&self, experiment: ExperimentId) {
        self.leases.forget(experiment);
        runtime::clock::sleep(self.leases.length).await;
    }
}

/// Leases of this process.
struct LeaseCache {
    length: Duration,
    // A std mutex is sufficient: nothing is awaited while it is held.
    held: Mutex<HashMap<ExperimentId, Lease>>,
}

struct Lease {
    since: Moment,
    state: ExperimentState,
}

impl LeaseCache {
    fn is_valid(&self, lease: &Lease) -> bool {
        lease.since.age() < self.length
    }

    fn get(&self, experiment: ExperimentId) -> Option<ExperimentState> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.get(&experiment).filter(|lease| self.is_valid(lease)).map(|lease| lease.state.clone())
    }

    /// Stores a lease. Only active experiments get leases, because restoring an experiment does not
    /// wait for leases to expire.
    fn keep(&self, experiment: ExperimentId, since: Moment, state: &ExperimentState) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if state.stage == LifecycleStage::Deleted {
            held.remove(&experiment);
            return;
        }
        if held.len() >= MAX_LEASES {
            held.retain(|_, lease| self.is_valid(lease));
            if held.len() >= MAX_LEASES {
                held.clear();
            }
        }
        held.insert(experiment, Lease { since, state: state.clone() });
    }

    fn forget(&self, experiment: ExperimentId) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).remove(&experiment);
    }
}

/// Returns MLflow's error for using a deleted experiment.
pub fn check_is_active(experiment: ExperimentId, stage: LifecycleStage) -> Result<()> {
    match stage {
        LifecycleStage::Active => Ok(()),
        LifecycleStage::Deleted => Err(Error::invalid(format!(
            "The experiment {experiment} must be in the 'active' state. Current state is {}.",
            stage.name()
        ))),
    }
}

/// Returns the condition under which a run's item may be written: the run exists and is active.
#[must_use]
pub fn run_is_active(experiment: &ExperimentState) -> Condition {
    let overruled = Condition::Below(STAGE_VERSION.into(), number(experiment.version));
    let by_itself = |stage: LifecycleStage| {
        Condition::Equals(STAGE.into(), text(stage.name())).and(Condition::Not(Box::new(overruled)))
    };
    Condition::item_exists().and(match experiment.stage {
        LifecycleStage::Active => Condition::Not(Box::new(by_itself(LifecycleStage::Deleted))),
        LifecycleStage::Deleted => by_itself(LifecycleStage::Active),
    })
}

/// Returns MLflow's error for writing to a deleted run.
pub fn check_run_is_active(run: &RunId, stage: LifecycleStage) -> Result<()> {
    match stage {
        LifecycleStage::Active => Ok(()),
        LifecycleStage::Deleted => Err(Error::invalid(format!(
            "The run {run} must be in the 'active' state. Current state is {}.",
            stage.name()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use crate::run_stage;
    use key_schema::Key;

    use super::*;

    fn experiment(stage: LifecycleStage, version: u32) -> ExperimentState {
        ExperimentState { stage, version, artifact_location: String::new() }
    }

    fn run(own: Option<(LifecycleStage, u32)>) -> Item {
        let item = Item::new(Key { pk: String::new(), sk: String::new() });
        match own {
            Some((stage, version)) => item.with(STAGE, text(stage.name())).with(STAGE_VERSION, number(version)),
            None => item,
        }
    }

    #[test]
    fn the_experiment_overrules_what_happened_to_the_run_before() {
        use LifecycleStage::{Active, Deleted};
        for (own, of_experiment, effective) in [
            (None, (Active, 0), Active),
            (None, (Deleted, 1), Deleted),
            (Some((Deleted, 0)), (Active, 0), Deleted),
            (Some((Deleted, 0)), (Deleted, 1), Deleted),
            (Some((Deleted, 0)), (Active, 2), Active),
            (Some((Active, 1)), (Deleted, 1), Active),
            (Some((Deleted, 2)), (Active, 0), Deleted),
            (Some((Active, 1)), (Active, 2), Active),
            (Some((Active, 2)), (Deleted, 3), Deleted),
        ] {
            let state = experiment(of_experiment.0, of_experiment.1);
            assert_eq!(run_stage(&run(own), &state), effective, "{own:?} {of_experiment:?}");
        }
    }

    #[tokio::test]
    async fn a_lease_runs_out_and_is_not_given_on_deleted_experiments() {
        // The simulated clock only advances during the sleep.
        let clock = runtime::clock::SimulatedClock::begin();
        let leases = LeaseCache { length: Duration::from_millis(20), held: Mutex::default() };
        let id = ExperimentId::DEFAULT;
        leases.keep(id, Moment::now(), &experiment(LifecycleStage::Active, 3));
        assert_eq!(leases.get(id).unwrap().version, 3);
        leases.keep(id, Moment::now(), &experiment(LifecycleStage::Deleted, 4));
        assert_eq!(leases.get(id), None);
        leases.keep(id, Moment::now(), &experiment(LifecycleStage::Active, 5));
        tokio::select! { () = runtime::clock::sleep(leases.length) => {}, () = clock.drive() => {} }
        assert_eq!(leases.get(id), None);
        leases.keep(id, Moment::now(), &experiment(LifecycleStage::Active, 6));
        leases.forget(id);
        assert_eq!(leases.get(id), None);
    }
}
