//! Names of the model registry.

use std::fmt;

use crate::error::Error;

/// The name of a registered model or a prompt. It may be any text: `limits_registry` of
/// `mlflow-api` checks new names, and a key encodes them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegisteredModelName(String);

impl RegisteredModelName {
    /// The name in a request.
    #[must_use]
    pub fn named(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The error for a model that is not there.
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
