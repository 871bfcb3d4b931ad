//! Logged models of runs.

use key_schema::{Ascending, Name, rows};
use mlflow_api::Result;
use mlflow_api::tracking::ModelOutput;
use table::{Condition, Failure, Item, Update, Write, number, text};

use super::Store;
use super::document::Document;
use super::run_document::RunDocument;

/// On a run: it has rows of logged models.
pub(super) const OUTPUTS: &str = "outputs";
const MODEL: &str = "model";
const STEP: &str = "step";
/// Rows in one transaction, beside the run.
const ROWS: usize = 99;

impl Store {
    /// Records models that a run logged. One transaction per 99; a model recorded twice at one step is there once.
    pub async fn run_log_outputs(&self, run_id: &str, models: &[ModelOutput]) -> Result<()> {
        let (at, experiment) = self.run_locate_with_experiment(run_id).await?;
        let document = RunDocument { at: &at, experiment: &experiment, single_param: false };
        if models.is_empty() {
            return document.check(self.table.get(&at.key()).await?.as_ref());
        }
        for models in models.chunks(ROWS) {
            let run = Update::new(at.key()).only_if(document.writable()).set(OUTPUTS, number(1));
            let mut rows: Vec<Item> = models
                .iter()
                .map(|model| {
                    let name = Name::from(model.model_id.as_str());
                    Item::new(rows::RunOutput::key(&at.experiment, &at.run, &name, &Ascending(model.step)))
                        .with(MODEL, text(&model.model_id))
                        .with(STEP, number(model.step))
                })
                .collect();
            // A transaction may not write an item twice.
            rows.sort_by_key(Item::key);
            rows.dedup_by_key(|row| row.key());
            let rows = rows.into_iter().map(|row| Write::Put(row, Condition::All(Vec::new())));
            let writes: Vec<_> = std::iter::once(Write::Update(run)).chain(rows).collect();
            match self.table.transact(&writes).await {
                Ok(()) => {}
                Err(Failure::Cancelled(_)) => {
                    document.check(self.table.get(&at.key()).await?.as_ref())?;
                    return Err(mlflow_api::Error::unavailable("a run changed while its models were recorded"));
                }
                Err(failure) => return Err(failure.into()),
            }
        }
        Ok(())
    }
}

/// A logged model from its row.
pub(super) fn model_output(row: &Item) -> Option<ModelOutput> {
    Some(ModelOutput { model_id: row.text(MODEL)?.to_owned(), step: row.number(STEP)? })
}
