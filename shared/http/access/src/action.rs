//! Actions, and the kinds of entities.

/// An action on an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Create an entity of this kind, in the workspace or within the entity that guards it.
    Create,
    /// Include the entity in a list. Entities that the caller may not read are silently left out of
    /// the response.
    List,
    /// Read the entity.
    Read,
    /// Use the entity, without reading or changing it.
    Use,
    /// Change the entity.
    Update,
    /// Delete or restore the entity.
    Delete,
    /// Change parts of the entity that only callers with the right to manage it may change. The
    /// right to update the entity does not suffice.
    Manage,
    /// Grant or revoke other users' rights to the entity. Any caller who may manage the entity may
    /// share it, unless the credentials are restricted.
    Share,
    /// Show the entity, or its id, in a response about another entity. Entities that the caller may
    /// not see are silently left out of the response.
    Show,
}

impl Action {
    /// Checks whether the action may change stored data.
    #[must_use]
    pub const fn writes(self) -> bool {
        matches!(self, Self::Create | Self::Update | Self::Delete | Self::Manage | Self::Share)
    }
}

/// A kind of entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    /// An experiment, identified by its id or its name.
    Experiment,
    /// A run, guarded by its experiment.
    Run,
    /// A trace, guarded by its experiment.
    Trace,
    /// An assessment of a trace, guarded by the trace's experiment.
    Assessment,
    /// A logged model, guarded by its experiment.
    LoggedModel,
    /// A scorer of an experiment, identified by its name.
    Scorer,
    /// A version of a scorer, guarded by the scorer.
    ScorerVersion,
    /// A registered model, identified by its name. It guards its versions.
    RegisteredModel,
    /// A registered model that is a prompt.
    Prompt,
    /// A version of a registered model.
    ModelVersion,
    /// A version of a prompt.
    PromptVersion,
    /// An evaluation dataset, identified by its id and guarded by its experiments.
    EvaluationDataset,
    /// A label schema, guarded by its experiment.
    LabelSchema,
    /// A review queue with its items, guarded by its experiment.
    ReviewQueue,
    /// An issue, guarded by its experiment.
    Issue,
    /// An MCP server, identified by its name. It guards its versions.
    McpServer,
    /// A version of an MCP server.
    McpServerVersion,
    /// A skill, identified by its name. It guards its versions.
    Skill,
    /// A version of a skill.
    SkillVersion,
    /// A workspace.
    Workspace,
    /// A user, identified by name.
    User,
    /// A role, with its grants and its members.
    Role,
    /// A webhook of the workspace.
    Webhook,
}

impl Resource {
    /// Returns the kind of entity that guards entities of this kind.
    pub(crate) const fn guard(self) -> Self {
        match self {
            Self::Run
            | Self::LoggedModel
            | Self::Trace
            | Self::Assessment
            | Self::Scorer
            | Self::LabelSchema
            | Self::ReviewQueue
            | Self::Issue => Self::Experiment,
            Self::ScorerVersion => Self::Scorer,
            Self::Prompt | Self::ModelVersion | Self::PromptVersion => Self::RegisteredModel,
            Self::McpServerVersion => Self::McpServer,
            Self::SkillVersion => Self::Skill,
            other => other,
        }
    }

    /// Returns the corresponding kind for prompts: a prompt instead of a registered model, and a
    /// prompt version instead of a model version.
    pub(crate) const fn of_prompt(self) -> Self {
        match self {
            Self::RegisteredModel => Self::Prompt,
            Self::ModelVersion => Self::PromptVersion,
            other => other,
        }
    }
}

/// The minimum permission of a route, as declared in the table of routes. The
/// [`Needs`](crate::Needs) of every request to the route must include it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// Open to everyone, without authentication.
    Open,
    /// Open to all authenticated callers. Either the response contains no user's data, or the
    /// endpoint itself checks what the caller may see.
    SignedIn,
    /// Create an entity of this kind.
    Create(Resource),
    /// List entities of this kind. The response contains those that the caller may read.
    List(Resource),
    /// Read the entity that the request names.
    Read(Resource),
    /// Read files at the path that the request names. The path belongs to an entity in an
    /// experiment, or to a model version.
    ReadFiles,
    /// Use the entity.
    Use(Resource),
    /// Change the entity.
    Update(Resource),
    /// Delete or restore the entity.
    Delete(Resource),
    /// Change parts of the entity that only callers with the right to manage it may change. The
    /// right to update the entity does not suffice.
    Manage(Resource),
    /// Grant or revoke other users' rights to the entity that the request names, whatever its kind.
    Share,
}

impl Permission {
    /// Returns the action and the kind of entity. Returns `None` for unguarded routes, and for
    /// routes that apply to entities of several kinds.
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
