//! Ids. Each kind of id has one grammar, and is parsed before it is used in a key.

use std::fmt;

use crate::error::{Error, Result};
use crate::python;

/// The number of bits of a run id that contain the experiment.
const EXPERIMENT_BITS: u32 = 60;
const RANDOM_BITS: u32 = 20;
/// Smallest number of an experiment whose runs have ids in the long form. In the short form, the
/// number of the experiment follows the time, and its first four bits must be zero, because they
/// are where a UUID has its version. Experiments that this server creates have smaller numbers.
/// Experiments of MLflow's file stores have greater ones.
const FIRST_LONG_NUMBER: u64 = 1 << 56;
/// Number of random bits in the id of a run whose experiment has a long number.
const LONG_RANDOM_BITS: u32 = 16;
/// The hexadecimal digit that an id in the long form has where a UUID has its version. No UUID has
/// this version.
const LONG_MARKER: u128 = 0xf;
/// The range from 2015-01-01 to 2100-01-01, in ms. The time in a run id that this server created is
/// within it.
const PLAUSIBLE_TIMES_MS: std::ops::Range<u64> = 1_420_070_400_000..4_102_444_800_000;

/// The id of an experiment: an integer, which is printed in decimal, as in MLflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExperimentId(u64);

impl ExperimentId {
    /// The experiment that every store contains from the beginning.
    pub const DEFAULT: Self = Self(0);

    /// Returns the id with this number, if the number has at most 60 bits.
    #[must_use]
    pub const fn from_number(number: u64) -> Option<Self> {
        if number < 1 << EXPERIMENT_BITS { Some(Self(number)) } else { None }
    }

    /// Returns the id as a number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }

    /// Parses the text in a request like MLflow's store. It may be anything that Python's `int`
    /// accepts (`"01"`, `" 1"`, `"+1"`, `"1_0"`), or the empty string for the default experiment.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` for a text that is not an integer, and with
    /// `RESOURCE_DOES_NOT_EXIST` for an integer that no experiment can have.
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

    /// Returns the error for an experiment that does not exist.
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

/// The id of a run. An id that this server creates has the structure of a ULID, written in 32
/// hexadecimal digits: 48 bits of time, 60 bits of experiment id, and 20 random bits. If the number
/// of the experiment is 2^56 or more, the time is followed by the digit `f`, 60 bits of experiment
/// id, and 16 random bits. Because the id contains the experiment instead of most of a ULID's random
/// bits, the partition of the run can be determined from it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(String);

impl RunId {
    /// Creates an id for a run that is created at `time_ms` in `experiment`. The last 20 bits are
    /// taken from `chance`, which should be random.
    #[must_use]
    pub fn new(time_ms: u64, experiment: ExperimentId, chance: u32) -> Self {
        Self(digits_with_experiment(time_ms, experiment, chance))
    }

    /// Accepts any id that may be part of a key: a letter or digit, followed by up to 255 letters,
    /// digits, `_` or `-`. This is `_RUN_ID_REGEX` in MLflow's `validation.py`, with its `\w`
    /// limited to ASCII.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let first = text.as_bytes().first()?;
        let well_formed = first.is_ascii_alphanumeric()
            && text.len() <= 256
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        well_formed.then(|| Self(text.to_owned()))
    }

    /// Returns the experiment of the run if this server created the id. Returns `None` for other
    /// ids, which have to be resolved with the table.
    ///
    /// A random UUID is never mistaken for an id of this server: where it has its version, which is 1
    /// to 8, an id of this server has the digit 0, or `f` if the experiment's number is 2^56 or more.
    #[must_use]
    pub fn experiment(&self) -> Option<ExperimentId> {
        experiment_in_digits(&self.0)
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Parses the id in a request. A text that cannot be the id of a run is treated as the id of a
    /// run that does not exist.
    ///
    /// # Errors
    /// Fails with `RESOURCE_DOES_NOT_EXIST`.
    pub fn named(text: &str) -> Result<Self> {
        Self::parse(text).ok_or_else(|| Self::not_found(text))
    }

    /// Returns the error for a run that does not exist.
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

/// The id of a logged model: `m-` followed by 32 hexadecimal digits in the format of a run id, so
/// that the partition of the model can be determined from its id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModelId(String);

const MODEL_PREFIX: &str = "m-";

impl ModelId {
    /// Creates an id for a model that is created at `time_ms` in `experiment`. The last 20 bits are
    /// taken from `chance`, which should be random.
    #[must_use]
    pub fn new(time_ms: u64, experiment: ExperimentId, chance: u32) -> Self {
        Self(format!("{MODEL_PREFIX}{}", digits_with_experiment(time_ms, experiment, chance)))
    }

    /// Accepts any id that may be part of a key, according to the grammar of [`RunId::parse`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        RunId::parse(text).map(|RunId(text)| Self(text))
    }

    /// Returns the experiment of the model if this server created the id. Returns `None` for other
    /// ids, which have to be resolved with the table.
    #[must_use]
    pub fn experiment(&self) -> Option<ExperimentId> {
        self.0.strip_prefix(MODEL_PREFIX).and_then(experiment_in_digits)
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Parses the id in a request. A text that cannot be the id of a logged model is treated as the
    /// id of a logged model that does not exist.
    ///
    /// # Errors
    /// Fails with `RESOURCE_DOES_NOT_EXIST`.
    pub fn named(text: &str) -> Result<Self> {
        Self::parse(text).ok_or_else(|| Self::not_found(text))
    }

    /// Returns the error for a logged model that does not exist.
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
    let chance = u128::from(chance);
    let random = if experiment.0 < FIRST_LONG_NUMBER {
        (u128::from(experiment.0) << RANDOM_BITS) | (chance & ((1 << RANDOM_BITS) - 1))
    } else {
        (LONG_MARKER << (EXPERIMENT_BITS + LONG_RANDOM_BITS))
            | (u128::from(experiment.0) << LONG_RANDOM_BITS)
            | (chance & ((1 << LONG_RANDOM_BITS) - 1))
    };
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
    let random = ulid.random();
    let is_long = random >> (EXPERIMENT_BITS + LONG_RANDOM_BITS) == LONG_MARKER;
    let number =
        if is_long { (random >> LONG_RANDOM_BITS) & ((1 << EXPERIMENT_BITS) - 1) } else { random >> RANDOM_BITS };
    let number = u64::try_from(number).ok().filter(|number| (*number >= FIRST_LONG_NUMBER) == is_long)?;
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

    /// Numbers of experiments of this server, and of file stores, which have up to 60 bits.
    fn any_experiment_number() -> impl Strategy<Value = u64> {
        prop_oneof![0u64..FIRST_LONG_NUMBER, FIRST_LONG_NUMBER..1 << EXPERIMENT_BITS]
    }

    #[test]
    fn a_uuid_of_any_version_carries_no_experiment() {
        for version in 1..=8 {
            let uuid = format!("019fa1f1d3c0{version}0000000000000abcde");
            assert_eq!(RunId::parse(&uuid).unwrap().experiment(), None, "{uuid}");
        }
    }

    proptest! {
        #[test]
        fn a_run_id_carries_its_experiment(
            time in PLAUSIBLE_TIMES_MS,
            experiment in any_experiment_number(),
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
