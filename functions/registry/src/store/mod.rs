//! The data of the model registry in the table. One file per resource; methods are named noun
//! first.
//!
//! A model is found under its name. The rest of its rows are in the partition of its **home**. That
//! is the partition of its name, unless the model was renamed or the name had another model before
//! (`docs/adr/0014-model-homes.md`).

mod alias;
mod home;
mod logged_model;
mod model;
mod model_delete;
mod model_item;
mod model_list;
mod model_listed;
mod model_search;
mod model_tag;
mod model_wanted;
mod version;
mod version_change;
mod version_item;
mod version_search;
mod version_source;
mod version_tag;

use std::sync::Arc;

use access::Along;
use artifact_store::Artifacts;
use key_schema::{ModelKey, attributes};
use table::Table;

pub use model::NewModel;
pub use version::NewVersion;
pub use version_source::{Owners, VersionSource};

/// The registry's store. Cheap to clone; one a process.
#[derive(Clone)]
pub struct Store {
    table: Table,
    artifact_root: Arc<str>,
    artifacts: Artifacts,
    along: Along,
}

/// A search as it was asked.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// Filter string.
    pub filter: String,
    /// Order clauses.
    pub order_by: Vec<String>,
    /// Results on a page.
    pub max_results: i64,
    /// Token of an earlier page.
    pub page_token: String,
    /// Whether the runs of versions are left out.
    pub hides_runs: bool,
}

impl Store {
    /// A store over the table. The source of a version must be below `artifact_root`, or belong to its run or logged model.
    #[must_use]
    pub fn new(table: Table, artifact_root: &str) -> Self {
        Self {
            table,
            artifact_root: artifact_root.into(),
            artifacts: Artifacts::below(artifact_root),
            along: Along::nothing(),
        }
    }

    /// The same store for one request. Its authorizer adds writes of its own to those that create,
    /// rename or delete entities.
    #[must_use]
    pub fn along(&self, along: &Along) -> Self {
        Self { along: along.clone(), ..self.clone() }
    }

    /// The key of the rows of a model of this name, unless its home is elsewhere.
    fn key_of(&self, name: &str) -> ModelKey {
        ModelKey::of(&self.along.workspace(), name)
    }

    /// The same store, where the server keeps artifacts here, whatever its artifact root is.
    #[must_use]
    pub fn with_artifacts(self, artifacts: Artifacts) -> Self {
        Self { artifacts, ..self }
    }

    /// The artifacts that the server keeps itself.
    #[must_use]
    pub fn artifacts(&self) -> &Artifacts {
        &self.artifacts
    }
}

impl service::Store for Store {
    fn table(&self) -> &Table {
        &self.table
    }
}
