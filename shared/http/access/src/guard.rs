//! The asks of an authorizer.

use std::collections::HashMap;

use entities::attributes::{Attribute, EXPERIMENTS, HOME, ID, OWNER, TAGS, Text, WORKSPACE};
use entities::{entry_key, workspace_named};
use key_schema::{Key, ModelKey, rows};
use mlflow_api::registry::IS_PROMPT_TAG;
use mlflow_api::{EvaluationDatasetId, ExperimentId, RegisteredModelName, Result, UserName, Workspace};
use table::{Item, TableKey};

use crate::kind::{Action, Resource};

/// The entities that permissions are kept for. They guard the entities that a request names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Guarded {
    /// The workspace, where something of a kind is created or listed.
    Workspace(Resource),
    /// An experiment: guards its runs, logged models and traces.
    Experiment(ExperimentId),
    /// A scorer, by its experiment and its name: guards its versions.
    Scorer(ExperimentId, String),
    /// A registered model or a prompt: guards its versions.
    RegisteredModel(RegisteredModelName),
    /// An evaluation dataset of no experiment, or one whose experiments nobody has asked for.
    EvaluationDataset(EvaluationDatasetId),
    /// A user, for operations on himself.
    User(UserName),
    /// Nothing, for there is no entity of the kind under the id that the request names, or none in the caller's workspace.
    Absent(Resource),
}

impl Guarded {
    /// The kind of entity.
    #[must_use]
    pub const fn resource(&self) -> Resource {
        match self {
            Self::Workspace(resource) | Self::Absent(resource) => *resource,
            Self::Experiment(_) => Resource::Experiment,
            Self::Scorer(..) => Resource::Scorer,
            Self::RegisteredModel(_) => Resource::RegisteredModel,
            Self::EvaluationDataset(_) => Resource::EvaluationDataset,
            Self::User(_) => Resource::User,
        }
    }

    /// The experiment, if it is one.
    pub(crate) const fn experiment(&self) -> Option<ExperimentId> {
        match self {
            Self::Experiment(experiment) => Some(*experiment),
            _ => None,
        }
    }

    /// The key of the item that [`Stored`] is read from; for a workspace other than the default
    /// one, that of its own item.
    #[must_use]
    pub fn key(&self, workspace: &Workspace) -> Option<Key> {
        match self {
            Self::Workspace(_) => (*workspace != Workspace::default()).then(|| workspace_key(workspace)),
            Self::Absent(_) | Self::User(_) => None,
            Self::Experiment(experiment) | Self::Scorer(experiment, _) => Some(rows::Experiment::key(experiment)),
            Self::RegisteredModel(name) => Some(rows::RegisteredModel::key(&ModelKey::of(workspace, name.as_str()))),
            Self::EvaluationDataset(dataset) => Some(rows::EvaluationDataset::key(dataset)),
        }
    }
}

/// The key of the item of a workspace.
pub(crate) fn workspace_key(workspace: &Workspace) -> Key {
    rows::Workspace::key(&workspace.as_str().into())
}

/// The state of a guard in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The workspace that it belongs to.
    pub workspace: Workspace,
    /// Whether it is a prompt.
    pub is_prompt: bool,
    /// The user who created it, where that is known.
    pub owner: Option<String>,
    /// The id that tells a registered model from every other that had its name before.
    pub id: Option<String>,
    /// The name that the rows of a registered model are kept under, where that is not its own.
    pub home: Option<String>,
}

impl Stored {
    /// The state of a guard, from its item.
    ///
    /// # Errors
    /// An internal one, if it cannot be read.
    pub(crate) fn of(item: &Item) -> Result<Self> {
        let text = |attribute: Attribute<Text>| item.get(attribute).map(str::to_owned);
        let prompt = item.map(TAGS).and_then(|tags| tags.get(IS_PROMPT_TAG)?.as_s().ok());
        Ok(Self {
            workspace: workspace_named(item.get(WORKSPACE)).map_err(mlflow_api::Error::internal)?,
            // In any case, as `RegisteredModel._is_prompt` has it.
            is_prompt: prompt.is_some_and(|tag| tag.to_lowercase() == "true"),
            owner: text(OWNER),
            id: text(ID),
            home: text(HOME),
        })
    }
}

/// The experiments that the item of an evaluation dataset names. Clients may have named some that cannot be.
pub(crate) fn experiments_of(dataset: &Item) -> impl Iterator<Item = ExperimentId> {
    let names = dataset.map(EXPERIMENTS).into_iter().flat_map(HashMap::keys);
    names.filter_map(|name| ExperimentId::parse(entry_key(name)).ok())
}

/// One thing that is asked of an authorizer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The action.
    pub action: Action,
    /// The kind of entity. It is a prompt, or a prompt's version, only if that is known.
    pub kind: Resource,
    /// Its guard.
    pub guard: Guarded,
    /// The state of the guard in the table; `None` where there is none, and where the authorizer
    /// does not look.
    pub stored: Option<Stored>,
}

/// The items that were read for an authorizer: guards, and those that it asked for itself.
pub type Read = HashMap<TableKey, Item>;
