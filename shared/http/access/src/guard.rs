//! Guards, and the access checks that authorizers decide.

use std::collections::HashMap;

use entities::attributes::{Attribute, EXPERIMENTS, HOME, ID, OWNER, TAGS, Text, WORKSPACE};
use entities::{entry_key, workspace_named};
use key_schema::{Key, ModelKey, rows};
use mlflow_api::registry::IS_PROMPT_TAG;
use mlflow_api::{
    EvaluationDatasetId, ExperimentId, McpServerName, RegisteredModelName, Result, SkillName, UserName, Workspace,
};
use table::{Item, TableKey};

use crate::action::{Action, Resource};

/// An entity that permissions are stored for. It guards the entities that a request names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Guard {
    /// The workspace, if an entity of this kind is created or listed in it.
    Workspace(Resource),
    /// An experiment. It guards its runs, logged models and traces.
    Experiment(ExperimentId),
    /// A scorer, by its experiment and its name. It guards its versions.
    Scorer(ExperimentId, String),
    /// A registered model or a prompt. It guards its versions.
    RegisteredModel(RegisteredModelName),
    /// An evaluation dataset without experiments, or whose experiments have not been looked up.
    EvaluationDataset(EvaluationDatasetId),
    /// An MCP server. It guards its versions.
    McpServer(McpServerName),
    /// A skill. It guards its versions.
    Skill(SkillName),
    /// A user, for operations on that user.
    User(UserName),
    /// A missing entity: the caller's workspace has no entity of this kind with the id in the
    /// request.
    Absent(Resource),
}

impl Guard {
    /// Returns the kind of entity.
    #[must_use]
    pub const fn resource(&self) -> Resource {
        match self {
            Self::Workspace(resource) | Self::Absent(resource) => *resource,
            Self::Experiment(_) => Resource::Experiment,
            Self::Scorer(..) => Resource::Scorer,
            Self::RegisteredModel(_) => Resource::RegisteredModel,
            Self::EvaluationDataset(_) => Resource::EvaluationDataset,
            Self::McpServer(_) => Resource::McpServer,
            Self::Skill(_) => Resource::Skill,
            Self::User(_) => Resource::User,
        }
    }

    /// Returns the experiment, if the guard is one.
    pub(crate) const fn experiment(&self) -> Option<ExperimentId> {
        match self {
            Self::Experiment(experiment) => Some(*experiment),
            _ => None,
        }
    }

    /// Returns the key of the item that holds the guard's [`StoredGuard`] state. For a workspace,
    /// this is the workspace's own item. Returns `None` for the default workspace, which has no
    /// item.
    #[must_use]
    pub fn key(&self, workspace: &Workspace) -> Option<Key> {
        match self {
            Self::Workspace(_) => (*workspace != Workspace::default()).then(|| workspace_key(workspace)),
            Self::Absent(_) | Self::User(_) => None,
            Self::Experiment(experiment) | Self::Scorer(experiment, _) => Some(rows::Experiment::key(experiment)),
            Self::RegisteredModel(name) => Some(rows::RegisteredModel::key(&ModelKey::of(workspace, name.as_str()))),
            Self::EvaluationDataset(dataset) => Some(rows::EvaluationDataset::key(dataset)),
            Self::McpServer(name) => Some(rows::McpServer::key(&workspace.as_str().into(), name)),
            Self::Skill(name) => Some(rows::Skill::key(&workspace.as_str().into(), name)),
        }
    }
}

/// Returns the key of a workspace's item.
pub(crate) fn workspace_key(workspace: &Workspace) -> Key {
    rows::Workspace::key(&workspace.as_str().into())
}

/// The state of a guard in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredGuard {
    /// Workspace of the guard.
    pub workspace: Workspace,
    /// Whether the guard is a prompt.
    pub is_prompt: bool,
    /// Name of the user who created the entity, if known.
    pub owner: Option<String>,
    /// Id that distinguishes a registered model, an MCP server or a skill from earlier ones with
    /// the same name.
    pub id: Option<String>,
    /// Name that the rows of a registered model are stored under, if it differs from the current
    /// name.
    pub home: Option<String>,
}

impl StoredGuard {
    /// Reads the state of a guard from its item.
    ///
    /// # Errors
    /// An internal error if the item cannot be parsed.
    pub(crate) fn of(item: &Item) -> Result<Self> {
        let text = |attribute: Attribute<Text>| item.get(attribute).map(str::to_owned);
        let prompt = item.map(TAGS).and_then(|tags| tags.get(IS_PROMPT_TAG)?.as_s().ok());
        Ok(Self {
            workspace: workspace_named(item.get(WORKSPACE)).map_err(mlflow_api::Error::internal)?,
            // Case-insensitive, like `RegisteredModel._is_prompt`.
            is_prompt: prompt.is_some_and(|tag| tag.to_lowercase() == "true"),
            owner: text(OWNER),
            id: text(ID),
            home: text(HOME),
        })
    }
}

/// Iterates over the experiments of an evaluation dataset. Invalid ids that clients have stored are
/// skipped.
pub(crate) fn experiments_of(dataset: &Item) -> impl Iterator<Item = ExperimentId> {
    let names = dataset.map(EXPERIMENTS).into_iter().flat_map(HashMap::keys);
    names.filter_map(|name| ExperimentId::parse(entry_key(name)).ok())
}

/// A question for the authorizer: whether the caller may perform an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessCheck {
    /// The action.
    pub action: Action,
    /// Kind of the entity. `Prompt` or `PromptVersion` only if the stored guard shows that the
    /// model is a prompt.
    pub kind: Resource,
    /// Guard of the entity.
    pub guard: Guard,
    /// The state of the guard in the table. `None` if it does not exist, or if the authorizer does
    /// not check guards.
    pub stored: Option<StoredGuard>,
}

/// Items that were read for an authorizer: guards, and further items that it requested.
pub type AuthorizerItems = HashMap<TableKey, Item>;
