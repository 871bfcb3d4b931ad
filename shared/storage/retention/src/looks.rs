//! At which runs a removal of histories looks.

use mlflow_api::ExperimentId;

/// Hours in which each experiment has a turn, where they take turns.
const HOURS: u64 = 24;
const HOUR: i64 = 3_600_000;

/// Which runs a removal looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looks {
    /// All.
    AtAll,
    /// Those of all experiments that ended since the last look; and all of them once a month.
    AtNewOnes,
    /// The same, and each experiment has one hour of the day.
    InTurn,
}

impl Looks {
    /// Whether an experiment is looked at now, in ms.
    pub(crate) fn has_turn(self, experiment: ExperimentId, now: i64) -> bool {
        let hour = u64::try_from(now.div_euclid(HOUR)).unwrap_or_default();
        self != Self::InTurn || experiment.number() % HOURS == hour % HOURS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_experiment_has_a_turn_in_one_hour_of_each_day() {
        let experiment = ExperimentId::from_number(49).unwrap();
        let turns = |looks: Looks| (0..48).filter(|hour| looks.has_turn(experiment, hour * HOUR)).count();
        assert_eq!([turns(Looks::AtAll), turns(Looks::AtNewOnes), turns(Looks::InTurn)], [48, 48, 2]);
    }
}
