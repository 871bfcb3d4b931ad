//! Datasets that runs read: one item each, and parts beside it where it is big.
//!
//! A dataset never changes but for the contexts it was read in. Source, schema and profile are kept compressed: in the item
//! itself if that is small, so that the list of an experiment's datasets stays cheap, else in parts of another partition,
//! which has room for any number.

use std::collections::{BTreeSet, HashMap};

use access::Granted;
use entities::attributes::{CONTEXTS, DIGEST, NAME, SOURCE_TYPE};
use entities::{RunLocation, dataset_digest, dataset_key, dataset_parts};
use futures::future::try_join_all;
use key_schema::index::RunsOfDataset;
use key_schema::{Key, Ordinal, WideDigest, rows};
use mlflow_api::inputs::{Dataset, DatasetInput, DatasetSummary};
use mlflow_api::{Error, ExperimentId, Result, tracking};
use table::{Condition, Item, Query, Update, Write, bytes_set, text};

use crate::store::Store;

/// Bytes of compressed content in the item itself.
pub(crate) const DATASET_BYTES: usize = 8 << 10;
/// Summaries in an answer (`_search_datasets`).
const MOST_SUMMARIES: usize = 1_000;

impl Store {
    /// What has to be written for a dataset that a run reads, given the item it has; its parts are written at once, so that
    /// whoever sees the item sees them.
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

    /// Fills in what the datasets of runs are, of which only names and digests are known. One request per 100 datasets, and one
    /// more for each that is big.
    pub(crate) async fn run_datasets_fill(&self, runs: &mut [tracking::Run]) -> Result<()> {
        let mut keys = BTreeSet::new();
        for_each_dataset(runs, |key, _| {
            keys.insert(key);
        });
        if keys.is_empty() {
            return Ok(());
        }
        let items = self.table.get_many(&keys.into_iter().collect::<Vec<_>>()).await?;
        let datasets = items
            .iter()
            .map(|(key, item)| async move { Ok::<_, Error>((key, self.run_dataset_whole(key, item).await?)) });
        let datasets: HashMap<&Key, Dataset> = try_join_all(datasets).await?.into_iter().collect();
        for_each_dataset(runs, |key, dataset| {
            if let Some(whole) = datasets.get(&key) {
                dataset.clone_from(whole);
            }
        });
        Ok(())
    }

    /// A dataset from its item; one request if it is big.
    async fn run_dataset_whole(&self, key: &Key, item: &Item) -> Result<Dataset> {
        let unreadable = || Error::internal(format!("the content of a dataset cannot be read: {key:?}"));
        let [name, digest, source_type] =
            [NAME, DIGEST, SOURCE_TYPE].map(|attribute| item.text(attribute).unwrap_or_default().to_owned());
        let experiment = rows::Dataset::parse(key).map(|row| row.experiment).ok_or_else(unreadable)?;
        let content = content::read(&self.table, item, part_key(experiment, &name, &digest)).await?;
        let json = content.ok_or_else(unreadable)?;
        let [source, schema, profile] = serde_json::from_str(&json).map_err(|_| unreadable())?;
        Ok(Dataset { name, digest, source_type, source, schema, profile })
    }

    /// The datasets of experiments, each with each context it was read in; at most 1,000. One request an experiment, or one per
    /// MB of datasets.
    pub async fn run_datasets_search(&self, experiments: &[Granted<ExperimentId>]) -> Result<Vec<DatasetSummary>> {
        let summaries = experiments.iter().map(|experiment| async move {
            let mut query = Query::of(rows::Dataset::all(experiment));
            let mut summaries = Vec::new();
            loop {
                let page = self.table.query_page(&query).await?;
                summaries.extend(page.items.iter().flat_map(|item| summaries_of(**experiment, item)));
                match page.next.filter(|_| summaries.len() < MOST_SUMMARIES) {
                    Some(next) => query = query.starting_at(next),
                    None => return Ok::<_, Error>(summaries),
                }
            }
        });
        let mut summaries: Vec<_> = try_join_all(summaries).await?.into_iter().flatten().collect();
        summaries.sort_unstable();
        summaries.truncate(MOST_SUMMARIES);
        Ok(summaries)
    }

    /// The runs that read a dataset, in whichever experiment; behind by moments. A request per MB of keys.
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

/// Calls a function with each dataset of runs, and with its key.
fn for_each_dataset(runs: &mut [tracking::Run], mut call: impl FnMut(Key, &mut Dataset)) {
    for run in runs {
        let experiment = run.info.experiment_id.parse().ok().and_then(ExperimentId::from_number);
        let Some(experiment) = experiment else { continue };
        for input in &mut run.inputs.dataset_inputs {
            call(dataset_key(experiment, &input.dataset.name, &input.dataset.digest), &mut input.dataset);
        }
    }
}

/// The keys of the parts of a big dataset.
fn part_key(experiment: ExperimentId, name: &str, digest: &str) -> impl Fn(&WideDigest, &Ordinal) -> Key + use<> {
    let partition = dataset_parts(experiment, name, digest);
    move |content, part| rows::DatasetPart::key(&partition, content, part)
}

fn summaries_of(experiment: ExperimentId, item: &Item) -> impl Iterator<Item = DatasetSummary> {
    let part = |attribute: &str| item.text(attribute).unwrap_or_default().to_owned();
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
    let set = item.0.get(CONTEXTS).and_then(|set| set.as_bs().ok()).map(Vec::as_slice).unwrap_or_default();
    set.iter().filter_map(|element| std::str::from_utf8(element.as_ref()).ok()).map(|element| element.strip_prefix('='))
}
