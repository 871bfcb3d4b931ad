//! Requests about workspaces (`service.proto`). The fields about the archival of traces are nested
//! messages, which the endpoints read themselves.

use serde_json::Value;

use crate::checks::invalid_value;
use crate::{Error, messages, python};

messages! {
    /// The request message of `POST workspaces`.
    CreateWorkspace {
        name: String [Required, Text],
        description: Option<String> [Text],
        default_artifact_root: Option<String> [Text],
    }
    /// The request message of `PATCH workspaces/{workspace_name}`.
    UpdateWorkspace {
        description: Option<String> [Text],
        default_artifact_root: Option<String> [Text],
    }
}

/// Returns MLflow's error for a value of the wrong type.
#[must_use]
pub fn wrong(parameter: &str, value: &Value) -> Error {
    let hint = format!(" Hint: Value was of type '{}'.", python::type_name(value));
    let refusal = invalid_value(parameter, value, &hint);
    Error::invalid(format!("{refusal} See the API docs for more information about request parameters."))
}
