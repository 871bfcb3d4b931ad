//! Requests about workspaces (`service.proto`). Their endpoints read the fields about the archive
//! of traces, which are a message in a message.

use serde_json::Value;

use crate::checks::invalid_value;
use crate::{Error, messages, python};

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
    let hint = format!(" Hint: Value was of type '{}'.", python::type_name(value));
    let refusal = invalid_value(parameter, value, &hint);
    Error::invalid(format!("{refusal} See the API docs for more information about request parameters."))
}
