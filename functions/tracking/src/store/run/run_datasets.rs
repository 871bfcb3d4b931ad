//! Reads the datasets of runs. The runs' own rows contain only names and digests of datasets.

use entities::documents::content;
use std::collections::{BTreeSet, HashMap};

use entities::attributes::{DIGEST, NAME, SOURCE_TYPE};
use entities::dataset_key;
use key_schema::{Key, rows};
use mlflow_api::inputs::Dataset;
use mlflow_api::response_size::{MAX_JSON_BYTES, too_long};
use mlflow_api::tracking::Run;
use mlflow_api::{Error, ExperimentId, Result};
use table::{Item, Table};

use super::dataset::part_key;

/// Batch size for reading items of datasets. A batch is one request.
const BATCH_SIZE: usize = 100;
/// Capacity, in bytes, of the cache of decompressed datasets.
const CACHE_BYTES: usize = 8 << 20;

/// A reader that adds the contents of datasets to one run after another. Contents are decompressed
/// for one run at a time. A cache of a few MB keeps them for further runs with the same datasets.
pub(crate) struct RunDatasets<'a> {
    table: &'a Table,
    items: HashMap<Key, Item>,
    cache: HashMap<Key, Dataset>,
    cache_bytes: usize,
}

impl<'a> RunDatasets<'a> {
    pub(crate) fn new(table: &'a Table) -> Self {
        Self { table, items: HashMap::new(), cache: HashMap::new(), cache_bytes: 0 }
    }

    /// Reads the datasets of the next runs, and returns the number of runs that this covers. The
    /// covered runs have up to 100 datasets together, but at least one run is covered. Takes one
    /// request, none if all of the datasets are loaded already, and more for a run with more than
    /// 100 datasets.
    pub(crate) async fn load<'b>(&mut self, runs: impl Iterator<Item = &'b Run>) -> Result<usize> {
        let (mut keys, mut loaded) = (BTreeSet::new(), 0);
        for run in runs {
            let of_run: BTreeSet<_> = dataset_keys(run).collect();
            if loaded > 0 && keys.len() + of_run.difference(&keys).count() > BATCH_SIZE {
                break;
            }
            keys.extend(of_run);
            loaded += 1;
        }
        self.items.retain(|key, _| keys.contains(key));
        let unknown: Vec<_> = keys.into_iter().filter(|key| !self.items.contains_key(key)).collect();
        self.items.extend(self.table.get_many(&unknown).await?);
        Ok(loaded)
    }

    /// Returns a lower bound, in bytes, of the size of a loaded run's datasets as JSON.
    pub(crate) fn size(&self, run: &Run) -> usize {
        let size = |key| match (self.cache.get(&key), self.items.get(&key)) {
            (Some(dataset), _) => size_of(dataset),
            (None, Some(item)) => content::size(item) + item.get(SOURCE_TYPE).unwrap_or_default().len(),
            (None, None) => 0,
        };
        dataset_keys(run).map(size).sum()
    }

    /// Fills in the datasets of a loaded run. Takes one request per 100 parts of large datasets.
    ///
    /// # Errors
    /// Returns an error if the run with its datasets exceeds the maximum size of a response.
    pub(crate) async fn fill(&mut self, run: &mut Run) -> Result<()> {
        if self.size(run) > MAX_JSON_BYTES {
            return Err(too_long(&format!("The run '{}' with its datasets", run.info.run_id), MAX_JSON_BYTES));
        }
        if self.cache_bytes > CACHE_BYTES {
            self.cache.clear();
            self.cache_bytes = 0;
        }
        self.read_uncached(run).await?;
        let Some(experiment) = experiment(run) else { return Ok(()) };
        for input in &mut run.inputs.dataset_inputs {
            let key = dataset_key(experiment, &input.dataset.name, &input.dataset.digest);
            let is_it = |whole: &&Dataset| whole.name == input.dataset.name && whole.digest == input.dataset.digest;
            if let Some(whole) = self.cache.get(&key).filter(is_it) {
                input.dataset.clone_from(whole);
            }
        }
        Ok(())
    }

    /// Reads the datasets of a run that are not in the cache.
    async fn read_uncached(&mut self, run: &Run) -> Result<()> {
        let unknown: BTreeSet<_> = dataset_keys(run).filter(|key| !self.cache.contains_key(key)).collect();
        let unknown: Vec<_> = unknown.into_iter().filter_map(|key| Some((self.items.get(&key)?, key))).collect();
        let part_keys: Vec<_> = unknown.iter().map(|(item, key)| parts_of(key, item)).collect::<Result<_>>()?;
        let parts = self.table.get_many(&part_keys.concat()).await?;
        let mut found = Vec::with_capacity(unknown.len());
        for ((item, key), part_keys) in unknown.into_iter().zip(&part_keys) {
            let json = content::unpack(item, part_keys, &parts).ok_or_else(|| unreadable(&key))?;
            let [source, schema, profile] = serde_json::from_str(&json).map_err(|_| unreadable(&key))?;
            let [name, digest, source_type] = texts(item);
            found.push((key, Dataset { name, digest, source_type, source, schema, profile }));
        }
        self.cache_bytes += found.iter().map(|(_, dataset)| size_of(dataset)).sum::<usize>();
        self.cache.extend(found);
        Ok(())
    }
}

fn unreadable(key: &Key) -> Error {
    Error::internal(format!("the content of a dataset cannot be read: {key:?}"))
}

fn texts(item: &Item) -> [String; 3] {
    [NAME, DIGEST, SOURCE_TYPE].map(|attribute| item.get(attribute).unwrap_or_default().to_owned())
}

/// Returns the keys of the parts of a dataset's content.
fn parts_of(key: &Key, item: &Item) -> Result<Vec<Key>> {
    let experiment = rows::Dataset::parse(key).map(|row| row.experiment).ok_or_else(|| unreadable(key))?;
    let [name, digest, _] = texts(item);
    Ok(content::part_keys(item, part_key(experiment, &name, &digest)))
}

/// Returns the size, in bytes, of a dataset's texts.
fn size_of(dataset: &Dataset) -> usize {
    [&dataset.source_type, &dataset.source, &dataset.schema, &dataset.profile].into_iter().map(String::len).sum()
}

fn experiment(run: &Run) -> Option<ExperimentId> {
    run.info.experiment_id.parse().ok().and_then(ExperimentId::from_number)
}

/// Returns the keys of a run's datasets.
fn dataset_keys(run: &Run) -> impl Iterator<Item = Key> {
    let of_experiment = experiment(run).map(|experiment| {
        let datasets = run.inputs.dataset_inputs.iter().map(|input| &input.dataset);
        datasets.map(move |dataset| dataset_key(experiment, &dataset.name, &dataset.digest))
    });
    of_experiment.into_iter().flatten()
}
