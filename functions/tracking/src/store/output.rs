//! Logged models of runs.

use std::collections::HashSet;

use entities::attributes::{MODEL, OUTPUTS, STEP};
use key_schema::{Name, rows};
use mlflow_api::tracking::ModelOutput;
use mlflow_api::{Error, ErrorCode, Result};
use table::{Condition, Failure, Item, Update, Write, number, text};

use super::Store;
use super::run_document::RunDocument;
use documents::Document;

/// Rows in one transaction, beside the run.
const ROWS: usize = 99;

impl Store {
    /// Records models that a run logged. One transaction per 99; the same call a second time changes nothing.
    pub async fn run_log_outputs(&self, run_id: &str, models: &[ModelOutput]) -> Result<()> {
        let (at, experiment) = self.run_locate_with_experiment(run_id).await?;
        let document = RunDocument { at: &at, experiment: &experiment, single_param: false };
        if models.is_empty() {
            return document.check(self.table.get(&at.key()).await?.as_ref());
        }
        let mut ids = HashSet::new();
        if !models.iter().all(|model| ids.insert(&model.model_id)) {
            return Err(Error::new(ErrorCode::BadRequest, "A run's output model is given twice."));
        }
        for models in models.chunks(ROWS) {
            let run = Update::new(at.key()).only_if(document.writable()).set(OUTPUTS, number(1));
            let run = document.finished(run);
            let rows = models.iter().map(|model| {
                let name = Name::from(model.model_id.as_str());
                let row = Item::new(rows::RunOutput::key(&at.experiment, &at.run, &name))
                    .with(MODEL, text(&model.model_id))
                    .with(STEP, number(model.step));
                let same = Condition::Equals(STEP.into(), number(model.step));
                Write::Put(row, Condition::Any(vec![Condition::item_missing(), same]))
            });
            let writes: Vec<_> = std::iter::once(Write::Update(run)).chain(rows).collect();
            match self.table.transact(&writes).await {
                Ok(()) => {}
                Err(Failure::Cancelled(_)) => {
                    document.check(self.table.get(&at.key()).await?.as_ref())?;
                    let message = "A run's output model is recorded already, at another step.";
                    return Err(Error::new(ErrorCode::BadRequest, message));
                }
                Err(failure) => return Err(failure.into()),
            }
        }
        Ok(())
    }
}
