//! The resources of grants, and the items that identify them.

use access::Guard;
use key_schema::attributes::{ID, SCORER, WORKSPACE};
use key_schema::{Key, ModelKey, Name, rows};
use mlflow_api::auth::{ALL_RESOURCES, GrantType};
use mlflow_api::{McpServerName, SkillName, Workspace};
use table::Item;

use crate::rules::{scorer_of, scorer_pattern};
use crate::stored_grants::{GrantedResource, grant_resource_id};
use crate::users::RoleGrant;

/// Returns the resources whose grants apply to a guard.
pub(crate) fn resources_of(guard: &Guard, workspace: &Workspace) -> Vec<GrantedResource> {
    match guard {
        Guard::Experiment(experiment) => vec![GrantedResource::Experiment(*experiment)],
        Guard::Scorer(experiment, name) => {
            vec![GrantedResource::Experiment(*experiment), GrantedResource::Scorer(*experiment, name.clone())]
        }
        Guard::RegisteredModel(name) => {
            let key = ModelKey::of(workspace, name.as_str()).to_attribute();
            vec![GrantedResource::RegisteredModel(key.clone()), GrantedResource::Prompt(key)]
        }
        Guard::McpServer(name) => vec![GrantedResource::McpServer(workspace.clone(), name.clone())],
        Guard::Skill(name) => vec![GrantedResource::Skill(workspace.clone(), name.clone())],
        Guard::Workspace(_) | Guard::EvaluationDataset(_) | Guard::User(_) | Guard::Absent(_) => Vec::new(),
    }
}

/// Returns the key of the item that shows whether a resource is still the one that a grant was made
/// for. Returns `None` for experiments, whose ids are never reused.
pub(crate) fn item_of(resource: &GrantedResource) -> Option<Key> {
    match resource {
        GrantedResource::Experiment(_) => None,
        GrantedResource::RegisteredModel(name) | GrantedResource::Prompt(name) => {
            Some(rows::RegisteredModel::key(&ModelKey::from(name.as_str())))
        }
        GrantedResource::Scorer(experiment, name) => Some(rows::Scorer::key(experiment, &Name::from(name.as_str()))),
        GrantedResource::McpServer(workspace, name) => Some(mcp_server_key(workspace, name)),
        GrantedResource::Skill(workspace, name) => Some(skill_key(workspace, name)),
    }
}

fn mcp_server_key(workspace: &Workspace, name: &McpServerName) -> Key {
    rows::McpServer::key(&Name::from(workspace.as_str()), name)
}

fn skill_key(workspace: &Workspace, name: &SkillName) -> Key {
    rows::Skill::key(&Name::from(workspace.as_str()), name)
}

/// Returns the key of the item that holds a resource's current name and its id. For a model, this
/// is the item of its home, which is the name that its rows are stored under.
pub(crate) fn home_of(resource: &GrantedResource) -> Option<Key> {
    match resource {
        GrantedResource::RegisteredModel(home) | GrantedResource::Prompt(home) => {
            Some(rows::ModelHome::key(&ModelKey::from(home.as_str())))
        }
        other => item_of(other),
    }
}

/// Returns the key of the item of the model, the scorer, the MCP server or the skill that a role's
/// grant applies to.
pub(crate) fn item_granted(grant: &RoleGrant, workspace: &Workspace) -> Option<Key> {
    if grant.pattern == ALL_RESOURCES {
        return None;
    }
    match grant.kind {
        GrantType::RegisteredModel | GrantType::Prompt => {
            Some(rows::RegisteredModel::key(&ModelKey::of(workspace, &grant.pattern)))
        }
        GrantType::Scorer => {
            let (experiment, name) = scorer_of(&grant.pattern)?;
            Some(rows::Scorer::key(&experiment, &Name::from(name.as_str())))
        }
        GrantType::McpServer => Some(mcp_server_key(workspace, &McpServerName::parse(&grant.pattern).ok()?)),
        GrantType::Skill => Some(skill_key(workspace, &SkillName::parse(&grant.pattern).ok()?)),
        _ => None,
    }
}

pub(crate) fn at_home(resource: &GrantedResource, home: &str) -> GrantedResource {
    match resource {
        GrantedResource::RegisteredModel(_) => GrantedResource::RegisteredModel(home.to_owned()),
        GrantedResource::Prompt(_) => GrantedResource::Prompt(home.to_owned()),
        other => other.clone(),
    }
}

/// Checks whether the resource with this item, in this workspace, is still the one that a grant was
/// made for.
pub(crate) fn is_granted_resource(
    granted_for: &str,
    resource: &GrantedResource,
    item: Option<&Item>,
    workspace: &Workspace,
) -> bool {
    let is = |id: &str| granted_for == grant_resource_id(workspace, id);
    match resource {
        GrantedResource::Experiment(experiment) => is(&experiment.to_string()),
        GrantedResource::RegisteredModel(_) | GrantedResource::Prompt(_) => {
            item.filter(|item| is_in(item, workspace)).and_then(|item| item.get(ID)).is_some_and(is)
        }
        GrantedResource::Scorer(..) => item.and_then(|item| item.get(SCORER)).is_some_and(|id| is(id.as_str())),
        // The key of the item contains the workspace.
        GrantedResource::McpServer(of, _) | GrantedResource::Skill(of, _) => {
            of == workspace && item.and_then(|item| item.get(ID)).is_some_and(is)
        }
    }
}

/// Checks whether the item of a model, or of its home, belongs to this workspace.
fn is_in(item: &Item, workspace: &Workspace) -> bool {
    item.get(WORKSPACE).unwrap_or(Workspace::default().as_str()) == workspace.as_str()
}

/// Checks whether a role's grant is effective. That is the case if it is for a whole type, or if
/// `item` shows that the resource is still the one that the grant was made for.
pub(crate) fn is_effective(grant: &RoleGrant, item: Option<&Item>) -> bool {
    if grant.pattern == ALL_RESOURCES {
        return true;
    }
    match grant.kind {
        GrantType::RegisteredModel | GrantType::Prompt | GrantType::McpServer | GrantType::Skill => {
            item.and_then(|item| item.get(ID)) == Some(grant.resource.as_str())
        }
        GrantType::Scorer => item.and_then(|item| item.get(SCORER)).is_some_and(|id| id.as_str() == grant.resource),
        // Ids of experiments are never reused.
        _ => !grant.resource.is_empty(),
    }
}

/// Returns MLflow's pattern for a resource.
pub(crate) fn pattern(resource: &GrantedResource) -> String {
    match resource {
        GrantedResource::Scorer(experiment, name) => scorer_pattern(*experiment, name),
        GrantedResource::RegisteredModel(key) | GrantedResource::Prompt(key) => {
            ModelKey::from(key.as_str()).name().to_owned()
        }
        GrantedResource::Experiment(experiment) => experiment.to_string(),
        GrantedResource::McpServer(_, name) => name.to_string(),
        GrantedResource::Skill(_, name) => name.to_string(),
    }
}
