//! Names in the model registry.

use std::fmt;

use crate::error::Error;

/// The name of a registered model or a prompt. It may be any text, because new names are checked by
/// `limits_registry` in `mlflow-api`, and keys encode the name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegisteredModelName(String);

impl RegisteredModelName {
    /// Takes the name in a request.
    #[must_use]
    pub fn named(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the error for a model that does not exist.
    #[must_use]
    pub fn not_found(&self) -> Error {
        Error::not_found(format!("Registered Model with name={self} not found"))
    }
}

impl fmt::Display for RegisteredModelName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
