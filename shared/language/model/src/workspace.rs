//! Workspaces: they separate teams on one server.

use std::fmt;

use serde::Serialize;

use crate::error::{Error, Result};

/// Shortest and longest name, in characters (`WorkspaceNameValidator` in MLflow's `store/workspace/abstract_store.py`).
const LENGTH: std::ops::RangeInclusive<usize> = 2..=63;
/// Names that are parts of paths.
const RESERVED: [&str; 4] = ["workspaces", "api", "ajax-api", "static-files"];

/// Begins the name of a workspace whose contents are being removed.
const REMOVED: &str = ".";

/// The name of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Workspace(String);

impl Workspace {
    /// Takes a name by MLflow's grammar: small letters, digits and hyphens, neither first nor last a hyphen.
    ///
    /// # Errors
    /// `INVALID_PARAMETER_VALUE` for any other.
    pub fn parse(name: &str) -> Result<Self> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        if !LENGTH.contains(&name.chars().count()) {
            let (shortest, longest) = (LENGTH.start(), LENGTH.end());
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
        if RESERVED.contains(&name) {
            return Err(Error::invalid(format!("Workspace name '{name}' is reserved and cannot be used.")));
        }
        Ok(Self(name.to_owned()))
    }

    /// The workspace that an item names: one of MLflow's grammar, or one that is being removed
    /// ([`for_removal`](Self::for_removal)).
    ///
    /// # Errors
    /// `INVALID_PARAMETER_VALUE` for any other.
    pub fn stored(name: &str) -> Result<Self> {
        let id = name.strip_prefix(REMOVED);
        let is_id = id.is_some_and(|id| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        if is_id { Ok(Self(name.to_owned())) } else { Self::parse(name) }
    }

    /// Where to everything goes that is in a workspace of this id when it is removed. No request can name it: the name is none of MLflow's
    /// grammar.
    #[must_use]
    pub fn for_removal(id: &str) -> Self {
        Self(format!("{REMOVED}{id}"))
    }

    /// Whether it is one that no request can name, and whose contents are to be removed.
    #[must_use]
    pub fn is_for_removal(&self) -> bool {
        self.0.starts_with(REMOVED)
    }

    /// MLflow's error for one that is not there.
    #[must_use]
    pub fn not_found(&self) -> Error {
        Error::not_found(format!("Workspace '{self}' not found"))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Workspace {
    /// The workspace of a server that has no others. Only the edges of a function may choose it;
    /// all other code takes the workspace as a parameter.
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
