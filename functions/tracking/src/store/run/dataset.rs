//! Datasets that runs read. Each dataset is one item, with separate parts if it is large.
//!
//! Only the contexts of a dataset ever change. Source, schema and profile are compressed. If they
//! are small, they are in the item itself, so listing an experiment's datasets stays cheap. If they
//! are large, they are in parts in another partition, which can hold any number of them.

use entities::documents::content;
use std::collections::BTreeSet;

use access::Granted;
use entities::attributes::{Attribute, CONTEXTS, DIGEST, NAME, SOURCE_TYPE, Text};
use entities::{RunLocation, dataset_digest, dataset_key, is_dataset};
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::index::RunsOfDataset;
use key_schema::{Key, Ordinal, WideDigest, rows};
use mlflow_api::inputs::{Dataset, DatasetInput, DatasetSummary};
use mlflow_api::{Error, ExperimentId, Result};
use table::{Condition, Item, Query, Table, Update, Write, bytes_set, text};

use crate::store::Store;

/// Maximum number of bytes of compressed content in the item itself.
pub(crate) const MAX_INLINE_BYTES: usize = 8 << 10;
/// Maximum number of summaries in a response, as in MLflow's `_search_datasets`.
const MAX_SUMMARIES: usize = 1_000;
/// Number of experiments whose datasets are read concurrently.
const CONCURRENCY: usize = 8;

impl Store {
    /// Returns the write for a dataset that a run reads, given the dataset's current item, or
    /// `None` if nothing has to be written. Writes the dataset's parts immediately, so that every
    /// reader of the item finds the parts.
    pub(crate) async fn run_dataset_write(
        &self,
        experiment: ExperimentId,
        input: &DatasetInput,
        found: Option<&Item>,
    ) -> Result<Option<Write>> {
        let Dataset { name, digest, .. } = &input.dataset;
        let key = dataset_key(experiment, name, digest);
        let used_for = bytes_set([context_element(input.context())]);
        if let Some(found) = found {
            if !is_dataset(found, name, digest) {
                return Err(Error::key_taken("dataset"));
            }
            let is_known = contexts(found).any(|context| context == input.context());
            return Ok((!is_known).then(|| Write::Update(Update::new(key).add(CONTEXTS, used_for))));
        }
        let DatasetItems { parts, item } = dataset_items(experiment, &input.dataset, [input.context()])?;
        self.table.write_many(parts, &[]).await?;
        Ok(Some(Write::Put(item, Condition::item_missing())))
    }

    /// Returns up to 1,000 summaries of the experiments' datasets, one for each context in which a
    /// dataset was used. Takes one request per experiment, or one per MB of datasets.
    pub async fn run_datasets_search(&self, experiments: &[Granted<ExperimentId>]) -> Result<Vec<DatasetSummary>> {
        let summaries: Vec<_> = experiments.iter().map(|experiment| self.run_datasets_of(**experiment)).collect();
        let mut summaries = stream::iter(summaries).buffer_unordered(CONCURRENCY);
        let mut first = BTreeSet::new();
        while let Some(of_experiment) = summaries.try_next().await? {
            first.extend(of_experiment);
            while first.len() > MAX_SUMMARIES {
                first.pop_last();
            }
        }
        Ok(first.into_iter().collect())
    }

    /// Returns the summaries of an experiment's datasets: all of them, or slightly more than 1,000.
    async fn run_datasets_of(&self, experiment: ExperimentId) -> Result<Vec<DatasetSummary>> {
        let query = Query::of(rows::Dataset::all(&experiment));
        let mut pages = std::pin::pin!(entities::listing::pages(&self.table, query));
        let mut summaries = Vec::new();
        while let Some(items) = pages.try_next().await? {
            summaries.extend(items.iter().flat_map(|item| summaries_of(experiment, item)));
            if summaries.len() >= MAX_SUMMARIES {
                break;
            }
        }
        Ok(summaries)
    }

    /// Returns the runs that read a dataset, in all experiments. Eventually consistent. Takes one
    /// request per MB of keys.
    pub async fn runs_of_dataset(&self, name: &str, digest: &str) -> Result<Vec<RunLocation>> {
        let links = self.table.query(Query::of(RunsOfDataset::all(&dataset_digest(name, digest)))).await?;
        let links = links.iter().filter_map(Item::key).filter_map(|key| rows::DatasetLink::parse(&key));
        Ok(links.map(|link| RunLocation { experiment: link.experiment, run: link.run }).collect())
    }
}

/// The items of a dataset.
#[derive(Clone, Debug)]
pub struct DatasetItems {
    /// Parts of a large dataset, which must be written first.
    pub parts: Vec<Item>,
    /// The dataset's own item.
    pub item: Item,
}

/// Returns the items of a dataset that runs have read in these contexts.
///
/// # Errors
/// Returns an error if the dataset cannot be written as JSON.
pub fn dataset_items<'a>(
    experiment: ExperimentId,
    dataset: &Dataset,
    contexts: impl IntoIterator<Item = Option<&'a str>>,
) -> Result<DatasetItems> {
    let Dataset { name, digest, source_type, source, schema, profile } = dataset;
    let json = serde_json::to_string(&[source, schema, profile]).map_err(Error::internal)?;
    let packed = content::pack("dataset", &json, MAX_INLINE_BYTES, part_key(experiment, name, digest));
    let item = Item::new(dataset_key(experiment, name, digest))
        .with(NAME, text(name))
        .with(DIGEST, text(digest))
        .with(SOURCE_TYPE, text(source_type))
        .with(CONTEXTS, bytes_set(contexts.into_iter().map(context_element)));
    let parts = packed.parts.clone();
    Ok(DatasetItems { parts, item: packed.on(item) })
}

/// Reads a dataset from its item. Takes one request if the dataset is large.
///
/// # Errors
/// Returns an error if the dataset cannot be read.
pub async fn read_dataset(table: &Table, experiment: ExperimentId, item: &Item) -> Result<Dataset> {
    let text = |attribute: Attribute<Text>| item.get(attribute).unwrap_or_default().to_owned();
    let (name, digest, source_type) = (text(NAME), text(DIGEST), text(SOURCE_TYPE));
    let json = content::read(table, item, part_key(experiment, &name, &digest)).await?.unwrap_or_default();
    let [source, schema, profile] = serde_json::from_str(&json).map_err(Error::internal)?;
    Ok(Dataset { name, digest, source_type, source, schema, profile })
}

/// Creates the row that links a dataset to a run that read it.
pub(crate) fn link_to_run(at: &RunLocation, input: &DatasetInput) -> Item {
    let digest = dataset_digest(&input.dataset.name, &input.dataset.digest);
    Item::new(rows::DatasetLink::key(&at.experiment, &digest, &at.run)).indexed(RunsOfDataset::key(&digest, &at.run))
}

/// Returns a function that generates the keys of a large dataset's parts.
pub(super) fn part_key(
    experiment: ExperimentId,
    name: &str,
    digest: &str,
) -> impl Fn(&WideDigest, &Ordinal) -> Key + use<> {
    let dataset = dataset_digest(name, digest);
    move |content, part| rows::DatasetPart::key(&experiment, &dataset, content, part)
}

fn summaries_of(experiment: ExperimentId, item: &Item) -> impl Iterator<Item = DatasetSummary> {
    let part = |attribute: Attribute<Text>| item.get(attribute).unwrap_or_default().to_owned();
    contexts(item).map(move |context| DatasetSummary {
        experiment_id: experiment.to_string(),
        name: part(NAME),
        digest: part(DIGEST),
        context: context.map(str::to_owned),
    })
}

/// Encodes a context as an element of the set of contexts. A missing context is encoded too,
/// because it has to be stored and DynamoDB does not allow empty elements.
fn context_element(context: Option<&str>) -> Vec<u8> {
    context.map_or_else(|| b"-".to_vec(), |context| format!("={context}").into_bytes())
}

/// Returns the contexts of a dataset. `None` stands for uses without a context.
pub fn contexts(item: &Item) -> impl Iterator<Item = Option<&str>> {
    item.elements(CONTEXTS)
        .iter()
        .filter_map(|element| std::str::from_utf8(element.as_ref()).ok())
        .map(|element| element.strip_prefix('='))
}
