//! The items of an experiment.

use entities::attributes::{CREATED, EXPERIMENT, LOCATION, NAME, REVISION, STAGE, STAGE_VERSION, UPDATED};
use entities::in_workspace;
use key_schema::index::{ExperimentsByChange, ExperimentsByStage};
use key_schema::{Descending, Key, Name, Stage, rows};
use mlflow_api::tracking::LifecycleStage;
use mlflow_api::{ExperimentId, Workspace};
use table::{Item, number, text};

/// An experiment, as it is stored.
#[derive(Clone, Debug)]
pub struct StoredExperiment<'a> {
    /// Id.
    pub id: ExperimentId,
    /// Workspace.
    pub workspace: &'a Workspace,
    /// Name.
    pub name: &'a str,
    /// Artifact location.
    pub artifact_location: &'a str,
    /// Lifecycle stage.
    pub stage: LifecycleStage,
    /// How often the stage has changed.
    pub stage_version: u32,
    /// When the experiment was created, in ms.
    pub created: i64,
    /// When the experiment was last changed, in ms.
    pub updated: i64,
    /// Tags. Each key may occur only once.
    pub tags: &'a [(String, String)],
}

/// The items of an experiment.
#[derive(Clone, Debug)]
pub struct ExperimentItems {
    /// The document.
    pub document: Item,
    /// Rows of tags that are too large for the document.
    pub tags: Vec<Item>,
    /// The row that claims the name, and lists the experiment in its workspace.
    pub name: Item,
}

impl StoredExperiment<'_> {
    /// Returns the items of the experiment.
    #[must_use]
    pub fn items(&self) -> ExperimentItems {
        let item = Item::new(rows::Experiment::key(&self.id))
            .with(NAME, text(self.name))
            .with(LOCATION, text(self.artifact_location))
            .with(CREATED, number(self.created))
            .with(UPDATED, number(self.updated))
            .with(STAGE, text(self.stage.name()))
            .with(STAGE_VERSION, number(self.stage_version))
            // The revision attribute is what makes the stream deliver the removal of this item to
            // the indexer.
            .with(REVISION, number(1));
        let tag_row = |tag: &Name| rows::ExperimentTag::key(&self.id, tag);
        let item = in_workspace(item, self.workspace);
        let (document, tags) = entities::documents::new_document(item, self.tags, tag_row);
        ExperimentItems { document, tags, name: self.name_row() }
    }

    fn name_row(&self) -> Item {
        let stage = match self.stage {
            LifecycleStage::Active => Stage::Active,
            LifecycleStage::Deleted => Stage::Deleted { version: self.stage_version },
        };
        Item::new(name_key(self.workspace, self.name))
            .with(NAME, text(self.name))
            .with(EXPERIMENT, text(self.id.to_string()))
            .indexed(ExperimentsByStage::key(&stage, &Descending(self.created), &self.id))
            .indexed(ExperimentsByChange::key(&stage, &Descending(self.updated), &self.id))
    }
}

/// Returns the key of the row that claims a name.
#[must_use]
pub fn name_key(workspace: &Workspace, name: &str) -> Key {
    rows::ExperimentName::key(&workspace.as_str().into(), &Name::from(name))
}

/// Creates the row that claims the name of an active experiment. The workspace's lists of
/// experiments consist of these rows.
pub(super) fn name_row(workspace: &Workspace, id: ExperimentId, name: &str, created: i64, updated: i64) -> Item {
    let (stage, stage_version) = (LifecycleStage::Active, 0);
    StoredExperiment { id, workspace, name, artifact_location: "", stage, stage_version, created, updated, tags: &[] }
        .name_row()
}
