//! Workspaces: what separates teams on one server.

use std::fmt;

use serde::Serialize;

use crate::error::{Error, Result};

/// Shortest and longest name, in characters (`WorkspaceNameValidator` in MLflow's `store/workspace/abstract_store.py`).
const LENGTH: std::ops::RangeInclusive<usize> = 2..=63;
/// Names that are parts of paths.
const RESERVED: [&str; 4] = ["workspaces", "api", "ajax-api", "static-files"];

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
        let well_formed = LENGTH.contains(&name.len())
            && name.bytes().all(|byte| plain(byte) || byte == b'-')
            && !name.starts_with('-')
            && !name.ends_with('-')
            && !RESERVED.contains(&name);
        if well_formed {
            return Ok(Self(name.to_owned()));
        }
        Err(Error::invalid(format!("Workspace name '{name}' is not valid.")))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Workspace {
    /// The workspace of a server that has no others. Only the edges of a function may choose it; everything behind takes the
    /// workspace as a parameter.
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
    }
}
