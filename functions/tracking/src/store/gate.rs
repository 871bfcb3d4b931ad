//! Whether a run may be written to: its own lifecycle stage, and its experiment's.
//!
//! Deleting or restoring an experiment with any number of runs changes one item, the experiment's, and raises its **stage
//! version**. A run's item says only what happened to the run alone, and at which version; an older version has been
//! overruled by the experiment since. So a run's stage is a function of two items, and every write to a run has to know
//! the experiment's.
//!
//! Reading it each time would double the requests of the most frequent call, `log-metric`. Instead a process may rely on
//! "active, version n" for the length of a **lease** after it began to read it, and whoever deletes an experiment answers only
//! when all leases from before must have run out. So a call that begins after the deletion was answered sees it, in
//! whichever process. `docs/adr/0004-leases.md` has the reasoning.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use entities::attributes::{STAGE, STAGE_VERSION};
use entities::{ExperimentState, experiment_state};
use key_schema::rows;
use mlflow_api::tracking::LifecycleStage;
use mlflow_api::{Error, ExperimentId, Result, RunId};
use table::{Condition, Item, number, text};

use super::Store;

/// Leases kept at a time; beyond that, those that ran out are dropped, then all.
const MOST_LEASES: usize = 10_000;

/// Leases of this process.
pub(super) struct Gate {
    lease: Duration,
    // A std mutex: nothing is awaited while it is held.
    leases: Mutex<HashMap<ExperimentId, Lease>>,
}

struct Lease {
    // Both clocks: a frozen sandbox may stop one of them.
    since: (Instant, SystemTime),
    state: ExperimentState,
}

impl Gate {
    pub(super) fn new(lease: Duration) -> Self {
        Self { lease, leases: Mutex::default() }
    }

    fn is_valid(&self, lease: &Lease) -> bool {
        let by_wall_clock = lease.since.1.elapsed().unwrap_or(Duration::MAX);
        lease.since.0.elapsed().max(by_wall_clock) < self.lease
    }

    fn get(&self, experiment: ExperimentId) -> Option<ExperimentState> {
        let leases = self.leases.lock().unwrap_or_else(PoisonError::into_inner);
        leases.get(&experiment).filter(|lease| self.is_valid(lease)).map(|lease| lease.state.clone())
    }

    /// Only "active" is worth a lease: nobody waits for a lease before restoring an experiment.
    fn keep(&self, experiment: ExperimentId, since: (Instant, SystemTime), state: &ExperimentState) {
        let mut leases = self.leases.lock().unwrap_or_else(PoisonError::into_inner);
        if state.stage == LifecycleStage::Deleted {
            leases.remove(&experiment);
            return;
        }
        if leases.len() >= MOST_LEASES {
            leases.retain(|_, lease| self.is_valid(lease));
            if leases.len() >= MOST_LEASES {
                leases.clear();
            }
        }
        leases.insert(experiment, Lease { since, state: state.clone() });
    }

    /// Waits until no process relies any more on what the experiment was before now.
    pub(super) async fn wait_out(&self, experiment: ExperimentId) {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner).remove(&experiment);
        tokio::time::sleep(self.lease).await;
    }
}

/// The moment a read begins, for the lease on what it finds.
pub(super) fn moment() -> (Instant, SystemTime) {
    (Instant::now(), SystemTime::now())
}

impl Store {
    /// The experiment's state, from a lease or from the table. No request or one; a read unit per 4 KB of the experiment.
    pub(super) async fn experiment_state(&self, experiment: ExperimentId) -> Result<Option<ExperimentState>> {
        if let Some(state) = self.gate.get(experiment) {
            return Ok(Some(state));
        }
        let since = moment();
        let item = self.table.get(&rows::Experiment::key(&experiment)).await?;
        Ok(item.map(|item| self.keep_lease(experiment, since, &item)))
    }

    /// The states of several experiments; those that are not there are left out. One request per 100 without a lease.
    pub(super) async fn experiment_states(
        &self,
        experiments: &[ExperimentId],
    ) -> Result<Vec<(ExperimentId, ExperimentState)>> {
        let leased: Vec<_> = experiments.iter().map(|id| (*id, self.gate.get(*id))).collect();
        let unknown = leased.iter().filter(|(_, state)| state.is_none());
        let keys: Vec<_> = unknown.map(|(id, _)| rows::Experiment::key(id)).collect();
        let since = moment();
        let items = self.table.get_many(&keys).await?;
        let states = leased.into_iter().filter_map(|(id, state)| {
            let read = || items.get(&rows::Experiment::key(&id)).map(|item| self.keep_lease(id, since, item));
            Some((id, state.or_else(read)?))
        });
        Ok(states.collect())
    }

    /// The state in an experiment's item, read since `since`; begins a lease on it.
    pub(super) fn keep_lease(
        &self,
        experiment: ExperimentId,
        since: (Instant, SystemTime),
        item: &Item,
    ) -> ExperimentState {
        let state = experiment_state(item);
        self.gate.keep(experiment, since, &state);
        state
    }
}

/// The condition under which a run's item (or its metrics document) may be written: it is there, and active.
pub(super) fn run_is_active(experiment: &ExperimentState) -> Condition {
    let overruled = Condition::Below(STAGE_VERSION.into(), number(experiment.version));
    let by_itself = |stage: LifecycleStage| {
        Condition::Equals(STAGE.into(), text(stage.name())).and(Condition::Not(Box::new(overruled)))
    };
    Condition::item_exists().and(match experiment.stage {
        LifecycleStage::Active => Condition::Not(Box::new(by_itself(LifecycleStage::Deleted))),
        LifecycleStage::Deleted => by_itself(LifecycleStage::Active),
    })
}

/// MLflow's refusal to write to a deleted run.
pub(super) fn check_run_is_active(run: &RunId, stage: LifecycleStage) -> Result<()> {
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
    use entities::run_stage;
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
        let gate = Gate::new(Duration::from_millis(20));
        let id = ExperimentId::DEFAULT;
        gate.keep(id, moment(), &experiment(LifecycleStage::Active, 3));
        assert_eq!(gate.get(id).unwrap().version, 3);
        gate.keep(id, moment(), &experiment(LifecycleStage::Deleted, 4));
        assert_eq!(gate.get(id), None);
        gate.keep(id, moment(), &experiment(LifecycleStage::Active, 5));
        let begin = Instant::now();
        gate.wait_out(id).await;
        assert!(begin.elapsed() >= Duration::from_millis(20) && gate.get(id).is_none());
        let earlier = (Instant::now(), SystemTime::now() - Duration::from_secs(1));
        gate.keep(id, earlier, &experiment(LifecycleStage::Active, 6));
        assert_eq!(gate.get(id), None, "a clock that stood still does not keep a lease");
    }
}
