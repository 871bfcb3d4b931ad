//! Reads users and roles from a database of MLflow's basic authentication.

use std::collections::BTreeMap;

use super::{GrantRecord, RoleRecord, UserRecord};
use crate::Failure;
use crate::transfer::database::{Database, DatabaseUri};

/// Identifier of the newest migration of users (`alembic_version_auth`): that of MLflow 3.13 to 3.18.
const NEWEST: &str = "f1a2b3c4d5e6";
/// Identifiers of the earlier migrations.
const OLDER: [&str; 6] =
    ["8606fa83a998", "0965eb92f5f0", "a1b2c3d4e5f6", "2ed73881770d", "c3d4e5f6a7b8", "e5f6a7b8c9d0"];

/// A database of users.
pub(crate) struct UserDatabase(Database);

impl UserDatabase {
    /// Connects to a database.
    ///
    /// # Errors
    /// One sentence that says what is wrong: the database cannot be read, has no users, or has an
    /// older or a newer layout.
    pub(crate) async fn open(uri: &DatabaseUri) -> Result<Self, Failure> {
        let database = Database::open(uri).await?;
        let found = database.rows("SELECT version_num FROM alembic_version_auth", Vec::new()).await;
        let rows = found.map_err(|_| "the database of users has no tables of MLflow's basic authentication")?;
        let version = rows.first().map(|row| row.text(0)).transpose()?.unwrap_or_default();
        if OLDER.contains(&version.as_str()) {
            return Err(format!(
                "the database of users has the layout {version:?} of an older MLflow. Upgrade a copy of it with \
                 `python -m mlflow.server.auth db upgrade --url URI` of MLflow 3.13 or later, and import the copy"
            )
            .into());
        }
        if version != NEWEST {
            return Err(format!(
                "the database of users has the layout {version:?}, which this program does not know. Use a later version of \
                 mlflow-serverless"
            )
            .into());
        }
        Ok(Self(database))
    }

    /// Returns all users, ordered by id. Takes two queries.
    ///
    /// # Errors
    /// The database cannot be read.
    pub(super) async fn users(&self) -> Result<Vec<UserRecord>, Failure> {
        let mut users = BTreeMap::new();
        for row in self.0.rows("SELECT id, username, is_admin FROM users", Vec::new()).await? {
            let (id, name, is_admin) = (row.integer(0)?, row.text(1)?, row.boolean(2)?);
            users.insert(id, UserRecord { id, name, is_admin, roles: Vec::new() });
        }
        let sql = "SELECT user_id, role_id FROM user_role_assignments ORDER BY id";
        for row in self.0.rows(sql, Vec::new()).await? {
            if let Some(user) = users.get_mut(&row.integer(0)?) {
                user.roles.push(row.integer(1)?);
            }
        }
        Ok(users.into_values().collect())
    }

    /// Returns all roles, ordered by id. Takes two queries.
    ///
    /// # Errors
    /// The database cannot be read.
    pub(super) async fn roles(&self) -> Result<Vec<RoleRecord>, Failure> {
        let mut roles = BTreeMap::new();
        for row in self.0.rows("SELECT id, name, workspace, description FROM roles", Vec::new()).await? {
            let (id, name, workspace) = (row.integer(0)?, row.text(1)?, row.text(2)?);
            let description = row.optional_text(3)?;
            roles.insert(id, RoleRecord { id, name, workspace, description, grants: Vec::new() });
        }
        let sql = "SELECT role_id, resource_type, resource_pattern, permission FROM role_permissions ORDER BY id";
        for row in self.0.rows(sql, Vec::new()).await? {
            if let Some(role) = roles.get_mut(&row.integer(0)?) {
                role.grants.push(GrantRecord { kind: row.text(1)?, pattern: row.text(2)?, level: row.text(3)? });
            }
        }
        Ok(roles.into_values().collect())
    }
}
