//! Writes that the authorizer adds to the request's transactions.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use entities::WorkspaceIdentity;
use entities::attributes::GOES_TO;
use mlflow_api::{McpServerName, RegisteredModelName, SkillName, Workspace};
use table::{Condition, Item, Write, text};

use crate::action::Resource;
use crate::authorizer::{Authorizer, EntityEvent};
use crate::guard::{Guard, workspace_key};
use crate::identity::{Caller, Identity};

/// Writes that the authorizer adds to the request's transaction, for example the caller's grant on
/// a new entity.
#[derive(Clone, Default)]
pub struct AuthorizerWrites {
    by: Option<(Arc<dyn Authorizer>, Identity)>,
    decided: Arc<DecidedNames>,
    workspace_identity: Option<WorkspaceIdentity>,
}

/// The names that the authorizer decided about. Each name has the id that its entity had at the
/// time of the decision, or `None` if there was no entity with this name.
#[derive(Clone, Debug, Default)]
pub(crate) struct DecidedNames {
    pub(crate) models: HashMap<RegisteredModelName, Option<String>>,
    pub(crate) servers: HashMap<McpServerName, Option<String>>,
    pub(crate) skills: HashMap<SkillName, Option<String>>,
}

impl AuthorizerWrites {
    /// Creates the source of the writes that the authorizer adds to a request's transactions.
    ///
    /// `decided` contains the entities that the authorizer decided about. `within` is the identity
    /// of the request's workspace; it is `None` for the default workspace, and if the workspace's
    /// item was not read.
    pub(crate) fn of(
        authorizer: &Arc<dyn Authorizer>,
        identity: &Identity,
        decided: DecidedNames,
        within: Option<WorkspaceIdentity>,
    ) -> Self {
        Self {
            by: Some((Arc::clone(authorizer), identity.clone())),
            decided: decided.into(),
            workspace_identity: within,
        }
    }

    /// Returns the id of the model that the authorizer decided about under this name.
    #[must_use]
    pub fn model_id(&self, name: &str) -> Option<&str> {
        self.decided.models.get(&RegisteredModelName::named(name))?.as_deref()
    }

    /// Checks whether the model that now has this name and id is the one that the authorizer
    /// decided about. A name may pass to another model during a request, and a permission for one
    /// model does not apply to the other. Returns `true` for names that the authorizer did not
    /// decide about.
    #[must_use]
    pub fn is_authorized_model(&self, name: &str, id: &str) -> bool {
        self.decided.models.get(&RegisteredModelName::named(name)).is_none_or(|asked| asked.as_deref() == Some(id))
    }

    /// Checks whether the MCP server that now has this name and id is the one that the authorizer
    /// decided about, as [`is_authorized_model`](Self::is_authorized_model) does for models.
    #[must_use]
    pub fn is_authorized_server(&self, name: &McpServerName, id: &str) -> bool {
        self.decided.servers.get(name).is_none_or(|asked| asked.as_deref() == Some(id))
    }

    /// Checks whether the skill that now has this name and id is the one that the authorizer decided
    /// about, as [`is_authorized_model`](Self::is_authorized_model) does for models.
    #[must_use]
    pub fn is_authorized_skill(&self, name: &SkillName, id: &str) -> bool {
        self.decided.skills.get(name).is_none_or(|asked| asked.as_deref() == Some(id))
    }

    /// Checks whether a skill with this name existed when the authorizer decided about it.
    #[must_use]
    pub fn had_skill(&self, name: &SkillName) -> bool {
        self.decided.skills.get(name).is_some_and(Option::is_some)
    }

    /// Returns the workspace of the request.
    #[must_use]
    pub fn workspace(&self) -> Workspace {
        self.by.as_ref().map(|(_, identity)| identity.workspace.clone()).unwrap_or_default()
    }

    /// Returns the identity of the request's workspace. `None` in the default workspace, and for
    /// changes outside a request.
    #[must_use]
    pub fn workspace_identity(&self) -> Option<&WorkspaceIdentity> {
        self.workspace_identity.as_ref()
    }

    /// Returns a condition for a transaction that creates an entity in a workspace. It requires
    /// that the workspace is still the one that the request was authorized for, and not a later one
    /// with the same name, and that it is not being deleted. Returns `None` for the default
    /// workspace, which is never deleted. Costs two write units.
    #[must_use]
    pub fn workspace_open_condition(&self, workspace: &Workspace) -> Option<Write> {
        if *workspace == Workspace::default() {
            return None;
        }
        Some(self.workspace_identity.as_ref().map_or_else(
            || Write::Check(workspace_key(workspace), Condition::item_exists().and(Condition::Missing(GOES_TO.into()))),
            WorkspaceIdentity::is_open,
        ))
    }

    /// Returns a value that adds no writes, for changes outside a request.
    #[must_use]
    pub fn nothing() -> Self {
        Self::default()
    }

    /// Records the caller as the owner of a new item, if the caller is a user.
    #[must_use]
    pub fn with_owner(&self, item: Item) -> Item {
        match &self.by {
            Some((_, Identity { caller: Caller::User(user), .. })) => {
                item.with(entities::attributes::OWNER, text(user.name.as_str()))
            }
            _ => item,
        }
    }

    /// Returns the writes to add to the transaction that creates an entity. `guarded` is the new
    /// entity as a guard. `id` distinguishes the entity from earlier ones with the same name.
    /// `home` is its name; for a registered model, it is the name that the model's rows are stored
    /// under, which does not change when the model is renamed.
    #[must_use]
    pub fn writes_of_creation(&self, kind: Resource, guarded: &Guard, id: &str, home: &str) -> Vec<Write> {
        self.of_event(EntityEvent::Created { kind, guarded, id, home })
    }

    /// Returns the writes to add when a registered model is renamed.
    #[must_use]
    pub fn writes_of_renaming(&self, name: &RegisteredModelName, new_name: &RegisteredModelName) -> Vec<Write> {
        let [name, new_name] = [name, new_name].map(|name| Guard::RegisteredModel(name.clone()));
        self.of_event(EntityEvent::Renamed(&name, &new_name))
    }

    /// Returns the writes to add when an entity is deleted.
    #[must_use]
    pub fn writes_of_deletion(&self, guarded: &Guard) -> Vec<Write> {
        self.of_event(EntityEvent::Deleted(guarded))
    }

    /// Returns the authorizer and the caller of the request, if there is a request.
    pub(crate) fn by(&self) -> Option<(&Arc<dyn Authorizer>, &Identity)> {
        self.by.as_ref().map(|(authorizer, identity)| (authorizer, identity))
    }

    fn of_event(&self, event: EntityEvent<'_>) -> Vec<Write> {
        self.by.as_ref().map(|(authorizer, identity)| authorizer.writes(identity, event)).unwrap_or_default()
    }
}

impl fmt::Debug for AuthorizerWrites {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Along").field(&self.by.as_ref().map(|(_, identity)| identity)).finish()
    }
}
