//! Names of roles.

/// A role of this server, by its name in a workspace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamedRole {
    /// Name of the workspace.
    pub workspace: String,
    /// Name of the role.
    pub name: String,
}
