//! Datasets that runs read: one item each, and parts of their own where a dataset is big.
//!
//! Only the contexts of a dataset ever change. Source, schema and profile are kept compressed.
//! Small ones are in the item itself, so that listing an experiment's datasets stays cheap. Large
//! ones are in parts of another partition, which has room for any number.

use documents::content;
use std::collections::BTreeSet;

use access::Granted;
use entities::attributes::{Attribute, CONTEXTS, DIGEST, NAME, SOURCE_TYPE, Text};
use entities::{RunLocation, dataset_digest, dataset_key, is_dataset};
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::index::RunsOfDataset;
use key_schema::{Key, Ordinal, WideDigest, rows};
use mlflow_api::inputs::{Dataset, DatasetInput, DatasetSummary};
use mlflow_api::{Error, ExperimentId, Result};
use table::{Condition, Item, Query, Update, Write, bytes_set, text};

use crate::store::Store;

/// Bytes of compressed content in the item itself.
pub(crate) const DATASET_BYTES: usize = 8 << 10;
/// Summaries in an answer (`_search_datasets`).
const MOST_SUMMARIES: usize = 1_000;
/// Experiments whose datasets are read at a time.
const AT_ONCE: usize = 8;

impl Store {
    /// The writes for a dataset that a run reads, given its current item. Its parts are written at
    /// once, so that every reader of the item finds them.
    pub(crate) async fn run_dataset_written(
        &self,
        experiment: ExperimentId,
        input: &DatasetInput,
        found: Option<&Item>,
    ) -> Result<Option<Write>> {
        let Dataset { name, digest, source_type, source, schema, profile } = &input.dataset;
        let key = dataset_key(experiment, name, digest);
        let used_for = bytes_set([context_element(input.context())]);
        if let Some(found) = found {
            if !is_dataset(found, name, digest) {
                return Err(Error::key_taken("dataset"));
            }
            let is_known = contexts(found).any(|context| context == input.context());
            return Ok((!is_known).then(|| Write::Update(Update::new(key).add(CONTEXTS, used_for))));
        }
        let json = serde_json::to_string(&[source, schema, profile]).map_err(Error::internal)?;
        let packed = content::pack("dataset", &json, DATASET_BYTES, part_key(experiment, name, digest));
        self.table.write_many(packed.parts.clone(), &[]).await?;
        let item = Item::new(key)
            .with(NAME, text(name))
            .with(DIGEST, text(digest))
            .with(SOURCE_TYPE, text(source_type))
            .with(CONTEXTS, used_for);
        let item = packed.on(item);
        Ok(Some(Write::Put(item, Condition::item_missing())))
    }

    /// The datasets of experiments, each with each context it was read in; at most 1,000. One request an experiment, or one per
    /// MB of datasets.
    pub async fn run_datasets_search(&self, experiments: &[Granted<ExperimentId>]) -> Result<Vec<DatasetSummary>> {
        let summaries: Vec<_> = experiments.iter().map(|experiment| self.run_datasets_of(**experiment)).collect();
        let mut summaries = stream::iter(summaries).buffer_unordered(AT_ONCE);
        let mut first = BTreeSet::new();
        while let Some(of_experiment) = summaries.try_next().await? {
            first.extend(of_experiment);
            while first.len() > MOST_SUMMARIES {
                first.pop_last();
            }
        }
        Ok(first.into_iter().collect())
    }

    /// The datasets of an experiment: all of them, or 1,000 and a few more.
    async fn run_datasets_of(&self, experiment: ExperimentId) -> Result<Vec<DatasetSummary>> {
        let query = Query::of(rows::Dataset::all(&experiment));
        let mut pages = std::pin::pin!(listing::pages(&self.table, query));
        let mut summaries = Vec::new();
        while let Some(items) = pages.try_next().await? {
            summaries.extend(items.iter().flat_map(|item| summaries_of(experiment, item)));
            if summaries.len() >= MOST_SUMMARIES {
                break;
            }
        }
        Ok(summaries)
    }

    /// The runs that read a dataset, in any experiment; eventually consistent. One request per MB
    /// of keys.
    pub async fn runs_of_dataset(&self, name: &str, digest: &str) -> Result<Vec<RunLocation>> {
        let links = self.table.query(Query::of(RunsOfDataset::all(&dataset_digest(name, digest)))).await?;
        let links = links.iter().filter_map(Item::key).filter_map(|key| rows::DatasetLink::parse(&key));
        Ok(links.map(|link| RunLocation { experiment: link.experiment, run: link.run }).collect())
    }
}

/// The row that leads from a dataset to a run that read it.
pub(crate) fn link_to_run(at: &RunLocation, input: &DatasetInput) -> Item {
    let digest = dataset_digest(&input.dataset.name, &input.dataset.digest);
    Item::new(rows::DatasetLink::key(&at.experiment, &digest, &at.run)).indexed(RunsOfDataset::key(&digest, &at.run))
}

/// The keys of the parts of a big dataset.
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

/// A context as an element of the set: DynamoDB takes no empty element, and no context is one as well.
fn context_element(context: Option<&str>) -> Vec<u8> {
    context.map_or_else(|| b"-".to_vec(), |context| format!("={context}").into_bytes())
}

/// The contexts of a dataset; `None` among them for a use without one.
fn contexts(item: &Item) -> impl Iterator<Item = Option<&str>> {
    item.elements(CONTEXTS)
        .iter()
        .filter_map(|element| std::str::from_utf8(element.as_ref()).ok())
        .map(|element| element.strip_prefix('='))
}
