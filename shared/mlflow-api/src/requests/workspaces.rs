//! Requests about workspaces (`service.proto`). What they say of the archive of traces is a message in a message, which their endpoints read.

use serde_json::Value;

use crate::error::Error;
use crate::messages;

messages! {
    /// `POST workspaces`
    CreateWorkspace {
        name: String [Required, Text],
        description: Option<String> [Text],
        default_artifact_root: Option<String> [Text],
    }
    /// `PATCH workspaces/{workspace_name}`
    UpdateWorkspace {
        description: Option<String> [Text],
        default_artifact_root: Option<String> [Text],
    }
}

/// MLflow's refusal of a value of another type.
#[must_use]
pub fn wrong(parameter: &str, value: &Value) -> Error {
    Error::invalid(format!(
        "Invalid value {} for parameter '{parameter}' supplied. See the API docs for more information about request parameters.",
        crate::python::data(value)
    ))
}
