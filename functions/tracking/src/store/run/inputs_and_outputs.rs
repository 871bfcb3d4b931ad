//! Inputs and outputs of runs: datasets and logged models.

use std::collections::{HashMap, HashSet};

use access::Granted;
use entities::attributes::{LINKS, MODEL, STEP};
use entities::documents::Document;
use entities::{RunLocation, dataset_digest, dataset_link, is_dataset, now_ms};
use key_schema::{Key, Name, rows};
use mlflow_api::inputs::{DatasetInput, ModelInput};
use mlflow_api::tracking::ModelOutput;
use mlflow_api::{Error, ErrorCode, Result};
use table::{Condition, Failure, Item, Update, Write, number, text};

use super::dataset::{self, MAX_INLINE_BYTES};
use super::items::output_row;
use super::run_document::RunDocument;
use crate::store::Store;

/// Maximum number of rows in one transaction, in addition to the run.
const MAX_TRANSACTION_ROWS: usize = 99;
/// Maximum number of datasets in one transaction. Each takes up to three items.
const MAX_TRANSACTION_DATASETS: usize = MAX_TRANSACTION_ROWS / 3;
/// Maximum number of bytes that are put into one transaction. DynamoDB allows 4 MB.
const MAX_TRANSACTION_BYTES: usize = 3 << 20;
/// Maximum size, in bytes, of a dataset's description without its content. An item can have up to
/// 400 KB.
const MAX_DESCRIPTION_BYTES: usize = 300 << 10;

impl Store {
    /// Records datasets and logged models that a run read. Takes two requests, and one more for the
    /// experiment if the lease on it has expired. Further requests are needed only for new large
    /// datasets, or for more than 33 datasets.
    ///
    /// Within an experiment, a dataset is identified by its name and digest. If it is logged again,
    /// its first description is kept. If a run logs it again, the tags of the first call are kept
    /// as well.
    pub async fn run_log_inputs(
        &self,
        at: &Granted<RunLocation>,
        datasets: &[DatasetInput],
        models: &[ModelInput],
    ) -> Result<()> {
        if datasets.iter().any(|input| size(input) > MAX_DESCRIPTION_BYTES) {
            return Err(Failure::TooLarge.into());
        }
        let experiment = self.run_experiment(at).await?;
        let document = RunDocument { at, experiment: &experiment, single_param: false };
        let mut seen = HashSet::new();
        let datasets: Vec<_> =
            datasets.iter().filter(|input| seen.insert((&input.dataset.name, &input.dataset.digest))).collect();
        let mut place = 0;
        for datasets in split_into_transactions(&datasets) {
            self.run_link_datasets(&document, datasets, place).await?;
            place += datasets.len();
        }
        let mut seen = HashSet::new();
        let rows = models.iter().filter(|model| seen.insert(&model.model_id)).map(|model| {
            let row = rows::RunModelInput::key(&at.experiment, &at.run, &Name::from(model.model_id.as_str()));
            Write::Put(Item::new(row).with(MODEL, text(&model.model_id)), Condition::Always)
        });
        let rows: Vec<_> = rows.collect();
        for rows in rows.chunks(MAX_TRANSACTION_ROWS) {
            if !self.run_link(&document, rows.to_vec()).await? {
                document.check(self.table.get(&at.key()).await?.as_ref())?;
                return Err(Error::unavailable("a run changed while its inputs were recorded"));
            }
        }
        if datasets.is_empty() && rows.is_empty() {
            document.check(self.table.get(&at.key()).await?.as_ref())?;
        }
        Ok(())
    }

    /// Links a run to datasets, and creates those that are new. `place` is the number of datasets
    /// that the call has logged before this portion.
    async fn run_link_datasets(
        &self,
        document: &RunDocument<'_>,
        datasets: &[&DatasetInput],
        place: usize,
    ) -> Result<()> {
        let at = document.at;
        let keys: Vec<_> = datasets.iter().map(|input| DatasetKeys::of(at, input)).collect();
        let wanted: Vec<_> = keys.iter().flat_map(|keys| [keys.dataset.clone(), keys.input.clone()]).collect();
        let logged = now_ms().saturating_mul(1_000);
        let mut attempts = self.table.attempts("a dataset");
        loop {
            attempts.next().await?;
            let found = self.table.get_many(&wanted).await?;
            let mut writes = Vec::new();
            for (number, (input, keys)) in (place..).zip(datasets.iter().zip(&keys)) {
                if let Some(row) = found.get(&keys.input) {
                    if !is_dataset(row, &input.dataset.name, &input.dataset.digest) {
                        return Err(Error::key_taken("dataset"));
                    }
                    continue;
                }
                let order = logged.saturating_add(i64::try_from(number).unwrap_or_default());
                let row = dataset_link(Item::new(keys.input.clone()), input, order);
                writes.push(Write::Put(row, Condition::item_missing()));
                writes.push(Write::Put(dataset::link_to_run(at, input), Condition::Always));
                writes.extend(self.run_dataset_write(at.experiment, input, found.get(&keys.dataset)).await?);
            }
            if writes.is_empty() {
                // All links exist already. The run still has to be checked.
                return document.check(self.table.get(&at.key()).await?.as_ref());
            }
            if self.run_link(document, writes).await? {
                return Ok(());
            }
            document.check(self.table.get(&at.key()).await?.as_ref())?;
        }
    }

    /// Records models that a run produced. Takes one transaction per 99 models. Repeating a call
    /// changes nothing.
    pub async fn run_log_outputs(&self, at: &Granted<RunLocation>, models: &[ModelOutput]) -> Result<()> {
        let experiment = self.run_experiment(at).await?;
        let document = RunDocument { at, experiment: &experiment, single_param: false };
        if models.is_empty() {
            return document.check(self.table.get(&at.key()).await?.as_ref());
        }
        let mut steps = HashMap::new();
        if models.iter().any(|model| steps.insert(&model.model_id, model.step).is_some()) {
            return Err(Error::new(ErrorCode::BadRequest, "A run's output model is given twice."));
        }
        for models in models.chunks(MAX_TRANSACTION_ROWS) {
            let rows = models.iter().map(|model| {
                let row = output_row(at, model);
                let same = Condition::Equals(STEP.into(), number(model.step));
                Write::Put(row, Condition::Any(vec![Condition::item_missing(), same]))
            });
            if !self.run_link(&document, rows.collect()).await? {
                document.check(self.table.get(&at.key()).await?.as_ref())?;
                let message = "A run's output model is recorded already, at another step.";
                return Err(Error::new(ErrorCode::BadRequest, message));
            }
        }
        Ok(())
    }

    /// Writes rows that link a run to datasets and models, and sets the run's attribute that
    /// records that such rows exist. Returns `false` if a condition fails.
    async fn run_link(&self, document: &RunDocument<'_>, rows: Vec<Write>) -> Result<bool> {
        let run = Update::new(document.key()).only_if(document.writable()).set(LINKS, number(1));
        let writes: Vec<_> = std::iter::once(Write::Update(document.finished(run))).chain(rows).collect();
        match self.table.transact(&writes).await {
            Ok(()) => Ok(true),
            Err(Failure::Cancelled(_)) => Ok(false),
            Err(failure) => Err(failure.into()),
        }
    }
}

/// Splits datasets into portions that each fit into one transaction.
fn split_into_transactions<'a, 'b>(datasets: &'b [&'a DatasetInput]) -> Vec<&'b [&'a DatasetInput]> {
    let (mut portions, mut rest) = (Vec::new(), datasets);
    while !rest.is_empty() {
        let mut bytes = 0;
        let fitting = rest.iter().take(MAX_TRANSACTION_DATASETS).take_while(|input| {
            bytes += size(input) + MAX_INLINE_BYTES;
            bytes <= MAX_TRANSACTION_BYTES
        });
        // A portion has at least one dataset, even if that dataset alone exceeds the limit.
        let (portion, others) = rest.split_at(fitting.count().max(1));
        portions.push(portion);
        rest = others;
    }
    portions
}

/// Returns the size, in bytes, of a dataset's description as stored in the dataset's item and in
/// the links from a run, without the dataset's content.
fn size(input: &DatasetInput) -> usize {
    let tags: usize = input.tags.iter().map(|tag| tag.key.len() + tag.value.len() + 8).sum();
    let dataset = &input.dataset;
    1_024 + tags + 3 * (dataset.name.len() + dataset.digest.len()) + dataset.source_type.len()
}

/// The keys of a dataset, and of the row that links a run to it.
struct DatasetKeys {
    dataset: Key,
    input: Key,
}

impl DatasetKeys {
    fn of(at: &RunLocation, input: &DatasetInput) -> Self {
        let digest = dataset_digest(&input.dataset.name, &input.dataset.digest);
        Self {
            dataset: rows::Dataset::key(&at.experiment, &digest),
            input: rows::RunInput::key(&at.experiment, &at.run, &digest),
        }
    }
}
