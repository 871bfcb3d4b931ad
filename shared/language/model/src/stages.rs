//! Statuses and stages of entities.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::error::{Error, Result};

/// The lifecycle stage of an experiment, a run or a logged model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LifecycleStage {
    /// In use.
    #[default]
    Active,
    /// Deleted, but not permanently.
    Deleted,
}

impl LifecycleStage {
    /// Returns the name of the stage.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Deleted => "deleted",
        }
    }

    /// Returns the stage with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Active, Self::Deleted].into_iter().find(|stage| stage.name() == name)
    }
}

/// The status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum RunStatus {
    /// In progress.
    Running,
    /// To be started later.
    Scheduled,
    /// Ended successfully.
    Finished,
    /// Ended with an error.
    Failed,
    /// Ended by the user.
    Killed,
}

impl RunStatus {
    const ALL: [Self; 5] = [Self::Running, Self::Scheduled, Self::Finished, Self::Failed, Self::Killed];

    /// Returns the name of the status.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "RUNNING",
            Self::Scheduled => "SCHEDULED",
            Self::Finished => "FINISHED",
            Self::Failed => "FAILED",
            Self::Killed => "KILLED",
        }
    }

    /// Returns the status with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Checks whether a run with this status has ended.
    #[must_use]
    pub fn has_ended(self) -> bool {
        !matches!(self, Self::Running | Self::Scheduled)
    }
}

/// The state of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum TraceState {
    /// No state has been reported.
    #[default]
    #[serde(rename = "STATE_UNSPECIFIED")]
    Unspecified,
    /// Ended successfully.
    #[serde(rename = "OK")]
    Ok,
    /// Ended with an error.
    #[serde(rename = "ERROR")]
    Error,
    /// Has not ended.
    #[serde(rename = "IN_PROGRESS")]
    InProgress,
}

impl TraceState {
    /// All states, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Unspecified, Self::Ok, Self::Error, Self::InProgress];

    /// Returns the name of the state.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unspecified => "STATE_UNSPECIFIED",
            Self::Ok => "OK",
            Self::Error => "ERROR",
            Self::InProgress => "IN_PROGRESS",
        }
    }

    /// Returns the name of the state in version 2 of the API.
    #[must_use]
    pub const fn status(self) -> &'static str {
        match self {
            Self::Unspecified => "TRACE_STATUS_UNSPECIFIED",
            other => other.name(),
        }
    }

    /// Returns the state with exactly this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Converts the JSON value of a state, which is its name or its number. Returns `None` for
    /// other values.
    #[must_use]
    pub fn read(value: &Value) -> Option<Self> {
        match value {
            Value::String(name) => Self::from_name(name),
            Value::Number(number) => Self::ALL.get(usize::try_from(number.as_u64()?).ok()?).copied(),
            _ => None,
        }
    }
}

/// The stage of a model version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum ModelStage {
    /// No stage has been assigned.
    None,
    /// On trial.
    Staging,
    /// In use.
    Production,
    /// No longer in use.
    Archived,
}

impl ModelStage {
    /// All stages, in MLflow's order.
    pub const ALL: [Self; 4] = [Self::None, Self::Staging, Self::Production, Self::Archived];

    /// Returns the name of the stage.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Staging => "Staging",
            Self::Production => "Production",
            Self::Archived => "Archived",
        }
    }

    /// Returns the stage with exactly this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.name() == name)
    }

    /// Parses the name of a stage in a request, ignoring case (`get_canonical_stage`).
    pub fn parse(text: &str) -> Result<Self> {
        let lower = text.to_lowercase();
        Self::ALL.into_iter().find(|stage| stage.name().to_lowercase() == lower).ok_or_else(|| {
            Error::invalid(format!(
                "Invalid Model Version stage: {text}. Value must be one of None, Staging, Production, Archived."
            ))
        })
    }

    /// Checks whether existing versions in the stage can be archived when another version is moved
    /// to it.
    #[must_use]
    pub const fn is_active(self) -> bool {
        matches!(self, Self::Staging | Self::Production)
    }
}

impl fmt::Display for ModelStage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
