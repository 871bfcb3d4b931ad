//! Actions, and the kinds of entities.

/// An action on an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Create one: in the workspace, or in the entity that guards it.
    Create,
    /// Show it among others. Entities that the caller may not read are left out of the answer,
    /// which is no error.
    List,
    /// Read it.
    Read,
    /// Use it, without reading or changing it.
    Use,
    /// Change it.
    Update,
    /// Delete or restore it.
    Delete,
    /// Change parts that only those may change who may delete it.
    Manage,
    /// Decide what others may do with it. A caller who may manage it may, unless his credentials
    /// are narrowed.
    Share,
    /// Show it, or its id, in an answer about something else. Entities that the caller may not see
    /// are left out of the answer, which is no error.
    Show,
}

impl Action {
    /// Whether it may change what is stored.
    #[must_use]
    pub const fn writes(self) -> bool {
        matches!(self, Self::Create | Self::Update | Self::Delete | Self::Manage | Self::Share)
    }
}

/// A kind of entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    /// An experiment, named by its id or its name.
    Experiment,
    /// A run; its experiment guards it.
    Run,
    /// A trace; its experiment guards it.
    Trace,
    /// An assessment of a trace; the trace's experiment guards it.
    Assessment,
    /// A logged model; its experiment guards it.
    LoggedModel,
    /// A scorer of an experiment, named by its name.
    Scorer,
    /// A version of a scorer, which guards it.
    ScorerVersion,
    /// A registered model, named by its name. It guards its versions.
    RegisteredModel,
    /// A registered model that is a prompt.
    Prompt,
    /// A version of a registered model.
    ModelVersion,
    /// A version of a prompt.
    PromptVersion,
    /// An evaluation dataset, named by its id. Its experiments guard it.
    EvaluationDataset,
    /// A workspace.
    Workspace,
    /// A user, named by his name.
    User,
    /// A role, with its grants and its users.
    Role,
}

impl Resource {
    /// The kind of entity that guards it.
    pub(crate) const fn guard(self) -> Self {
        match self {
            Self::Run | Self::LoggedModel | Self::Trace | Self::Assessment | Self::Scorer => Self::Experiment,
            Self::ScorerVersion => Self::Scorer,
            Self::Prompt | Self::ModelVersion | Self::PromptVersion => Self::RegisteredModel,
            other => other,
        }
    }

    /// The same kind for prompts.
    pub(crate) const fn of_prompt(self) -> Self {
        match self {
            Self::RegisteredModel => Self::Prompt,
            Self::ModelVersion => Self::PromptVersion,
            other => other,
        }
    }
}

/// The least need of a route, for its reader: every request has to need that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// Open to everybody, who need not say who they are.
    Open,
    /// Open to all known callers: the answer has nobody's data, or the endpoint asks itself what
    /// may be seen.
    SignedIn,
    /// Create an entity of this kind.
    Create(Resource),
    /// List entities of this kind; the answer holds those the caller may read.
    List(Resource),
    /// Read the entity the request names.
    Read(Resource),
    /// Read files at the path that the request names: of something in an experiment, or of a model
    /// version.
    ReadFiles,
    /// Use it.
    Use(Resource),
    /// Change it.
    Update(Resource),
    /// Delete or restore it.
    Delete(Resource),
    /// Change parts that only those may change who may delete it.
    Manage(Resource),
    /// Decide what others may do with the entity that the request names, of whatever kind it is.
    Share,
}

impl Permission {
    /// The action and the kind of entity; `None` for a route that nothing guards, or one about entities of several kinds.
    #[must_use]
    pub const fn action(self) -> Option<(Action, Resource)> {
        match self {
            Self::Open | Self::SignedIn | Self::Share => None,
            Self::Create(resource) => Some((Action::Create, resource)),
            Self::List(resource) => Some((Action::List, resource)),
            Self::Read(resource) => Some((Action::Read, resource)),
            Self::ReadFiles => Some((Action::Read, Resource::Experiment)),
            Self::Use(resource) => Some((Action::Use, resource)),
            Self::Update(resource) => Some((Action::Update, resource)),
            Self::Delete(resource) => Some((Action::Delete, resource)),
            Self::Manage(resource) => Some((Action::Manage, resource)),
        }
    }
}
