//! The columns by which runs are indexed. The `Display` form of a column is its name in filters.

use std::fmt;

use mlflow_api::tracking::RunStatus;

use crate::fields::{CommonFields, RUN_NAME, is_of_datasets};
use crate::range::TextRange;

/// All statuses, sorted by name.
const STATUSES: [&str; 5] = [
    RunStatus::Failed.name(),
    RunStatus::Finished.name(),
    RunStatus::Killed.name(),
    RunStatus::Running.name(),
    RunStatus::Scheduled.name(),
];

/// A metric, as a column with the latest value of each run. Runs without the metric have no value.
/// The index has a list for each metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricColumn(pub String);

/// A text column by which runs are indexed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunColumn {
    /// The run name.
    Name,
    /// The status.
    Status,
    /// The end time, as it is encoded in keys.
    EndTime,
    /// A param.
    Param(String),
    /// Any other text, identified by its field. A run may have several values of a dataset field.
    /// The run passes a condition if one of the values does.
    Field(String),
}

impl RunColumn {
    /// Checks whether there is a list of this column's values.
    pub(super) fn is_listed(&self, fields: &CommonFields) -> bool {
        match self {
            Self::Name | Self::Status | Self::EndTime | Self::Param(_) => true,
            Self::Field(field) => fields.has_value(field),
        }
    }

    /// Checks whether some runs may have no value in this column.
    pub(super) fn may_be_missing(&self) -> bool {
        matches!(self, Self::EndTime | Self::Param(_) | Self::Field(_))
    }

    /// Checks whether a run may have several values in this column. If so, one passing value is
    /// sufficient.
    pub(super) fn may_be_several(&self) -> bool {
        matches!(self, Self::Field(field) if is_of_datasets(field))
    }

    /// Returns the field whose tokens are indexed for this column, or `None` if they are not
    /// indexed.
    pub(super) fn text_field(&self, fields: &CommonFields) -> Option<String> {
        let field = match self {
            Self::Name => RUN_NAME.to_owned(),
            Self::Status | Self::EndTime => return None,
            Self::Param(key) => format!("params.{key}"),
            Self::Field(field) => field.clone(),
        };
        fields.has_text(&field).then_some(field)
    }

    /// Returns all possible values in sorted order, for a column with few possible values, which
    /// has a list for each value. Returns an empty slice for any other column.
    pub(super) fn values(&self) -> &'static [&'static str] {
        if *self == Self::Status { &STATUSES } else { &[] }
    }

    /// Returns the assumed share of runs that have a text in this range. It is used if nothing more
    /// is known about the column.
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

impl fmt::Display for MetricColumn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "metrics.`{}`", self.0)
    }
}
