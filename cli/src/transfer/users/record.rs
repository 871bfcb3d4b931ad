//! Records of users and roles.

/// A user of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UserRecord {
    /// Id of the user in the database.
    pub(super) id: i64,
    /// Name of the user.
    pub(super) name: String,
    /// Whether the user is an administrator.
    pub(super) is_admin: bool,
    /// Ids of the user's roles, in order.
    pub(super) roles: Vec<i64>,
}

/// A role of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RoleRecord {
    /// Id of the role in the database.
    pub(super) id: i64,
    /// Name of the role.
    pub(super) name: String,
    /// Name of the workspace that the role belongs to.
    pub(super) workspace: String,
    /// Description of the role.
    pub(super) description: Option<String>,
    /// Grants of the role, in the order of their ids.
    pub(super) grants: Vec<GrantRecord>,
}

impl RoleRecord {
    /// Returns the id of the user whose direct grants the role has. MLflow stores them in a role
    /// that only this user has.
    pub(super) fn user(&self) -> Option<i64> {
        self.name.strip_prefix("__user_")?.strip_suffix("__")?.parse().ok()
    }
}

/// A grant of a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GrantRecord {
    /// Type of the resource.
    pub(super) kind: String,
    /// Name of the resource, or `*`.
    pub(super) pattern: String,
    /// Name of the permission level.
    pub(super) level: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_of_one_user_is_known_by_its_name() {
        let user = |name: &str| {
            let (workspace, name) = ("default".to_owned(), name.to_owned());
            RoleRecord { id: 1, name, workspace, description: None, grants: Vec::new() }.user()
        };
        assert_eq!(user("__user_12__"), Some(12));
        for name in ["__user___", "__user_x__", "user_12", "__user_12"] {
            assert_eq!(user(name), None, "{name}");
        }
    }
}
