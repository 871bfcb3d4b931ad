//! The roles that the rules of a provider give to a person.

use std::collections::BTreeSet;

use crate::claims::{Claims, ClaimsError};
use crate::configuration::{Provider, RoleTarget};
use crate::named_role::NamedRole;

/// What the rules of a provider give to a person, computed from the claims of one sign-in or
/// renewal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memberships {
    /// The roles.
    pub roles: BTreeSet<NamedRole>,
    /// Whether a rule makes the person an administrator.
    pub is_administrator: bool,
}

impl Memberships {
    /// Applies the rules of a provider to the claims of a person.
    ///
    /// # Errors
    /// [`ClaimsError::Overflow`] if the provider left out a claim that a rule refers to, and
    /// [`ClaimsError::NotAdmitted`] if the person does not satisfy the provider's `require`.
    pub fn of(provider: &Provider, claims: &Claims) -> Result<Self, ClaimsError> {
        provider.check_admission(claims)?;
        let mut memberships = Self::default();
        for rule in &provider.roles {
            let values = claims.rule_values(&rule.claim)?;
            if !values.iter().any(|value| rule.values.contains(value)) {
                continue;
            }
            match &rule.gives {
                RoleTarget::Role { role, workspace } => {
                    memberships.roles.insert(NamedRole { workspace: workspace.clone(), name: role.clone() });
                }
                RoleTarget::Administrator => memberships.is_administrator = true,
            }
        }
        Ok(memberships)
    }
}

#[cfg(test)]
mod tests;
