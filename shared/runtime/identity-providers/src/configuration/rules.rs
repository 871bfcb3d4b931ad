//! Rules about claims.

use serde::{Deserialize, Serialize};

use crate::claims::Claims;
use crate::named_role::NamedRole;

/// A condition on a claim: it is one of these values, or a list that contains one of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimRule {
    /// Name of the claim. A dot leads into an object: `realm_access.roles`. A claim whose name
    /// contains a dot is found first.
    pub claim: String,
    /// The values. Compared exactly. A number or a boolean is compared with its JSON text.
    pub values: Vec<String>,
}

impl ClaimRule {
    /// Checks whether the claims satisfy the condition. An absent claim does not.
    #[must_use]
    pub fn matches(&self, claims: &Claims) -> bool {
        has_any(claims, &self.claim, &self.values)
    }
}

/// A rule that gives a role to everyone whose claim has one of these values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RoleRuleText", into = "RoleRuleText")]
pub struct RoleRule {
    /// Name of the claim, as in [`ClaimRule`].
    pub claim: String,
    /// The values. Compared exactly.
    pub values: Vec<String>,
    /// What the rule gives.
    pub gives: RoleTarget,
}

impl RoleRule {
    /// Checks whether the rule applies to a person with these claims.
    #[must_use]
    pub fn matches(&self, claims: &Claims) -> bool {
        has_any(claims, &self.claim, &self.values)
    }
}

/// What a rule gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleTarget {
    /// A role of a workspace.
    Role {
        /// Name of the role.
        role: String,
        /// Name of its workspace.
        workspace: String,
    },
    /// The rights of an administrator.
    Administrator,
}

impl RoleTarget {
    /// Returns the role, if the rule gives one.
    pub(crate) fn role(&self) -> Option<NamedRole> {
        match self {
            Self::Role { role, workspace } => Some(NamedRole { workspace: workspace.clone(), name: role.clone() }),
            Self::Administrator => None,
        }
    }
}

/// Name of the workspace of a role whose rule names none.
const DEFAULT_WORKSPACE: &str = "default";

/// A [`RoleRule`] as it is written and stored: either `role`, with or without `workspace`, or
/// `administrator = true`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RoleRuleText {
    claim: String,
    values: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    role: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    workspace: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    administrator: Option<bool>,
}

impl TryFrom<RoleRuleText> for RoleRule {
    type Error = &'static str;

    fn try_from(text: RoleRuleText) -> Result<Self, Self::Error> {
        let RoleRuleText { claim, values, role, workspace, administrator } = text;
        let gives = match (role, workspace, administrator) {
            (Some(role), workspace, None) => {
                RoleTarget::Role { role, workspace: workspace.unwrap_or_else(|| DEFAULT_WORKSPACE.to_owned()) }
            }
            (None, None, Some(true)) => RoleTarget::Administrator,
            (None, _, None) => return Err("a rule has to give either \"role\" or \"administrator = true\""),
            (None, None, Some(false)) => {
                return Err(
                    "\"administrator = false\" has no effect; remove the rule, or write \"administrator = true\"",
                );
            }
            (Some(_), _, Some(_)) => {
                return Err("a rule gives either \"role\" or \"administrator\"; write two rules to give both");
            }
            (None, Some(_), Some(_)) => return Err("an administrator has no \"workspace\"; remove it"),
        };
        Ok(Self { claim, values, gives })
    }
}

impl From<RoleRule> for RoleRuleText {
    fn from(RoleRule { claim, values, gives }: RoleRule) -> Self {
        let (role, workspace, administrator) = match gives {
            RoleTarget::Role { role, workspace } => (Some(role), Some(workspace), None),
            RoleTarget::Administrator => (None, None, Some(true)),
        };
        Self { claim, values, role, workspace, administrator }
    }
}

fn has_any(claims: &Claims, claim: &str, values: &[String]) -> bool {
    claims.values(claim).iter().any(|value| values.contains(value))
}
