//! Imports users, roles and grants.

use std::collections::HashMap;

use auth::store::{Imported, Store};
use mlflow_api::auth::{GrantType, PermissionLevel, parse_grant};
use mlflow_api::{Error, ErrorCode, UserName, Workspace};

use super::{GRANTS, GrantRecord, ROLES, RoleRecord, USERS, UserDatabase, UserRecord};
use crate::Failure;
use crate::transfer::import::{IdKind, ImportReport, RemappedIds};

/// Imports the users of a database with their roles. Roles are imported first, so that a user whose
/// import is complete has all of them.
///
/// Takes a few requests per user, role and grant. In a dry run, only counts users and roles.
///
/// # Errors
/// The database cannot be read, or the tables cannot be read or written. What cannot be imported is
/// reported.
pub(crate) async fn import(
    database: &UserDatabase,
    store: &Store,
    remapped: &RemappedIds,
    report: &ImportReport,
    is_dry_run: bool,
) -> Result<(), Failure> {
    let (users, roles) = (database.users().await?, database.roles().await?);
    let (own, shared): (Vec<_>, Vec<_>) = roles.into_iter().partition(|role| role.user().is_some());
    if is_dry_run {
        report.imported(USERS, users.len() as u64);
        report.imported(ROLES, shared.len() as u64);
        return Ok(());
    }
    let importer = UserImporter { store, remapped, report };
    let ids = importer.roles(&shared).await?;
    for user in &users {
        let own: Vec<_> = own.iter().filter(|role| role.user() == Some(user.id)).collect();
        importer.user(user, &ids, &own).await?;
    }
    Ok(())
}

struct UserImporter<'a> {
    store: &'a Store,
    remapped: &'a RemappedIds,
    report: &'a ImportReport,
}

impl UserImporter<'_> {
    /// Imports roles, and returns the ids that they have on this server, by their ids in the
    /// database.
    async fn roles(&self, roles: &[RoleRecord]) -> Result<HashMap<i64, u32>, Failure> {
        let known: Vec<_> =
            self.store.roles().await.map_err(internal)?.iter().map(auth::store::StoredRole::answer).collect();
        let mut ids = HashMap::new();
        for role in roles {
            let label = format!("{} in workspace {}", role.name, role.workspace);
            let description = role.description.as_deref();
            let created = self.store.import_role(&known, &role.name, &role.workspace, description).await;
            let id = match self.unless_refused(ROLES, &label, created)? {
                None => continue,
                Some(Imported::Existing(id)) => {
                    self.report.existing(ROLES, &label);
                    ids.insert(role.id, id);
                    continue;
                }
                Some(Imported::Incomplete(id)) => id,
            };
            ids.insert(role.id, id);
            for grant in &role.grants {
                let label = grant_label(grant, &label);
                let Some((kind, pattern, level)) = self.grant(&role.workspace, grant, &label) else { continue };
                let granted = self.store.import_role_grant(id, (kind, &pattern), level).await;
                if self.unless_refused(GRANTS, &label, granted)?.is_some() {
                    self.report.imported(GRANTS, 1);
                }
            }
            self.store.import_role_end(id).await.map_err(internal)?;
            self.report.imported(ROLES, 1);
        }
        Ok(ids)
    }

    /// Imports a user. `own` has the roles of the database that hold the user's direct grants, one
    /// for each workspace.
    async fn user(&self, user: &UserRecord, roles: &HashMap<i64, u32>, own: &[&RoleRecord]) -> Result<(), Failure> {
        let Some(name) = self.unless_refused(USERS, &user.name, UserName::new(&user.name))? else { return Ok(()) };
        match self.store.import_user(&name, user.is_admin).await.map_err(internal)? {
            Imported::Existing(_) => {
                self.report.existing(USERS, &user.name);
                return Ok(());
            }
            Imported::Incomplete(_) => {}
        }
        for role in user.roles.iter().filter_map(|role| roles.get(role)) {
            let label = format!("a role of {}", user.name);
            let assigned = self.store.import_assignment(&name, *role).await;
            self.unless_refused(ROLES, &label, assigned)?;
        }
        for role in own {
            self.own_grants(&name, role).await?;
        }
        self.store.import_user_end(&name).await.map_err(internal)?;
        self.report.imported(USERS, 1);
        Ok(())
    }

    /// Imports the direct grants of a user in a workspace. A grant for the workspace itself becomes
    /// a role, because on this server only roles can have such grants.
    async fn own_grants(&self, name: &UserName, role: &RoleRecord) -> Result<(), Failure> {
        let label = format!("{name} in workspace {}", role.workspace);
        let Some(workspace) = self.unless_refused(GRANTS, &label, Workspace::parse(&role.workspace))? else {
            return Ok(());
        };
        for grant in &role.grants {
            let label = grant_label(grant, &label);
            let Some((kind, pattern, level)) = self.grant(&role.workspace, grant, &label) else { continue };
            let granted = if kind == GrantType::Workspace {
                self.workspace_grant(name, &role.workspace, level).await
            } else {
                self.store.import_grant(name, &workspace, (kind, &pattern), level).await
            };
            if self.unless_refused(GRANTS, &label, granted)?.is_some() {
                self.report.imported(GRANTS, 1);
            }
        }
        Ok(())
    }

    /// Grants a user access to a workspace, through a role whose only member is the user.
    async fn workspace_grant(&self, name: &UserName, workspace: &str, level: PermissionLevel) -> Result<(), Error> {
        let known: Vec<_> = self.store.roles().await?.iter().map(auth::store::StoredRole::answer).collect();
        let role = format!("{} of {name}", level.name());
        let description = Some("Imported grant of one user");
        let (Imported::Incomplete(id) | Imported::Existing(id)) =
            self.store.import_role(&known, &role, workspace, description).await?;
        self.store.import_role_grant(id, (GrantType::Workspace, "*"), level).await?;
        self.store.import_role_end(id).await?;
        self.store.import_assignment(name, id).await
    }

    /// Returns a grant, with the name or id that its resource has in the table. If this server does
    /// not have such grants, reports the reason and returns `None`.
    fn grant(&self, workspace: &str, grant: &GrantRecord, label: &str) -> Option<(GrantType, String, PermissionLevel)> {
        let (level, kind) = match parse_grant(&grant.level, &grant.kind) {
            Ok(parsed) => parsed,
            Err(error) => {
                self.report.omitted(GRANTS, label, because(&error));
                return None;
            }
        };
        let pattern = &grant.pattern;
        let pattern = match kind {
            _ if pattern == "*" => pattern.clone(),
            GrantType::Experiment => self.remapped.resolve(IdKind::Experiment, pattern),
            GrantType::Scorer => match pattern.split_once('/') {
                Some((experiment, name)) => {
                    format!("{}/{name}", self.remapped.resolve(IdKind::Experiment, experiment))
                }
                None => pattern.clone(),
            },
            GrantType::RegisteredModel | GrantType::Prompt => self.name(IdKind::RegisteredModel, workspace, pattern),
            GrantType::McpServer => self.name(IdKind::McpServer, workspace, pattern),
            GrantType::Skill => self.name(IdKind::Skill, workspace, pattern),
            _ => pattern.clone(),
        };
        Some((kind, pattern, level))
    }

    /// Returns the name that an entity of a workspace has in the table.
    fn name(&self, kind: IdKind, workspace: &str, name: &str) -> String {
        let place = format!("{workspace}/{name}");
        let resolved = self.remapped.resolve(kind, &place);
        if resolved == place { name.to_owned() } else { resolved }
    }

    /// Returns the value of an outcome. If this server refuses the entity, reports it and returns
    /// `None`.
    fn unless_refused<T>(
        &self,
        kind: &'static str,
        label: &str,
        outcome: Result<T, Error>,
    ) -> Result<Option<T>, Failure> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.code == ErrorCode::InternalError => Err(internal(error)),
            Err(error) => {
                self.report.omitted(kind, label, because(&error));
                Ok(None)
            }
        }
    }
}

fn grant_label(grant: &GrantRecord, of: &str) -> String {
    format!("{} for {} {} of {of}", grant.level, grant.kind, grant.pattern)
}

fn because(error: &Error) -> String {
    format!("because this server refuses it ({})", error.message.trim_end_matches('.'))
}

fn internal(error: Error) -> Failure {
    error.cause.unwrap_or(error.message).into()
}
