//! Records of evaluation datasets.

use mlflow_api::{DatasetRecordId, Workspace};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::Failure;

/// An evaluation dataset of an MLflow database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct EvaluationDataset {
    /// The id. It identifies the dataset, and is not part of its fingerprint.
    #[serde(skip)]
    pub(super) id: String,
    /// Workspace that the dataset belongs to.
    pub(super) workspace: Workspace,
    /// Name of the dataset.
    pub(super) name: String,
    /// The schema, as JSON.
    pub(super) schema: Option<String>,
    /// The number of records in the profile. `None` if the dataset has no profile.
    pub(super) profile: Option<u32>,
    /// Digest of the dataset.
    pub(super) digest: String,
    /// Creation time, in ms since 1970.
    pub(super) created: i64,
    /// Time of the last change, in ms since 1970.
    pub(super) updated: i64,
    /// Name of the user who created it.
    pub(super) created_by: Option<String>,
    /// Name of the user who last changed it.
    pub(super) updated_by: Option<String>,
    /// Tags, sorted by key.
    pub(super) tags: Vec<(String, String)>,
    /// The times when it was added to experiments, in ms, with the experiments. Sorted.
    pub(super) experiments: Vec<(i64, String)>,
    /// Number and sum of the dataset's records.
    pub(super) records: RecordSum,
}

/// The number of a dataset's records, and a sum of their hashes that does not depend on their
/// order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct RecordSum {
    count: u64,
    /// The sums of the first and of the second 64 bits of the hashes, because JSON numbers have 64
    /// bits.
    sum: (u64, u64),
}

impl RecordSum {
    /// Adds a record.
    ///
    /// # Errors
    /// The record cannot be written as JSON.
    pub(super) fn add(&mut self, record: &DatasetRecord) -> Result<(), Failure> {
        let hash = Sha256::digest(serde_json::to_vec(record)?);
        let half =
            |from: usize| hash.iter().skip(from).take(8).fold(0_u64, |bits, byte| (bits << 8) | u64::from(*byte));
        self.count += 1;
        self.sum = (self.sum.0.wrapping_add(half(0)), self.sum.1.wrapping_add(half(8)));
        Ok(())
    }

    /// Returns the number of records.
    pub(super) fn count(&self) -> u64 {
        self.count
    }
}

/// A record of an evaluation dataset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct DatasetRecord {
    /// The id that the record gets on this server.
    pub(super) id: String,
    /// Inputs, outputs, expectations, tags and source in the stored form of this server.
    pub(super) content: String,
    /// Creation time, in ms since 1970.
    pub(super) created: i64,
    /// Time of the last change, in ms since 1970.
    pub(super) updated: i64,
    /// Name of the user who created it.
    pub(super) created_by: Option<String>,
    /// Name of the user who last changed it.
    pub(super) updated_by: Option<String>,
}

/// Returns the id that a record gets on this server. It begins with the creation time. The rest is
/// derived from the old id in a way that keeps the order of records with the same creation time,
/// because MLflow sorts these by id.
pub(super) fn record_id(source_id: &str, created: i64) -> DatasetRecordId {
    match DatasetRecordId::parse(source_id) {
        // The id was assigned by a server like this one.
        Some(id) if id.created() == created => return id,
        _ => {}
    }
    let digits = source_id.strip_prefix("dr-").and_then(|digits| u128::from_str_radix(digits, 16).ok());
    let bits = digits.unwrap_or_else(|| {
        Sha256::digest(source_id).iter().take(16).fold(0, |bits, byte| (bits << 8) | u128::from(*byte))
    });
    DatasetRecordId::new(created, bits >> 48)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_keep_time_and_order() {
        let (first, second) = (format!("dr-0{}", "a".repeat(31)), format!("dr-0{}b{}", "a".repeat(10), "0".repeat(20)));
        let (one, two) = (record_id(&first, 1_700_000_000_000), record_id(&second, 1_700_000_000_000));
        assert_eq!(one.created(), 1_700_000_000_000);
        assert!(one < two && two < record_id(&first, 1_700_000_000_001), "{one} {two}");
        assert_eq!(record_id(one.as_str(), 1_700_000_000_000), one);
        assert_ne!(record_id("other", 5), record_id("another", 5));
    }

    #[test]
    fn the_order_of_records_does_not_change_their_sum() {
        let record = |id: &str| DatasetRecord {
            id: id.to_owned(),
            content: "{}".to_owned(),
            created: 1,
            updated: 2,
            created_by: None,
            updated_by: None,
        };
        let sum = |ids: [&str; 2]| {
            let mut sum = RecordSum::default();
            for id in ids {
                sum.add(&record(id)).unwrap();
            }
            sum
        };
        assert_eq!(sum(["a", "b"]), sum(["b", "a"]));
        assert_ne!(sum(["a", "b"]), sum(["a", "c"]));
    }
}
