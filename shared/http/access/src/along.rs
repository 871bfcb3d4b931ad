//! The authorizer's own writes in the transactions of a request.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use entities::WorkspaceIdentity;
use entities::attributes::GOES_TO;
use mlflow_api::{RegisteredModelName, Workspace};
use table::{Condition, Item, Write, text};

use crate::authorizer::{Authorizer, Event};
use crate::guard::{Guarded, workspace_key};
use crate::identity::{Caller, Identity};
use crate::kind::Resource;

/// Gives the additional writes for the transactions of one request, such as its caller's grant on a
/// new entity.
#[derive(Clone, Default)]
pub struct Along {
    by: Option<(Arc<dyn Authorizer>, Identity)>,
    models: Arc<HashMap<RegisteredModelName, Option<String>>>,
    within: Option<WorkspaceIdentity>,
}

impl Along {
    /// The additional writes that an authorizer wants for this caller's request.
    ///
    /// The models are those that the authorizer was asked about, by their names, with their ids at
    /// that time. `within` is the workspace of the request, if it is not the default one and was read.
    pub(crate) fn of(
        authorizer: &Arc<dyn Authorizer>,
        identity: &Identity,
        models: HashMap<RegisteredModelName, Option<String>>,
        within: Option<WorkspaceIdentity>,
    ) -> Self {
        Self { by: Some((Arc::clone(authorizer), identity.clone())), models: models.into(), within }
    }

    /// The id of the model that the authorizer was asked about under this name.
    #[must_use]
    pub fn id_of(&self, name: &str) -> Option<&str> {
        self.models.get(&RegisteredModelName::named(name))?.as_deref()
    }

    /// Whether the model that has this name and this id is the one that the authorizer was asked
    /// about. A name may pass to another model during a request. A permission for one model is none
    /// for the other.
    #[must_use]
    pub fn is_asked_about(&self, name: &str, id: &str) -> bool {
        self.models.get(&RegisteredModelName::named(name)).is_none_or(|asked| asked.as_deref() == Some(id))
    }

    /// The workspace that the request is about.
    #[must_use]
    pub fn workspace(&self) -> Workspace {
        self.by.as_ref().map(|(_, identity)| identity.workspace.clone()).unwrap_or_default()
    }

    /// The identity of the workspace that the request is about. `None` in the default workspace, and without a request.
    #[must_use]
    pub fn within(&self) -> Option<&WorkspaceIdentity> {
        self.within.as_ref()
    }

    /// A part of a transaction that creates something in a workspace: the workspace is the one that
    /// the request was authorized for, and is not being deleted. A workspace that got its name since
    /// then is another one. `None` in the default workspace, which is never deleted. Two write units.
    #[must_use]
    pub fn is_open(&self, workspace: &Workspace) -> Option<Write> {
        if *workspace == Workspace::default() {
            return None;
        }
        Some(self.within.as_ref().map_or_else(
            || Write::Check(workspace_key(workspace), Condition::item_exists().and(Condition::Missing(GOES_TO.into()))),
            WorkspaceIdentity::is_open,
        ))
    }

    /// No writes: for changes without a request.
    #[must_use]
    pub fn nothing() -> Self {
        Self::default()
    }

    /// An item that is created, as that of its owner. It says who that is only of a user.
    #[must_use]
    pub fn owned(&self, item: Item) -> Item {
        match &self.by {
            Some((_, Identity { caller: Caller::User(user), .. })) => {
                item.with(entities::attributes::OWNER, text(user.name.as_str()))
            }
            _ => item,
        }
    }

    /// The writes that go with the creation of an entity of a kind, which is or will be this guard.
    /// Its `id` tells it from others that had its name before. Its `home` is its name; for a
    /// registered model, it is the name that its rows are kept under, even after a renaming.
    #[must_use]
    pub fn created(&self, kind: Resource, guarded: &Guarded, id: &str, home: &str) -> Vec<Write> {
        self.of_event(Event::Created { kind, guarded, id, home })
    }

    /// The same where a registered model gets another name.
    #[must_use]
    pub fn renamed(&self, name: &RegisteredModelName, new_name: &RegisteredModelName) -> Vec<Write> {
        let [name, new_name] = [name, new_name].map(|name| Guarded::RegisteredModel(name.clone()));
        self.of_event(Event::Renamed(&name, &new_name))
    }

    /// The same where it is deleted.
    #[must_use]
    pub fn deleted(&self, guarded: &Guarded) -> Vec<Write> {
        self.of_event(Event::Deleted(guarded))
    }

    /// The authorizer and the caller of the request, if it has any.
    pub(crate) fn by(&self) -> Option<(&Arc<dyn Authorizer>, &Identity)> {
        self.by.as_ref().map(|(authorizer, identity)| (authorizer, identity))
    }

    fn of_event(&self, event: Event<'_>) -> Vec<Write> {
        self.by.as_ref().map(|(authorizer, identity)| authorizer.writes(identity, event)).unwrap_or_default()
    }
}

impl fmt::Debug for Along {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Along").field(&self.by.as_ref().map(|(_, identity)| identity)).finish()
    }
}
