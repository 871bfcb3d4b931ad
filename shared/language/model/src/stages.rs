//! Statuses and stages of entities.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::error::{Error, Result};

/// Lifecycle stage of an experiment or a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LifecycleStage {
    /// In use.
    #[default]
    Active,
    /// Deleted, and not yet beyond recall.
    Deleted,
}

impl LifecycleStage {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Deleted => "deleted",
        }
    }

    /// The stage of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Active, Self::Deleted].into_iter().find(|stage| stage.name() == name)
    }
}

/// Status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum RunStatus {
    /// In progress.
    Running,
    /// To start later.
    Scheduled,
    /// Ended well.
    Finished,
    /// Ended badly.
    Failed,
    /// Ended by the user.
    Killed,
}

impl RunStatus {
    const ALL: [Self; 5] = [Self::Running, Self::Scheduled, Self::Finished, Self::Failed, Self::Killed];

    /// Its name.
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

    /// The status of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Whether a run of this status has ended.
    #[must_use]
    pub fn has_ended(self) -> bool {
        !matches!(self, Self::Running | Self::Scheduled)
    }
}

/// The outcome of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum TraceState {
    /// Nobody has said.
    #[default]
    #[serde(rename = "STATE_UNSPECIFIED")]
    Unspecified,
    /// It went well.
    #[serde(rename = "OK")]
    Ok,
    /// It failed.
    #[serde(rename = "ERROR")]
    Error,
    /// It has not ended.
    #[serde(rename = "IN_PROGRESS")]
    InProgress,
}

impl TraceState {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Unspecified, Self::Ok, Self::Error, Self::InProgress];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unspecified => "STATE_UNSPECIFIED",
            Self::Ok => "OK",
            Self::Error => "ERROR",
            Self::InProgress => "IN_PROGRESS",
        }
    }

    /// Its name in the second version.
    #[must_use]
    pub const fn status(self) -> &'static str {
        match self {
            Self::Unspecified => "TRACE_STATUS_UNSPECIFIED",
            other => other.name(),
        }
    }

    /// The state of exactly this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// The state that JSON has as its name or its number; none, where it is neither.
    #[must_use]
    pub fn read(value: &Value) -> Option<Self> {
        match value {
            Value::String(name) => Self::from_name(name),
            Value::Number(number) => Self::ALL.get(usize::try_from(number.as_u64()?).ok()?).copied(),
            _ => None,
        }
    }
}

/// Stage of a model version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum ModelStage {
    /// None yet.
    None,
    /// On trial.
    Staging,
    /// In use.
    Production,
    /// No longer in use.
    Archived,
}

impl ModelStage {
    /// All of them, in MLflow's order.
    pub const ALL: [Self; 4] = [Self::None, Self::Staging, Self::Production, Self::Archived];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Staging => "Staging",
            Self::Production => "Production",
            Self::Archived => "Archived",
        }
    }

    /// The stage of exactly this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.name() == name)
    }

    /// The stage a client names, in any case (`get_canonical_stage`).
    pub fn parse(text: &str) -> Result<Self> {
        let lower = text.to_lowercase();
        Self::ALL.into_iter().find(|stage| stage.name().to_lowercase() == lower).ok_or_else(|| {
            Error::invalid(format!(
                "Invalid Model Version stage: {text}. Value must be one of None, Staging, Production, Archived."
            ))
        })
    }

    /// Whether earlier versions in the stage can be archived when another one comes.
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
