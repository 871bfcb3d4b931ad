//! Ids, each with one grammar, parsed before they come near a key.

use std::fmt;

use crate::error::{Error, Result};
use crate::python;

/// Bits of a run id that hold the experiment.
const EXPERIMENT_BITS: u32 = 60;
const RANDOM_BITS: u32 = 20;
/// Greater than any experiment counted here; the version digit of a UUID reads as one of at least this number.
const FIRST_UUID_NUMBER: u64 = 1 << 56;
/// 2015-01-01 and 2100-01-01 in milliseconds: a run id made here carries a time between them.
const PLAUSIBLE_TIMES_MS: std::ops::Range<u64> = 1_420_070_400_000..4_102_444_800_000;

/// An experiment's id: a small integer, printed in decimal as MLflow prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExperimentId(u64);

impl ExperimentId {
    /// The experiment every store starts with.
    pub const DEFAULT: Self = Self(0);

    /// The id with this number, if it has at most 60 bits.
    #[must_use]
    pub const fn from_number(number: u64) -> Option<Self> {
        if number < 1 << EXPERIMENT_BITS { Some(Self(number)) } else { None }
    }

    /// The id as a number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }

    /// Reads a client's text the way MLflow's store does: anything Python's `int` takes (`"01"`, `"
    /// 1"`, `"+1"`, `"1_0"`), and the empty string as the default experiment.
    ///
    /// # Errors
    /// `INVALID_PARAMETER_VALUE` for a text that is not an integer, `RESOURCE_DOES_NOT_EXIST` for
    /// an integer no experiment can have.
    pub fn parse(text: &str) -> Result<Self> {
        if text.is_empty() {
            return Ok(Self::DEFAULT);
        }
        let Some(integer) = python::int(text) else {
            return Err(Error::invalid(format!(
                "Invalid experiment ID '{text}'. Experiment ID must be a valid integer."
            )));
        };
        let number = integer.parse().ok().and_then(Self::from_number);
        number.ok_or_else(|| Error::not_found(format!("No Experiment with id={integer} exists")))
    }

    /// The error for an experiment that is not there.
    #[must_use]
    pub fn not_found(self) -> Error {
        Error::not_found(format!("No Experiment with id={self} exists"))
    }
}

impl fmt::Display for ExperimentId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}

/// A run's id. One made here is a ULID in 32 hexadecimal digits whose random part is mostly the experiment: 48 bits of time,
/// 60 bits of experiment id, 20 bits of chance. So the run's partition is known from the id alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(String);

impl RunId {
    /// Makes an id for a run created at `time_ms` in `experiment`; `chance` gives the last 20 bits.
    #[must_use]
    pub fn new(time_ms: u64, experiment: ExperimentId, chance: u32) -> Self {
        Self(digits_with_experiment(time_ms, experiment, chance))
    }

    /// Takes any id that a key may contain: a letter or digit, then up to 255 letters, digits, `_`
    /// or `-` (`_RUN_ID_REGEX` in MLflow's `validation.py`, its `\w` cut down to ASCII).
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let first = text.as_bytes().first()?;
        let well_formed = first.is_ascii_alphanumeric()
            && text.len() <= 256
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        well_formed.then(|| Self(text.to_owned()))
    }

    /// The experiment an id made here belongs to; `None` for an id from elsewhere, which the table
    /// has to resolve.
    ///
    /// A random UUID is never mistaken for an id made here: its version digit would mean an
    /// experiment beyond 2^56.
    #[must_use]
    pub fn experiment(&self) -> Option<ExperimentId> {
        experiment_in_digits(&self.0)
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id in a request. A text that no run can have as its id is an id of none.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST`
    pub fn named(text: &str) -> Result<Self> {
        Self::parse(text).ok_or_else(|| Self::not_found(text))
    }

    /// The error for a run that is not there.
    #[must_use]
    pub fn not_found(text: &str) -> Error {
        Error::not_found(format!("Run with id={text} not found"))
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A logged model's id: `m-` and 32 hexadecimal digits like those of a run's id, so that its partition is known from the id alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModelId(String);

const MODEL_PREFIX: &str = "m-";

impl ModelId {
    /// Makes an id for a model created at `time_ms` in `experiment`; `chance` gives the last 20 bits.
    #[must_use]
    pub fn new(time_ms: u64, experiment: ExperimentId, chance: u32) -> Self {
        Self(format!("{MODEL_PREFIX}{}", digits_with_experiment(time_ms, experiment, chance)))
    }

    /// Takes any id that a key may contain, by the grammar of [`RunId::parse`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        RunId::parse(text).map(|RunId(text)| Self(text))
    }

    /// The experiment an id made here belongs to; `None` for an id from elsewhere, which the table has to resolve.
    #[must_use]
    pub fn experiment(&self) -> Option<ExperimentId> {
        self.0.strip_prefix(MODEL_PREFIX).and_then(experiment_in_digits)
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id in a request. A text that no logged model can have as its id is an id of none.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST`
    pub fn named(text: &str) -> Result<Self> {
        Self::parse(text).ok_or_else(|| Self::not_found(text))
    }

    /// The error for a logged model that is not there.
    #[must_use]
    pub fn not_found(text: &str) -> Error {
        Error::not_found(format!("Logged model with ID '{text}' not found."))
    }
}

impl fmt::Display for ModelId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

fn digits_with_experiment(time_ms: u64, experiment: ExperimentId, chance: u32) -> String {
    let random = (u128::from(experiment.0) << RANDOM_BITS) | u128::from(chance & ((1 << RANDOM_BITS) - 1));
    format!("{:032x}", u128::from(ulid::Ulid::from_parts(time_ms, random)))
}

fn experiment_in_digits(digits: &str) -> Option<ExperimentId> {
    let lower_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if digits.len() != 32 || !digits.bytes().all(lower_hex) {
        return None;
    }
    let ulid = ulid::Ulid::from(u128::from_str_radix(digits, 16).ok()?);
    if !PLAUSIBLE_TIMES_MS.contains(&ulid.timestamp_ms()) {
        return None;
    }
    let number = u64::try_from(ulid.random() >> RANDOM_BITS).ok().filter(|number| *number < FIRST_UUID_NUMBER)?;
    ExperimentId::from_number(number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn experiment_ids_are_read_as_python_reads_integers() {
        for (text, number) in [("7", 7), ("01", 1), (" 1", 1), ("+1", 1), ("1_0", 10), ("-0", 0), ("", 0), ("000", 0)] {
            assert_eq!(ExperimentId::parse(text).unwrap().number(), number, "{text:?}");
        }
        for text in ["abc", "1.0", "_1", "1_", "1__0", "+", "-", " ", "1 2", "0x1", "#"] {
            let message = ExperimentId::parse(text).unwrap_err().message;
            assert_eq!(message, format!("Invalid experiment ID '{text}'. Experiment ID must be a valid integer."));
        }
        for text in ["-1", "99999999999999999999999", "1152921504606846976"] {
            assert_eq!(ExperimentId::parse(text).unwrap_err().message, format!("No Experiment with id={text} exists"));
        }
    }

    #[test]
    fn foreign_run_ids_carry_no_experiment() {
        for text in ["run-1", "f47ac10b58cc4372a5670e02b2c3d479", "019FA1F1D3C0000000000000000fffff", "0"] {
            assert_eq!(RunId::parse(text).unwrap().experiment(), None, "{text}");
        }
        for text in ["", "-a", "a#b", "a b", "é", &"a".repeat(257)] {
            assert_eq!(RunId::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_run_id_carries_its_experiment(
            time in PLAUSIBLE_TIMES_MS,
            experiment in 0u64..FIRST_UUID_NUMBER,
            chance: u32,
        ) {
            let experiment = ExperimentId::from_number(experiment).unwrap();
            let id = RunId::new(time, experiment, chance);
            prop_assert_eq!(id.as_str().len(), 32);
            prop_assert_eq!(id.experiment(), Some(experiment));
            prop_assert_eq!(RunId::parse(id.as_str()), Some(id));
            let model = ModelId::new(time, experiment, chance);
            prop_assert_eq!(model.as_str().len(), 34);
            prop_assert_eq!(model.experiment(), Some(experiment));
            prop_assert_eq!(ModelId::parse(model.as_str()), Some(model));
        }

        #[test]
        fn later_runs_have_greater_ids(time in PLAUSIBLE_TIMES_MS, experiment in 0u64..1 << EXPERIMENT_BITS) {
            let experiment = ExperimentId::from_number(experiment).unwrap();
            prop_assert!(RunId::new(time, experiment, u32::MAX) < RunId::new(time + 1, ExperimentId::DEFAULT, 0));
        }
    }
}
