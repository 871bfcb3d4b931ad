//! Stored grants of users. Their rows are in the data table, in the partition of the user.

use std::fmt;

use key_schema::attributes::{EXPERIMENT, LEVEL, LEVELS, NAME, RESOURCE, USER_ID};
use key_schema::index::{PermissionsOfExperiment, PermissionsOfModel, PermissionsOfPrompt, PermissionsOfScorer};
use key_schema::rows::RowDescription;
use key_schema::{Field, Key, ModelKey, Name, rows};
use mlflow_api::auth::{GrantType, PermissionLevel};
use mlflow_api::{ExperimentId, McpServerName, SkillName, UserName, Workspace};
use table::{Item, number, text};

use crate::workspace_ref::WorkspaceRef;

/// A resource that grants can be made for. A registered model or a prompt is identified by its home
/// ([`ModelKey`](key_schema::ModelKey)), which does not change when it is renamed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GrantedResource {
    /// An experiment.
    Experiment(ExperimentId),
    /// A registered model.
    RegisteredModel(String),
    /// A prompt.
    Prompt(String),
    /// A scorer of an experiment.
    Scorer(ExperimentId, String),
    /// An MCP server of a workspace.
    McpServer(Workspace, McpServerName),
    /// A skill of a workspace.
    Skill(Workspace, SkillName),
}

impl GrantedResource {
    /// Returns the type of the resource.
    #[must_use]
    pub const fn kind(&self) -> GrantType {
        match self {
            Self::Experiment(_) => GrantType::Experiment,
            Self::RegisteredModel(_) => GrantType::RegisteredModel,
            Self::Prompt(_) => GrantType::Prompt,
            Self::Scorer(..) => GrantType::Scorer,
            Self::McpServer(..) => GrantType::McpServer,
            Self::Skill(..) => GrantType::Skill,
        }
    }
}

impl fmt::Display for GrantedResource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Experiment(experiment) => experiment.fmt(formatter),
            Self::RegisteredModel(name) | Self::Prompt(name) | Self::Scorer(_, name) => formatter.write_str(name),
            Self::McpServer(_, name) => name.fmt(formatter),
            Self::Skill(_, name) => name.fmt(formatter),
        }
    }
}

/// Returns the key of a user's grant for a resource.
#[must_use]
pub fn grant_key(user: &UserName, resource: &GrantedResource) -> Key {
    match resource {
        GrantedResource::Experiment(experiment) => rows::ExperimentPermission::key(user, experiment),
        GrantedResource::RegisteredModel(home) => rows::ModelPermission::key(user, &ModelKey::from(home.as_str())),
        GrantedResource::Prompt(home) => rows::PromptPermission::key(user, &ModelKey::from(home.as_str())),
        GrantedResource::Scorer(experiment, name) => {
            rows::ScorerPermission::key(user, experiment, &Name::from(name.as_str()))
        }
        GrantedResource::McpServer(workspace, name) => {
            rows::McpServerPermission::key(user, &Name::from(workspace.as_str()), name)
        }
        GrantedResource::Skill(workspace, name) => {
            rows::SkillPermission::key(user, &Name::from(workspace.as_str()), name)
        }
    }
}

/// Returns the key of a grant for a resource that does not exist. Such a grant has no effect.
#[must_use]
pub fn missing_resource_grant_key(user: &UserName, kind: GrantType, resource: &str) -> Key {
    rows::OtherPermission::key(user, &Field::from(kind.name()), &Name::from(resource))
}

/// A user's grant for a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredGrant {
    /// The resource.
    pub target: GrantedResource,
    /// The user's id.
    pub user_id: u32,
    /// Id that distinguishes the resource from others with the same name.
    pub resource: String,
    /// Level of the grant.
    pub level: PermissionLevel,
}

impl StoredGrant {
    /// Returns the grant's item in the partition of its user.
    #[must_use]
    pub fn item(&self, user: &UserName) -> Item {
        let item = Item::new(grant_key(user, &self.target))
            .with(USER_ID, number(self.user_id))
            .with(RESOURCE, text(&self.resource))
            .with(NAME, text(self.target.to_string()))
            .with(LEVEL, text(self.level.name()));
        match &self.target {
            GrantedResource::Experiment(experiment) => item.indexed(PermissionsOfExperiment::key(experiment, user)),
            GrantedResource::RegisteredModel(home) => {
                item.indexed(PermissionsOfModel::key(&ModelKey::from(home.as_str()), user))
            }
            GrantedResource::Prompt(home) => {
                item.indexed(PermissionsOfPrompt::key(&ModelKey::from(home.as_str()), user))
            }
            GrantedResource::Scorer(experiment, name) => item
                .with(EXPERIMENT, text(experiment.to_string()))
                .indexed(PermissionsOfScorer::key(experiment, &Name::from(name.as_str()), user)),
            GrantedResource::McpServer(..) | GrantedResource::Skill(..) => item,
        }
    }

    /// Reads a grant from its item. Returns `None` if the item is not a grant for a resource, or if
    /// its level is unknown.
    #[must_use]
    pub fn of(item: &Item) -> Option<Self> {
        let key = item.key()?;
        let name = item.get(NAME)?.to_owned();
        let is_of = |row: RowDescription| (row.has_form)(&key);
        let on = if let Some(row) = rows::ExperimentPermission::parse(&key) {
            GrantedResource::Experiment(row.experiment)
        } else if is_of(rows::ModelPermission::DESCRIPTION) {
            GrantedResource::RegisteredModel(name)
        } else if is_of(rows::PromptPermission::DESCRIPTION) {
            GrantedResource::Prompt(name)
        } else if is_of(rows::ScorerPermission::DESCRIPTION) {
            GrantedResource::Scorer(item.get(EXPERIMENT)?, name)
        } else if let Some(row) = rows::McpServerPermission::parse(&key) {
            GrantedResource::McpServer(Workspace::stored(&row.workspace.0).ok()?, row.server)
        } else if let Some(row) = rows::SkillPermission::parse(&key) {
            GrantedResource::Skill(Workspace::stored(&row.workspace.0).ok()?, row.skill)
        } else {
            return None;
        };
        Some(Self {
            target: on,
            user_id: item.get(USER_ID)?,
            resource: item.get(RESOURCE)?.to_owned(),
            level: PermissionLevel::from_name(item.get(LEVEL)?)?,
        })
    }
}

/// Returns the id of a resource as a grant stores it. It begins with the name of the workspace, so
/// that the grant has no effect in other workspaces. The id of the workspace is not needed, because
/// ids of resources are never reused.
#[must_use]
pub fn grant_resource_id(workspace: &Workspace, text: &str) -> String {
    WorkspaceRef::new(workspace, None).grant_text(text)
}

/// Returns a user's levels for all resources of each type, by workspace, from the item that holds
/// them. Empty if the item belongs to a user with another id.
#[must_use]
pub fn type_levels(item: &Item, user_id: u32) -> Vec<(WorkspaceRef, GrantType, PermissionLevel)> {
    if item.get(USER_ID) != Some(user_id) {
        return Vec::new();
    }
    let levels = item.map(LEVELS).into_iter().flatten();
    let levels = levels.filter_map(|(kind, level)| {
        let (place, kind) = WorkspaceRef::split_grant_text(kind)?;
        Some((place, GrantType::from_name(kind)?, PermissionLevel::from_name(level.as_s().ok()?)?))
    });
    levels.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_as_written() {
        let user = UserName::named("ann#x").unwrap();
        let experiment = ExperimentId::from_number(7).unwrap();
        let long = "m".repeat(900);
        let all = [
            GrantedResource::Experiment(experiment),
            GrantedResource::RegisteredModel("team-a/m".to_owned()),
            GrantedResource::RegisteredModel(long.clone()),
            GrantedResource::Prompt(long.clone()),
            GrantedResource::Scorer(experiment, "s".to_owned()),
            GrantedResource::Scorer(experiment, long),
            GrantedResource::McpServer(Workspace::default(), McpServerName::parse("com.example/a1").unwrap()),
            GrantedResource::Skill(Workspace::default(), SkillName::parse("@acme/review").unwrap()),
            GrantedResource::Skill(Workspace::parse("team-a").unwrap(), SkillName::parse("review").unwrap()),
            GrantedResource::McpServer(
                Workspace::parse("team-a").unwrap(),
                McpServerName::parse("com.example/a1").unwrap(),
            ),
        ];
        for on in all {
            let grant = StoredGrant { target: on, user_id: 3, resource: "r".to_owned(), level: PermissionLevel::Use };
            assert_eq!(StoredGrant::of(&grant.item(&user)), Some(grant));
        }
        assert_eq!(StoredGrant::of(&Item::new(missing_resource_grant_key(&user, GrantType::GatewaySecret, "7"))), None);
    }
}
