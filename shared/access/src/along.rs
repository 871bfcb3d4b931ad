//! What an authorizer has written along with what a request does.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use mlflow_api::{RegisteredModelName, Workspace};
use table::{Item, Write, text};

use crate::authorizer::{Authorizer, Event};
use crate::guard::Guarded;
use crate::identity::{Caller, Identity};
use crate::kind::Resource;

/// Says what is to be written in the transactions of one request beside what the request is about, such as its caller's grant on what he
/// creates.
#[derive(Clone, Default)]
pub struct Along {
    by: Option<(Arc<dyn Authorizer>, Identity)>,
    models: Arc<HashMap<RegisteredModelName, Option<String>>>,
}

impl Along {
    /// What an authorizer wants written of what this caller does.
    ///
    /// The models are those that the authorizer was asked about, by their names, with their ids at that time.
    pub(crate) fn of(
        authorizer: &Arc<dyn Authorizer>,
        identity: &Identity,
        models: HashMap<RegisteredModelName, Option<String>>,
    ) -> Self {
        Self { by: Some((Arc::clone(authorizer), identity.clone())), models: models.into() }
    }

    /// The id of the model that the authorizer was asked about under this name.
    #[must_use]
    pub fn id_of(&self, name: &str) -> Option<&str> {
        self.models.get(&RegisteredModelName::named(name))?.as_deref()
    }

    /// Whether the model that has this name and this id is the one that the authorizer was asked about. Names of models are given to others
    /// while a request is under way, and what was allowed for one model is not allowed for another.
    #[must_use]
    pub fn is_asked_about(&self, name: &str, id: &str) -> bool {
        self.models.get(&RegisteredModelName::named(name)).is_none_or(|asked| asked.as_deref() == Some(id))
    }

    /// The workspace that the request is about.
    #[must_use]
    pub fn workspace(&self) -> Workspace {
        self.by.as_ref().map(|(_, identity)| identity.workspace.clone()).unwrap_or_default()
    }

    /// Nothing: for what no request does.
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

    /// What to write where an entity of a kind is created, which is or will be this guard. Its `id` tells it from others that had its name
    /// before; its `home` is what the rows of a registered model are kept under, whatever it is called later, and for all else its name.
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

    fn of_event(&self, event: Event<'_>) -> Vec<Write> {
        self.by.as_ref().map(|(authorizer, identity)| authorizer.writes(identity, event)).unwrap_or_default()
    }
}

impl fmt::Debug for Along {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Along").field(&self.by.as_ref().map(|(_, identity)| identity)).finish()
    }
}
