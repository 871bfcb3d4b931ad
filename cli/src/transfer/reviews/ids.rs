//! Ids of imported label schemas and review queues.

use mlflow_api::{ExperimentId, LabelSchemaId, ReviewQueueId};
use sha2::{Digest, Sha256};

/// Suffix that `--remap` adds to a name that is taken.
pub(super) const NAME_SUFFIX: &str = " (imported)";

/// Returns bits that replace the random bits of an id. They are a hash of the id in the source, so
/// that a repeated import computes the same id and finds the entity again.
pub(super) fn chance(source_id: &str) -> u32 {
    Sha256::digest(source_id).iter().take(4).fold(0, |bits, byte| (bits << 8) | u32::from(*byte))
}

/// Returns the new id of an imported label schema. If the id in the source has the format of this
/// server and contains this experiment, it is kept, unless it is taken.
pub(super) fn label_schema(experiment: ExperimentId, source_id: &str, created: i64, is_taken: bool) -> LabelSchemaId {
    let known = LabelSchemaId::parse(source_id).filter(|id| id.experiment() == experiment && !is_taken);
    known.unwrap_or_else(|| LabelSchemaId::new(created, experiment, chance(source_id)))
}

/// Returns the new id of an imported review queue. Follows the rule of [`label_schema`].
pub(super) fn review_queue(experiment: ExperimentId, source_id: &str, created: i64, is_taken: bool) -> ReviewQueueId {
    let known = ReviewQueueId::parse(source_id).filter(|id| id.experiment() == experiment && !is_taken);
    known.unwrap_or_else(|| ReviewQueueId::new(created, experiment, chance(source_id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_name_the_experiment_and_do_not_change() {
        let experiment = ExperimentId::from_number(123_456_789_012_345_678).unwrap();
        let (source, created) = ("ls-f47ac10b58cc4372a5670e02b2c3d479", 1_700_000_000_123);
        let id = label_schema(experiment, source, created, false);
        assert_eq!((id.experiment(), id.created()), (experiment, created));
        assert_eq!(label_schema(experiment, source, created, false), id);
        assert_eq!(label_schema(experiment, id.as_str(), created, false), id);
        assert_ne!(label_schema(experiment, id.as_str(), created, true), id);
        let queue = review_queue(experiment, "rq-1", created, false);
        assert_eq!((queue.experiment(), queue.created()), (experiment, created));
    }
}
