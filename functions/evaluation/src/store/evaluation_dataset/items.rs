//! The items of an evaluation dataset and of its records.

use entities::attributes::{CREATED_BY, DIGEST, EXPERIMENTS, INPUTS, NAME, RECORD, REVISION, UPDATED, UPDATED_BY};
use entities::documents::content::PackedContent;
use entities::{entry_name, in_workspace};
use key_schema::{Segment, WideDigest, rows};
use mlflow_api::{DatasetRecordId, EvaluationDatasetId, Workspace};
use table::{Item, map, number, text};

use super::dataset_item::{experiment_key, list_row, with_created, workspace_key};

/// An evaluation dataset without its records and its schema, as it is stored.
#[derive(Clone, Debug)]
pub struct StoredDataset<'a> {
    /// Id.
    pub id: &'a EvaluationDatasetId,
    /// Workspace.
    pub workspace: &'a Workspace,
    /// Name.
    pub name: &'a str,
    /// Digest.
    pub digest: &'a str,
    /// When the dataset was created, in ms.
    pub created: i64,
    /// When the dataset was last changed, in ms.
    pub updated: i64,
    /// The user who created the dataset.
    pub created_by: Option<&'a str>,
    /// The user who last changed the dataset.
    pub updated_by: Option<&'a str>,
    /// The experiments that list the dataset, with the times when they were added, in ms. Each
    /// experiment may occur only once.
    pub experiments: &'a [(&'a str, i64)],
    /// Tags. Each key may occur only once.
    pub tags: &'a [(String, String)],
}

/// The items of an evaluation dataset.
#[derive(Clone, Debug)]
pub struct DatasetItems {
    /// The document.
    pub document: Item,
    /// Rows of tags that are too large for the document.
    pub tags: Vec<Item>,
    /// Rows in the lists of its experiments.
    pub experiments: Vec<Item>,
    /// The row in the list of its workspace.
    pub workspace: Item,
}

impl StoredDataset<'_> {
    /// Returns the items of the dataset.
    #[must_use]
    pub fn items(&self) -> DatasetItems {
        self.items_with(|item| item)
    }

    /// Returns the items of the dataset. `complete` adds attributes to the document before its tags
    /// are added.
    pub(super) fn items_with(&self, complete: impl FnOnce(Item) -> Item) -> DatasetItems {
        let Self { id, workspace, name, .. } = *self;
        let added =
            self.experiments.iter().map(|(experiment, time)| (entry_name(experiment).into_owned(), number(*time)));
        let item = Item::new(rows::EvaluationDataset::key(id))
            .with(NAME, text(name))
            .with(DIGEST, text(self.digest))
            .with(UPDATED, number(self.updated))
            .with(EXPERIMENTS, map(added.collect()))
            // Items with this attribute are delivered to the indexer when they are deleted. The
            // indexer then removes the records.
            .with(REVISION, number(1));
        let item = with_users(with_created(item, id, self.created), self.created_by, self.updated_by);
        let tag_row = |tag: &_| rows::EvaluationDatasetTag::key(id, tag);
        let (document, tags) =
            entities::documents::new_document(complete(in_workspace(item, workspace)), self.tags, tag_row);
        let list_row = |key| list_row(key, id, self.created, name, self.created_by);
        let experiments = self.experiments.iter().map(|(experiment, _)| list_row(experiment_key(id, experiment)));
        DatasetItems {
            document,
            tags,
            experiments: experiments.collect(),
            workspace: list_row(workspace_key(workspace, id)),
        }
    }
}

/// A record of an evaluation dataset, in the form in which new records are stored.
pub struct StoredRecord<'a> {
    /// Id of the dataset.
    pub dataset: &'a EvaluationDatasetId,
    /// Id of the record, which begins with its creation time.
    pub id: &'a DatasetRecordId,
    /// Hash of the inputs.
    pub inputs: WideDigest,
    /// The content. Its parts have to be written before the record.
    pub packed: &'a PackedContent,
    /// When the record was last changed, in ms.
    pub updated: i64,
    /// The user who created the record.
    pub created_by: Option<&'a str>,
    /// The user who last changed the record.
    pub updated_by: Option<&'a str>,
}

impl StoredRecord<'_> {
    /// Returns the item of the record, and the item that claims its inputs.
    #[must_use]
    pub fn items(&self) -> (Item, Item) {
        let mut digits = String::new();
        self.inputs.write(&mut digits);
        let item = self.packed.on(Item::new(rows::EvaluationRecord::key(self.dataset, self.id)));
        let item = item.with(INPUTS, text(digits)).with(UPDATED, number(self.updated));
        let claim = Item::new(rows::EvaluationInputs::key(self.dataset, &self.inputs));
        (with_users(item, self.created_by, self.updated_by), claim.with(RECORD, text(self.id.as_str())))
    }
}

fn with_users(item: Item, created_by: Option<&str>, updated_by: Option<&str>) -> Item {
    let item = created_by.into_iter().fold(item, |item, user| item.with(CREATED_BY, text(user)));
    updated_by.into_iter().fold(item, |item, user| item.with(UPDATED_BY, text(user)))
}
