//! Errors of configurations.

use std::fmt;

use thiserror::Error;

/// What is wrong with a configuration: one sentence for the operator, without a final period.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct ConfigurationError {
    /// Number of the line in the file, from 1, if it is known.
    pub line: Option<usize>,
    /// What is wrong, and how to fix it.
    pub message: String,
}

impl ConfigurationError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { line: None, message: message.into() }
    }
}

impl fmt::Display for ConfigurationError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(formatter, "line {line}: ")?;
        }
        formatter.write_str(&self.message)
    }
}
