//! The columns by which runs are indexed. Printed, a column is named as in filters.

use std::fmt;

use mlflow_api::tracking::RunStatus;

use crate::fields::{CommonFields, RUN_NAME, is_of_datasets};
use crate::range::TextRange;

/// Statuses in the order of their names.
const STATUSES: [&str; 5] = [
    RunStatus::Failed.name(),
    RunStatus::Finished.name(),
    RunStatus::Killed.name(),
    RunStatus::Running.name(),
    RunStatus::Scheduled.name(),
];

/// The latest value of a metric. There is a list by each, and some runs may have nothing there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metric(pub String);

/// A text that runs are indexed by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunColumn {
    /// The run name.
    Name,
    /// The status.
    Status,
    /// When it ended, in its form in keys.
    EndTime,
    /// A param.
    Param(String),
    /// Any other text, by its field. A run may have several values of a field of datasets; one of
    /// them has to pass.
    Field(String),
}

impl RunColumn {
    /// Whether there is a list by its values.
    pub(super) fn is_listed(&self, fields: &CommonFields) -> bool {
        match self {
            Self::Name | Self::Status | Self::EndTime | Self::Param(_) => true,
            Self::Field(field) => fields.has_value(field),
        }
    }

    /// Whether some runs have nothing there.
    pub(super) fn may_be_missing(&self) -> bool {
        matches!(self, Self::EndTime | Self::Param(_) | Self::Field(_))
    }

    /// Whether a run may have several values of it. Then any of them may pass.
    pub(super) fn may_be_several(&self) -> bool {
        matches!(self, Self::Field(field) if is_of_datasets(field))
    }

    /// The field by whose tokens runs are found, if they are.
    pub(super) fn text_field(&self, fields: &CommonFields) -> Option<String> {
        let field = match self {
            Self::Name => RUN_NAME.to_owned(),
            Self::Status | Self::EndTime => return None,
            Self::Param(key) => format!("params.{key}"),
            Self::Field(field) => field.clone(),
        };
        fields.has_text(&field).then_some(field)
    }

    /// All values it can have, in their order, if these are few: then there is a list for each.
    /// None otherwise.
    pub(super) fn values(&self) -> &'static [&'static str] {
        if *self == Self::Status { &STATUSES } else { &[] }
    }

    /// The part of all runs that have one of these texts, if nothing else is known.
    pub(super) fn share(&self, range: &TextRange) -> f64 {
        let of_one_text = match (self, range) {
            (Self::Status, TextRange::Equal(status)) if status == RunStatus::Finished.name() => 0.8,
            (Self::Name, _) => 0.01,
            _ => 0.1,
        };
        match range {
            TextRange::Equal(_) => of_one_text,
            TextRange::Prefix(beginning) if beginning.is_empty() => 0.8,
            TextRange::Prefix(_) => of_one_text * 2.0,
        }
    }
}

impl fmt::Display for RunColumn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name => formatter.write_str("name"),
            Self::Status => formatter.write_str("status"),
            Self::EndTime => formatter.write_str("end_time"),
            Self::Param(key) => write!(formatter, "params.`{key}`"),
            Self::Field(field) => formatter.write_str(field),
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "metrics.`{}`", self.0)
    }
}
