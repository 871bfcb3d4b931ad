//! Workspaces, which separate teams on one server.

use std::fmt;

use serde::Serialize;

use crate::error::{Error, Result};

/// The range of lengths of a name, in characters (`WorkspaceNameValidator` in MLflow's
/// `store/workspace/abstract_store.py`).
const NAME_LENGTH: std::ops::RangeInclusive<usize> = 2..=63;
/// Reserved names, which occur in paths.
const RESERVED_NAMES: [&str; 4] = ["workspaces", "api", "ajax-api", "static-files"];

/// Prefix of the names of workspaces whose contents are being removed.
const REMOVED_PREFIX: &str = ".";

/// The name of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Workspace(String);

impl Workspace {
    /// Parses a name according to MLflow's grammar: lower-case letters, digits and hyphens, without
    /// a hyphen at the beginning or at the end.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` for any other name.
    pub fn parse(name: &str) -> Result<Self> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        if !NAME_LENGTH.contains(&name.chars().count()) {
            let (shortest, longest) = (NAME_LENGTH.start(), NAME_LENGTH.end());
            let message = format!("Workspace name '{name}' must be between {shortest} and {longest} characters.");
            return Err(Error::invalid(message));
        }
        let is_well_formed =
            name.bytes().all(|byte| plain(byte) || byte == b'-') && !name.starts_with('-') && !name.ends_with('-');
        if !is_well_formed {
            return Err(Error::invalid(format!(
                "Workspace name '{name}' must match the pattern ^[a-z0-9]([-a-z0-9]*[a-z0-9])?$ (lowercase alphanumeric \
                 with optional internal hyphens)."
            )));
        }
        if RESERVED_NAMES.contains(&name) {
            return Err(Error::invalid(format!("Workspace name '{name}' is reserved and cannot be used.")));
        }
        Ok(Self(name.to_owned()))
    }

    /// Parses the name in an item, which either matches MLflow's grammar or belongs to a workspace
    /// that is being removed ([`for_removal`](Self::for_removal)).
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` for any other name.
    pub fn stored(name: &str) -> Result<Self> {
        let id = name.strip_prefix(REMOVED_PREFIX);
        let is_id = id.is_some_and(|id| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        if is_id { Ok(Self(name.to_owned())) } else { Self::parse(name) }
    }

    /// Returns the workspace that the contents of a workspace are moved to when it is removed,
    /// given an id for the removal. Requests cannot refer to it, because its name does not match
    /// MLflow's grammar.
    #[must_use]
    pub fn for_removal(id: &str) -> Self {
        Self(format!("{REMOVED_PREFIX}{id}"))
    }

    /// Checks whether this is a workspace that requests cannot refer to, and whose contents are to
    /// be removed.
    #[must_use]
    pub fn is_for_removal(&self) -> bool {
        self.0.starts_with(REMOVED_PREFIX)
    }

    /// Returns MLflow's error for a workspace that does not exist.
    #[must_use]
    pub fn not_found(&self) -> Error {
        Error::not_found(format!("Workspace '{self}' not found"))
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Workspace {
    /// Returns the default workspace, to which a server without multiple workspaces is limited.
    /// Only the entry points of a function may choose it. All other code takes the workspace as a
    /// parameter.
    fn default() -> Self {
        Self("default".to_owned())
    }
}

impl fmt::Display for Workspace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_grammar() {
        for name in ["default", "a1", "team-a", &"a".repeat(63)] {
            assert_eq!(Workspace::parse(name).unwrap().as_str(), name);
        }
        for name in ["", "a", "-a", "a-", "A1", "a_b", "a#b", "api", &"a".repeat(64)] {
            assert!(Workspace::parse(name).is_err(), "{name}");
        }
        assert_eq!(Workspace::parse("default").unwrap(), Workspace::default());
        let removed = Workspace::for_removal("01J");
        assert!(removed.is_for_removal() && Workspace::parse(removed.as_str()).is_err());
        assert_eq!(Workspace::stored(removed.as_str()), Ok(removed));
        assert!(Workspace::stored(".").is_err() && Workspace::stored(".a#b").is_err());
    }
}
