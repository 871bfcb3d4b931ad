//! Ids of evaluation datasets, of their records, and of scorers.
//!
//! Ids have the same format as in MLflow, but begin with the creation time. Sorting entities by id
//! therefore sorts them by creation time, as MLflow does, and the row of an entity can be
//! determined from its id.

use std::fmt;

use ulid::Ulid;

use crate::error::Error;
use crate::{ExperimentId, RunId};

/// Parses a text of 32 lower-case hexadecimal digits.
fn read_digits(text: &str) -> Option<Ulid> {
    let lower_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let well_formed = text.len() == 32 && text.bytes().all(lower_hex);
    well_formed.then(|| u128::from_str_radix(text, 16).ok()).flatten().map(Ulid::from)
}

fn digits(time_ms: i64, random: u128) -> String {
    format!("{:032x}", u128::from(Ulid::from_parts(u64::try_from(time_ms).unwrap_or_default(), random)))
}

/// Defines an id that consists of a prefix and 32 hexadecimal digits: 48 bits of time in ms, and 80
/// random bits.
macro_rules! timed_id {
    ($(#[doc = $doc:literal])+ $name:ident, $prefix:literal) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// Creates an id for an entity that is created at `time_ms`. Only the last 80 bits of
            /// `random` are used.
            #[must_use]
            pub fn new(time_ms: i64, random: u128) -> Self {
                Self(format!(concat!($prefix, "{}"), digits(time_ms, random)))
            }

            /// Parses the id in a request. Returns `None` for a text that this server cannot have
            /// created as an id.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                text.strip_prefix($prefix).and_then(read_digits).map(|_| Self(text.to_owned()))
            }

            /// Returns the creation time, in ms.
            #[must_use]
            pub fn created(&self) -> i64 {
                let ulid = self.0.strip_prefix($prefix).and_then(read_digits);
                ulid.and_then(|ulid| i64::try_from(ulid.timestamp_ms()).ok()).unwrap_or_default()
            }

            /// Returns the id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    };
}

timed_id! {
    /// The id of an evaluation dataset: `d-` followed by 32 hexadecimal digits.
    EvaluationDatasetId, "d-"
}
timed_id! {
    /// The id of a record of an evaluation dataset: `dr-` followed by 32 hexadecimal digits.
    DatasetRecordId, "dr-"
}

impl EvaluationDatasetId {
    /// Returns the error for a dataset that does not exist.
    #[must_use]
    pub fn not_found(text: &str) -> Error {
        Error::not_found(format!("Evaluation dataset with id '{text}' not found"))
    }
}

/// The id of a scorer: the digits of a run id in the format of a UUID, so that the partition of the
/// scorer can be determined from its id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScorerId(String);

impl ScorerId {
    /// Creates an id for a scorer that is created at `time_ms` in `experiment`. The last 20 bits
    /// are taken from `chance`, which should be random.
    #[must_use]
    pub fn new(time_ms: u64, experiment: ExperimentId, chance: u32) -> Self {
        let run = RunId::new(time_ms, experiment, chance);
        let mut text = String::with_capacity(36);
        for (place, digit) in run.as_str().chars().enumerate() {
            text.push_str(if matches!(place, 8 | 12 | 16 | 20) { "-" } else { "" });
            text.push(digit);
        }
        Self(text)
    }

    /// Parses the id in a request. Returns `None` for a text that this server cannot have created
    /// as an id.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let id = Self(text.to_owned());
        let dashes = text.char_indices().filter(|(_, character)| *character == '-').map(|(place, _)| place);
        (dashes.eq([8, 13, 18, 23]) && id.experiment().is_some()).then_some(id)
    }

    /// Returns the experiment that the scorer belongs to.
    #[must_use]
    pub fn experiment(&self) -> Option<ExperimentId> {
        RunId::parse(&self.0.replace('-', "")).and_then(|run| run.experiment())
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ScorerId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ids_sort_by_time_and_come_back(time in 0_i64..1 << 47, later in 1_i64..1 << 40, random: u128, other: u128) {
            let id = EvaluationDatasetId::new(time, random);
            prop_assert!(id < EvaluationDatasetId::new(time + later, other));
            prop_assert_eq!(id.created(), time);
            prop_assert_eq!(EvaluationDatasetId::parse(id.as_str()), Some(id));
            let record = DatasetRecordId::new(time, random);
            prop_assert_eq!(record.as_str().len(), 35);
            prop_assert_eq!(DatasetRecordId::parse(record.as_str()), Some(record));
        }

        #[test]
        fn a_scorer_id_carries_its_experiment(number in prop_oneof![0u64..1 << 56, 1u64 << 56..1 << 60], chance: u32) {
            let experiment = ExperimentId::from_number(number).unwrap();
            let id = ScorerId::new(1_700_000_000_000, experiment, chance);
            prop_assert_eq!(id.as_str().len(), 36);
            prop_assert_eq!(id.experiment(), Some(experiment));
            prop_assert_eq!(ScorerId::parse(id.as_str()), Some(id));
        }
    }

    #[test]
    fn other_texts_are_no_ids() {
        let digits = "0".repeat(32);
        for text in [
            "",
            "d-",
            "nothing",
            &digits,
            &format!("d-{digits}0"),
            &format!("D-{digits}"),
            "d-é",
            "d-0000000000000000000000000000000A",
        ] {
            assert_eq!(EvaluationDatasetId::parse(text), None, "{text}");
        }
        for text in [
            "",
            "#",
            &digits,
            "00000000-0000-0000-0000-000000000000",
            "f47ac10b-58cc-4372-a567-0e02b2c3d479",
            "--------",
        ] {
            assert_eq!(ScorerId::parse(text), None, "{text}");
        }
    }
}
