//! Keys that sort like MLflow's ORDER BY.
//!
//! A key contains the values that an ordering compares, so that rows can be sorted by it. A page
//! can also continue after a key, even if the row of that key no longer exists.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::evaluate::{ExperimentFields, RunFields};
use crate::model_fields::{ModelFields, latest};
use crate::model_order::{ModelOrder, ModelSortBy};
use crate::order_by::{ExperimentOrder, ExperimentSortBy, OrderTerm, RunOrder, RunSortBy, SortDirection};

/// The values that a row is sorted by. Within one ordering, sorting the keys sorts the rows, and
/// every row has a different key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SortKey(pub(crate) Vec<SortKeyPart>);

/// A value, and the direction that it is sorted in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SortKeyPart(pub(crate) SortDirection, pub(crate) SortKeyValue);

/// A value in a sort key. The relative order of the variants that contain values is irrelevant,
/// because all values of one term have the same variant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum SortKeyValue {
    #[serde(rename = "i")]
    Integer(i64),
    #[serde(rename = "f")]
    Float(SortableFloat),
    #[serde(rename = "t")]
    Text(String),
    #[serde(rename = "nan")]
    NotANumber,
    #[serde(rename = "none")]
    Missing,
}

/// The first value that a row is sorted by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FirstValue<'a> {
    /// A time.
    Integer(i64),
    /// The value of a metric, which is never NaN. Both zeros are 0.0.
    Float(f64),
    /// A text.
    Text(&'a str),
    /// The value of a metric that is NaN.
    NotANumber,
    /// The row does not have the value that it is sorted by.
    Missing,
}

/// A float as an integer that sorts in the same order. Unlike a JSON number, it can represent
/// infinities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct SortableFloat(i64);

impl SortableFloat {
    fn new(value: f64) -> Self {
        // Zero and negative zero are equal in SQL.
        let value = if value == 0.0 { 0.0 } else { value };
        let bits = value.to_bits().cast_signed();
        // The bits of negative floats sort in reverse. Inverting all bits except the sign corrects
        // the order.
        Self(if bits < 0 { bits ^ i64::MAX } else { bits })
    }

    fn value(self) -> f64 {
        f64::from_bits(if self.0 < 0 { self.0 ^ i64::MAX } else { self.0 }.cast_unsigned())
    }
}

impl SortKeyValue {
    pub(crate) fn text(text: Option<&str>) -> Self {
        text.map_or(Self::Missing, |text| Self::Text(text.to_owned()))
    }

    pub(crate) fn integer(number: Option<i64>) -> Self {
        number.map_or(Self::Missing, Self::Integer)
    }

    fn float(number: Option<f64>) -> Self {
        match number {
            None => Self::Missing,
            Some(number) if number.is_nan() => Self::NotANumber,
            Some(number) => Self::Float(SortableFloat::new(number)),
        }
    }

    fn value(&self) -> FirstValue<'_> {
        match self {
            Self::Integer(number) => FirstValue::Integer(*number),
            Self::Float(number) => FirstValue::Float(number.value()),
            Self::Text(text) => FirstValue::Text(text),
            Self::NotANumber => FirstValue::NotANumber,
            Self::Missing => FirstValue::Missing,
        }
    }

    /// Returns the rank of the value's kind. Values come before NaN, and NaN before missing values,
    /// regardless of the direction.
    fn rank(&self) -> u8 {
        match self {
            Self::Integer(_) | Self::Float(_) | Self::Text(_) => 0,
            Self::NotANumber => 1,
            Self::Missing => 2,
        }
    }
}

impl SortKey {
    /// Returns the first value, if it is a text.
    #[must_use]
    pub fn first_text(&self) -> Option<&str> {
        match self.0.first() {
            Some(SortKeyPart(_, SortKeyValue::Text(text))) => Some(text),
            _ => None,
        }
    }

    /// Creates a key from values and their directions.
    pub(crate) fn of(parts: impl Iterator<Item = (SortDirection, SortKeyValue)>) -> Self {
        Self(parts.map(|(direction, cell)| SortKeyPart(direction, cell)).collect())
    }

    /// Returns the start time in ms and the id of a run, if this is a key of MLflow's default
    /// order.
    #[must_use]
    pub fn latest_first(&self) -> Option<(i64, &str)> {
        match self.0.as_slice() {
            [
                SortKeyPart(SortDirection::Descending, SortKeyValue::Integer(started)),
                SortKeyPart(SortDirection::Ascending, SortKeyValue::Text(run)),
            ] => Some((*started, run)),
            _ => None,
        }
    }

    /// Returns the value of the first term. A key that was created from a row always has one. A key
    /// from a forged page token may have none, or one of the wrong type for the order.
    #[must_use]
    pub fn first_value(&self) -> Option<FirstValue<'_>> {
        self.0.first().map(|part| part.1.value())
    }

    /// Returns the start time in ms and the id, if the last two terms can be those of MLflow's
    /// default order: newest first, then by id. The key alone does not show whether the number
    /// before the id is the start time, so the caller must check this in the order.
    #[must_use]
    pub fn started_and_id(&self) -> Option<(i64, &str)> {
        match self.0.as_slice() {
            [
                ..,
                SortKeyPart(SortDirection::Descending, SortKeyValue::Integer(started)),
                SortKeyPart(SortDirection::Ascending, SortKeyValue::Text(run)),
            ] => Some((*started, run)),
            _ => None,
        }
    }
}

impl Ord for SortKeyPart {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_value = || match self.0 {
            SortDirection::Ascending => self.1.cmp(&other.1),
            SortDirection::Descending => other.1.cmp(&self.1),
        };
        self.0.cmp(&other.0).then_with(|| self.1.rank().cmp(&other.1.rank())).then_with(by_value)
    }
}

impl PartialOrd for SortKeyPart {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl RunOrder {
    /// Returns the sort key of a run.
    #[must_use]
    pub fn key(&self, run: &impl RunFields) -> SortKey {
        let part = |term: &OrderTerm<RunSortBy>| {
            let cell = match &term.by {
                RunSortBy::Metric(key) => SortKeyValue::float(run.metric(key)),
                RunSortBy::Param(key) => SortKeyValue::text(run.param(key)),
                RunSortBy::Tag(key) => SortKeyValue::text(run.tag(key)),
                RunSortBy::Text(attribute) => SortKeyValue::text(run.text(*attribute)),
                RunSortBy::Number(attribute) => SortKeyValue::integer(run.number(*attribute)),
            };
            SortKeyPart(term.direction, cell)
        };
        SortKey(self.terms.iter().map(part).collect())
    }
}

impl ExperimentOrder {
    /// Returns the sort key of an experiment.
    #[must_use]
    pub fn key(&self, experiment: &impl ExperimentFields) -> SortKey {
        let part = |term: &OrderTerm<ExperimentSortBy>| {
            let cell = match term.by {
                ExperimentSortBy::Name => SortKeyValue::Text(experiment.name().to_owned()),
                // The cast is lossless, because ids have at most 60 bits.
                ExperimentSortBy::Id => SortKeyValue::Integer(experiment.id().number().cast_signed()),
                ExperimentSortBy::Number(attribute) => SortKeyValue::Integer(experiment.number(attribute)),
            };
            SortKeyPart(term.direction, cell)
        };
        SortKey(self.terms.iter().map(part).collect())
    }
}

impl ModelOrder {
    /// Returns the sort key of a logged model.
    #[must_use]
    pub fn key(&self, model: &impl ModelFields) -> SortKey {
        let part = |term: &OrderTerm<ModelSortBy>| {
            let cell = match &term.by {
                ModelSortBy::Metric { key, dataset_name, dataset_digest } => {
                    SortKeyValue::float(latest(model, key, dataset_name, dataset_digest))
                }
                ModelSortBy::Text(attribute) => SortKeyValue::text(model.text(*attribute)),
                ModelSortBy::Code(attribute) => SortKeyValue::Integer(model.code(*attribute)),
                ModelSortBy::Time(attribute) => SortKeyValue::Integer(model.time(*attribute)),
            };
            SortKeyPart(term.direction, cell)
        };
        SortKey(self.terms.iter().map(part).collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nan_and_nothing_come_last_in_both_directions() {
        for direction in [SortDirection::Ascending, SortDirection::Descending] {
            let part = |value| SortKeyPart(direction, SortKeyValue::float(value));
            assert!(part(Some(f64::INFINITY)) < part(Some(f64::NAN)));
            assert!(part(Some(f64::NEG_INFINITY)) < part(Some(f64::NAN)));
            assert!(part(Some(f64::NAN)) < part(None));
            assert_eq!(part(Some(0.0)).cmp(&part(Some(-0.0))), Ordering::Equal);
        }
    }

    #[test]
    fn a_key_says_where_to_go_on() {
        let key = |json| serde_json::from_str::<SortKey>(json).unwrap();
        let exact = key(r#"[["d",{"f":-4611686018427387905}],["d",{"i":5}],["a",{"t":"x"}]]"#);
        assert_eq!(exact.first_value(), Some(FirstValue::Float(-2.0)));
        assert_eq!(exact.started_and_id(), Some((5, "x")));
        assert_eq!(exact.latest_first(), None);
        let oldest_first = key(r#"[["a",{"i":5}],["a",{"t":"x"}]]"#);
        assert_eq!(oldest_first.first_value(), Some(FirstValue::Integer(5)));
        assert_eq!(oldest_first.started_and_id(), None);
        assert_eq!(key("[]").first_value(), None);
    }

    proptest! {
        #[test]
        fn floats_come_back(number: f64) {
            prop_assert!(SortableFloat::new(number).value().partial_cmp(&number) == Some(Ordering::Equal));
        }

        #[test]
        fn floats_keep_their_order(left: f64, right: f64) {
            let order = left.partial_cmp(&right).unwrap();
            prop_assert_eq!(SortableFloat::new(left).cmp(&SortableFloat::new(right)), order);
        }

        #[test]
        fn keys_survive_json(number: f64, text: String, integer: i64) {
            let values = [SortKeyValue::float(Some(number)), SortKeyValue::Text(text), SortKeyValue::Integer(integer)];
            let cells = values.into_iter().chain([SortKeyValue::Missing, SortKeyValue::NotANumber]);
            let key = SortKey(cells.map(|cell| SortKeyPart(SortDirection::Descending, cell)).collect());
            let json = serde_json::to_string(&key).unwrap();
            prop_assert_eq!(serde_json::from_str::<SortKey>(&json).unwrap(), key);
        }
    }
}
