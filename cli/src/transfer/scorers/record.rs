//! Records of scorers.

use mlflow_api::{ExperimentId, ScorerId};
use serde::Serialize;
use sha2::{Digest, Sha256};

/// A scorer of an MLflow database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct ScorerRecord {
    /// The id. It identifies the scorer, and is not part of its fingerprint.
    #[serde(skip)]
    pub(super) id: String,
    /// Name of the scorer.
    pub(super) name: String,
    /// Versions, oldest first.
    pub(super) versions: Vec<ScorerVersionRecord>,
    /// The online configuration, which selects the traces on which the scorer runs automatically.
    pub(super) online_config: Option<OnlineConfigRecord>,
}

/// A version of a scorer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct ScorerVersionRecord {
    /// Number of the version.
    pub(super) version: u32,
    /// The serialized scorer, as JSON.
    pub(super) serialized: String,
    /// Registration time, in ms since 1970.
    pub(super) created: i64,
}

/// The online configuration of a scorer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct OnlineConfigRecord {
    /// Id of the online configuration.
    pub(super) id: String,
    /// The bits of the fraction of traces to score, a number between 0 and 1.
    pub(super) rate_bits: u64,
    /// A filter that selects traces.
    pub(super) filter: Option<String>,
}

/// Earliest time in the id of an imported scorer, in ms.
const EARLIEST_TIME: u64 = 1_600_000_000_000;

/// Returns the id that a scorer gets on this server. It depends only on the experiment and the old
/// id, so that a repeated import finds the scorer again.
pub(super) fn scorer_id(experiment: ExperimentId, source_id: &str) -> ScorerId {
    match ScorerId::parse(source_id) {
        // The id was assigned by a server like this one.
        Some(id) if id.experiment() == Some(experiment) => return id,
        _ => {}
    }
    let bits = Sha256::digest(source_id).iter().take(12).fold(0_u128, |bits, byte| (bits << 8) | u128::from(*byte));
    // Nothing depends on the time in the id of a scorer, so 40 bits of the hash replace the time.
    // The result is in the range of times that ids of this server have.
    let time = EARLIEST_TIME + (u64::try_from(bits >> 32).unwrap_or_default() & ((1 << 40) - 1));
    let chance = u32::try_from(bits & u128::from(u32::MAX)).unwrap_or_default();
    ScorerId::new(time, experiment, chance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_name_the_experiment_and_do_not_change() {
        for number in [7, 123_456_789_012_345_678] {
            let experiment = ExperimentId::from_number(number).unwrap();
            let id = scorer_id(experiment, "f47ac10b-58cc-4372-a567-0e02b2c3d479");
            assert_eq!(id.experiment(), Some(experiment));
            assert_eq!(scorer_id(experiment, "f47ac10b-58cc-4372-a567-0e02b2c3d479"), id);
            assert_eq!(scorer_id(experiment, id.as_str()), id);
            assert_ne!(scorer_id(experiment, "f47ac10b-58cc-4372-a567-0e02b2c3d47a"), id);
        }
    }
}
