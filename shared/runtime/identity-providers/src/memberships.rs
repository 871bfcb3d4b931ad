//! The roles that the rules of a provider give to a person.

use std::collections::BTreeSet;

/// A role of this server, by its name in a workspace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamedRole {
    /// Name of the workspace.
    pub workspace: String,
    /// Name of the role.
    pub name: String,
}

/// What the rules of a provider give to a person, computed from the claims of one sign-in or
/// renewal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memberships {
    /// The roles.
    pub roles: BTreeSet<NamedRole>,
    /// Whether a rule makes the person an administrator.
    pub is_administrator: bool,
}
