//! Selection of the runs whose histories a removal scans.

use mlflow_api::ExperimentId;

/// Number of hours over which the daily scans of experiments are distributed.
const HOURS_PER_DAY: u64 = 24;
const HOUR_MS: i64 = 3_600_000;

/// The runs that a removal of expired histories scans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryScans {
    /// All runs, at every removal.
    AtAll,
    /// Runs that ended since the experiment's last scan. Once a month, all runs.
    AtNewOnes,
    /// Like `AtNewOnes`, but each experiment is scanned only during one hour of the day.
    InTurn,
}

impl HistoryScans {
    /// Checks whether an experiment is to be scanned now. `now` is in ms.
    pub(crate) fn has_turn(self, experiment: ExperimentId, now: i64) -> bool {
        let hour = u64::try_from(now.div_euclid(HOUR_MS)).unwrap_or_default();
        self != Self::InTurn || experiment.number() % HOURS_PER_DAY == hour % HOURS_PER_DAY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_experiment_has_a_turn_in_one_hour_of_each_day() {
        let experiment = ExperimentId::from_number(49).unwrap();
        let turns = |looks: HistoryScans| (0..48).filter(|hour| looks.has_turn(experiment, hour * HOUR_MS)).count();
        assert_eq!(
            [turns(HistoryScans::AtAll), turns(HistoryScans::AtNewOnes), turns(HistoryScans::InTurn)],
            [48, 48, 2]
        );
    }
}
