//! The parts of a table that settings apply to, and values that several settings share.

use std::fmt;

use mlflow_api::{Error, ExperimentId, Workspace};

use super::settings::SettingScope;
use crate::Failure;

/// Value that removes the limit of a duration or an amount.
pub(super) const UNLIMITED: &str = "off";
/// Value of an empty list, such as a list of field patterns that matches no field.
pub(super) const EMPTY_LIST: &str = "none";

/// Part of the table that a value applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SettingHolder {
    Server,
    Workspace(Workspace),
    Experiment(ExperimentId),
}

impl SettingHolder {
    pub(super) fn scope(&self) -> SettingScope {
        match self {
            Self::Server => SettingScope::Server,
            Self::Workspace(_) => SettingScope::Workspace,
            Self::Experiment(_) => SettingScope::Experiment,
        }
    }
}

impl fmt::Display for SettingHolder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server => formatter.write_str("server"),
            Self::Workspace(name) => write!(formatter, "workspace {name}"),
            Self::Experiment(id) => write!(formatter, "experiment {id}"),
        }
    }
}

/// Formats an error together with its internal cause, because the reader is the operator.
pub(super) fn failed(error: Error) -> Failure {
    let cause = error.cause.map(|cause| format!(" ({cause})"));
    format!("{}{}", error.message, cause.unwrap_or_default()).into()
}
