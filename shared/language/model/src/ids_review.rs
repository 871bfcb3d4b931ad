//! Ids of label schemas, review queues and issues.
//!
//! Ids that this server creates consist of a prefix and the digits of a run id, so that the
//! experiment of an entity can be determined from its id. They begin with the creation time.

use std::fmt;

use crate::error::Error;
use crate::{ExperimentId, RunId};

/// Returns the time in the digits of an id, in ms: the first 48 of 128 bits.
fn created_in(digits: &str) -> i64 {
    digits.get(..12).and_then(|time| i64::from_str_radix(time, 16).ok()).unwrap_or_default()
}

/// Defines an id that consists of a prefix and the 32 hexadecimal digits of a run id.
macro_rules! experiment_id {
    ($(#[doc = $doc:literal])+ $name:ident, $prefix:literal, $not_found:literal) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name {
            text: String,
            experiment: ExperimentId,
        }

        impl $name {
            /// Creates an id for an entity that is created at `time_ms` in `experiment`. The last
            /// 20 bits are taken from `chance`, which should be random.
            #[must_use]
            pub fn new(time_ms: i64, experiment: ExperimentId, chance: u32) -> Self {
                let digits = RunId::new(u64::try_from(time_ms).unwrap_or_default(), experiment, chance);
                Self { text: format!(concat!($prefix, "{}"), digits), experiment }
            }

            /// Parses the id in a request. Returns `None` for a text that this server cannot have
            /// created as an id.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                let experiment = RunId::parse(text.strip_prefix($prefix)?)?.experiment()?;
                Some(Self { text: text.to_owned(), experiment })
            }

            /// Returns the experiment that the entity belongs to.
            #[must_use]
            pub const fn experiment(&self) -> ExperimentId {
                self.experiment
            }

            /// Returns the creation time, in ms.
            #[must_use]
            pub fn created(&self) -> i64 {
                created_in(self.text.strip_prefix($prefix).unwrap_or_default())
            }

            /// Returns the id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.text
            }

            /// Returns the error for an entity that does not exist.
            #[must_use]
            pub fn not_found(text: &str) -> Error {
                Error::not_found(format!($not_found, text))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.text)
            }
        }
    };
}

experiment_id! {
    /// The id of a label schema: `ls-` followed by 32 hexadecimal digits.
    LabelSchemaId, "ls-", "Label schema with id '{}' not found."
}
experiment_id! {
    /// The id of a review queue: `rq-` followed by 32 hexadecimal digits.
    ReviewQueueId, "rq-", "Review queue with id '{}' not found."
}

/// The time in the id of a default label schema, in ms: the first one that an id can contain.
const DEFAULT_SCHEMA_TIME: i64 = 1_420_070_400_000;

impl LabelSchemaId {
    /// Returns the id of the experiment's default label schema, which exists without being stored.
    #[must_use]
    pub fn default_of(experiment: ExperimentId) -> Self {
        Self::new(DEFAULT_SCHEMA_TIME, experiment, 0)
    }

    /// Checks whether this is the id of an experiment's default label schema.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default_of(self.experiment)
    }
}

const ISSUE_PREFIX: &str = "iss-";
/// Maximum number of characters of an issue's id after its prefix.
const MAX_ISSUE_SUFFIX: usize = 32;

/// The id of an issue: `iss-` followed by 1 to 32 letters, digits, `_` or `-`. Clients may choose
/// it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IssueId(String);

impl IssueId {
    /// Creates an id for an issue that is created at `time_ms` in `experiment`. The last 20 bits
    /// are taken from `chance`, which should be random.
    #[must_use]
    pub fn new(time_ms: i64, experiment: ExperimentId, chance: u32) -> Self {
        let digits = RunId::new(u64::try_from(time_ms).unwrap_or_default(), experiment, chance);
        Self(format!("{ISSUE_PREFIX}{digits}"))
    }

    /// Parses an id. Returns `None` for a text that no issue can have as its id.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let suffix = text.strip_prefix(ISSUE_PREFIX)?;
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        let well_formed = (1..=MAX_ISSUE_SUFFIX).contains(&suffix.len()) && suffix.bytes().all(is_allowed);
        well_formed.then(|| Self(text.to_owned()))
    }

    /// Returns the experiment of the issue if the id has the format of the ids that this server
    /// creates. Returns `None` for other ids, which have to be resolved with the table.
    #[must_use]
    pub fn experiment(&self) -> Option<ExperimentId> {
        self.0.strip_prefix(ISSUE_PREFIX).and_then(RunId::parse).and_then(|digits| digits.experiment())
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the error for an issue that does not exist.
    #[must_use]
    pub fn not_found(text: &str) -> Error {
        Error::not_found(format!("Issue with ID '{text}' not found"))
    }
}

impl fmt::Display for IssueId {
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
        fn ids_carry_their_experiment_and_time(
            time in 1_420_070_400_000_i64..4_102_444_800_000,
            number in prop_oneof![0u64..1 << 56, 1u64 << 56..1 << 60],
            chance: u32,
        ) {
            let experiment = ExperimentId::from_number(number).unwrap();
            let queue = ReviewQueueId::new(time, experiment, chance);
            prop_assert_eq!((queue.experiment(), queue.created()), (experiment, time));
            prop_assert_eq!(ReviewQueueId::parse(queue.as_str()), Some(queue));
            let issue = IssueId::new(time, experiment, chance);
            prop_assert_eq!(issue.as_str().len(), 36);
            prop_assert_eq!(issue.experiment(), Some(experiment));
            prop_assert_eq!(IssueId::parse(issue.as_str()), Some(issue));
            let schema = LabelSchemaId::default_of(experiment);
            prop_assert!(schema.is_default());
            prop_assert_eq!(LabelSchemaId::parse(schema.as_str()), Some(schema));
        }
    }

    #[test]
    fn other_texts_are_no_ids() {
        let digits = "0".repeat(32);
        for text in ["", "ls-", &digits, &format!("ls-{digits}"), "rq-019a0000000000000000000000000000x"] {
            assert_eq!(LabelSchemaId::parse(text), None, "{text}");
            assert_eq!(ReviewQueueId::parse(text), None, "{text}");
        }
        for text in ["", "iss-", "iss-a#b", "iss-é", &format!("iss-{}", "a".repeat(33)), "ISS-1"] {
            assert_eq!(IssueId::parse(text), None, "{text}");
        }
        assert_eq!(IssueId::parse("iss-a_B-1").map(|id| id.experiment()), Some(None));
    }
}
