//! Access to the model registry's data in the table. There is one file per resource, and the names
//! of methods start with the resource.
//!
//! A model's item is found by the model's name. Its other rows are in the partition of its
//! **home**. The home is the partition of the name, unless the model was renamed, or another model
//! had the name before (`docs/adr/0014-model-homes.md`).

mod alias;
mod call_event;
mod logged_model;
mod model;
mod model_criteria;
mod model_delete;
mod model_entry;
mod model_home;
mod model_item;
mod model_list;
mod model_search;
mod model_tag;
mod stored_model;
mod version;
mod version_change;
mod version_item;
mod version_search;
mod version_source;
mod version_tag;

use std::sync::Arc;
use std::time::Duration;

use access::{AuthorizerWrites, Scope};
use artifact_store::ArtifactStore;
use entities::webhooks::Subscriptions;
use key_schema::{ModelKey, attributes};
use table::Table;

pub use model::NewModel;
pub use stored_model::{
    ModelItems, StoredModel, StoredModelVersion, listed_model_key, model_home_key, registered_model_key,
};
pub use version::NewVersion;
pub use version_source::{Owners, VersionSource};

/// The registry's store. Cheap to clone. A process has one.
#[derive(Clone)]
pub struct Store {
    table: Table,
    artifact_root: Arc<str>,
    artifacts: ArtifactStore,
    authorizer_writes: AuthorizerWrites,
    subscriptions: Subscriptions,
    /// Whether the server has workspaces. If so, the bodies of events contain the name of the
    /// workspace.
    has_workspaces: bool,
}

/// The parameters of a search, as the client sent them.
#[derive(Clone, Debug, Default)]
pub struct RegistrySearch {
    /// Filter string.
    pub filter: String,
    /// Order clauses.
    pub order_by: Vec<String>,
    /// Page size.
    pub max_results: i64,
    /// Token that the previous page returned.
    pub page_token: String,
    /// Whether the response omits the runs of versions.
    pub hides_runs: bool,
}

impl Store {
    /// Creates a store over the table. The server manages the artifacts below `artifact_root`. If
    /// the source of a version is managed by the server, the version must name the run or the
    /// logged model that the source belongs to.
    #[must_use]
    pub fn new(table: Table, artifact_root: &str) -> Self {
        Self {
            subscriptions: Subscriptions::new(table.clone()),
            has_workspaces: false,
            table,
            artifact_root: artifact_root.into(),
            artifacts: ArtifactStore::below(artifact_root),
            authorizer_writes: AuthorizerWrites::nothing(),
        }
    }

    /// Returns the key of the rows of the model with this name, assuming that the model's home is
    /// the partition of its name.
    fn key_of(&self, name: &str) -> ModelKey {
        ModelKey::of(&self.authorizer_writes.workspace(), name)
    }

    /// Returns the store with another artifact storage. The artifact root stays unchanged.
    #[must_use]
    pub fn with_artifacts(self, artifacts: ArtifactStore) -> Self {
        Self { artifacts, ..self }
    }

    /// Returns the store with another time for which it relies on the subscriptions of webhooks. For
    /// tests that do not change webhooks.
    #[must_use]
    pub fn with_subscription_lease(self, lease: Duration) -> Self {
        Self { subscriptions: Subscriptions::with_lease(self.table.clone(), lease), ..self }
    }

    /// Returns the store for a server with or without workspaces.
    #[must_use]
    pub fn with_workspaces(self, has_workspaces: bool) -> Self {
        Self { has_workspaces, ..self }
    }

    /// Returns the artifact storage that this server manages.
    #[must_use]
    pub fn artifacts(&self) -> &ArtifactStore {
        &self.artifacts
    }
}

impl service::DomainStore for Store {
    fn table(&self) -> &Table {
        &self.table
    }

    fn for_request(&self, scope: &Scope) -> Self {
        Self { authorizer_writes: scope.authorizer_writes().clone(), ..self.clone() }
    }
}
