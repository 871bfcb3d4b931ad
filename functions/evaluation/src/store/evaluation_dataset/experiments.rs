//! The experiments of evaluation datasets.

use std::collections::{BTreeSet, HashSet};

use entities::attributes::{CREATED_BY, EXPERIMENTS, NAME, UPDATED};
use entities::{entry_name, now_ms};
use key_schema::rows;
use mlflow_api::evaluation_datasets::EvaluationDataset;
use mlflow_api::{Error, EvaluationDatasetId, ExperimentId, Result};
use table::{Condition, Failure, Update, Write, WriteRefusal, number};

use super::dataset_item::{
    DatasetReference, MAX_TRANSACTION_WRITES, created, experiment_key, experiments_of, list_row,
};
use crate::store::Store;

/// Returns MLflow's error about a change to the experiments of a dataset that does not exist.
fn no_dataset(id: &str) -> Error {
    Error::not_found(format!("Dataset '{id}' not found"))
}

impl Store {
    /// Returns the experiments of an evaluation dataset, in the order in which they were added. The
    /// result is empty if the dataset does not exist. Takes one request.
    pub async fn dataset_experiments(&self, id: &DatasetReference) -> Result<Vec<String>> {
        Ok(self.dataset_item(id).await?.map(|(_, item)| experiments_of(&item)).unwrap_or_default())
    }

    /// Adds an evaluation dataset to experiments. The experiments must exist, but may be deleted.
    /// Takes three requests, or two while leases on the experiments last.
    pub async fn dataset_add_experiments(
        &self,
        id: &DatasetReference,
        experiments: &[String],
    ) -> Result<EvaluationDataset> {
        let (dataset, item) = self.dataset_item(id).await?.ok_or_else(|| no_dataset(&id.text))?;
        // An experiment id is valid only in its canonical form, because MLflow compares ids as
        // texts.
        let canonical = |text: &String| ExperimentId::parse(text).ok().filter(|id| id.to_string() == *text);
        let ids: BTreeSet<_> = experiments.iter().filter_map(canonical).collect();
        let states = self.experiments.states(&ids.into_iter().collect::<Vec<_>>()).await?;
        let there: HashSet<_> = states.into_iter().map(|(id, _)| id.to_string()).collect();
        if let Some(missing) = experiments.iter().find(|experiment| !there.contains(*experiment)) {
            return Err(Error::not_found(format!("No Experiment with id={missing}")));
        }
        let held = experiments_of(&item);
        let new: BTreeSet<_> = experiments.iter().filter(|experiment| !held.contains(experiment)).collect();
        let (name, user, created) =
            (item.get(NAME).unwrap_or_default(), item.get(CREATED_BY), created(&dataset, &item));
        let now = now_ms();
        self.dataset_change_experiments(
            &dataset,
            &id.text,
            &new.into_iter().collect::<Vec<_>>(),
            now,
            |update, experiment| {
                let row = list_row(experiment_key(&dataset, experiment), &dataset, created, name, user);
                let update = update.set((EXPERIMENTS, entry_name(experiment).as_ref()), number(now));
                (update, Write::Put(row, Condition::Always))
            },
        )
        .await?;
        self.dataset_with_tags(&dataset, &item.with(UPDATED, number(now))).await
    }

    /// Removes an evaluation dataset from experiments. Experiments that it does not belong to are
    /// ignored. Takes two requests.
    pub async fn dataset_remove_experiments(
        &self,
        id: &DatasetReference,
        experiments: &[String],
    ) -> Result<EvaluationDataset> {
        let (dataset, item) = self.dataset_item(id).await?.ok_or_else(|| no_dataset(&id.text))?;
        let held = experiments_of(&item);
        let gone: Vec<_> = held.iter().filter(|experiment| experiments.contains(experiment)).collect();
        if gone.is_empty() {
            return self.dataset_with_tags(&dataset, &item).await;
        }
        let now = now_ms();
        self.dataset_change_experiments(&dataset, &id.text, &gone, now, |update, experiment| {
            let update = update.remove((EXPERIMENTS, entry_name(experiment).as_ref()));
            (update, Write::Delete(experiment_key(&dataset, experiment), Condition::Always))
        })
        .await?;
        self.dataset_with_tags(&dataset, &item.with(UPDATED, number(now))).await
    }

    /// Changes the dataset's item, and the dataset's row in the list of each experiment. Takes one
    /// request per 99 experiments, and one if there are none.
    async fn dataset_change_experiments(
        &self,
        dataset: &EvaluationDatasetId,
        id: &str,
        experiments: &[&String],
        now: i64,
        change: impl Fn(Update, &str) -> (Update, Write),
    ) -> Result<()> {
        let mut portions: Vec<_> = experiments.chunks(MAX_TRANSACTION_WRITES - 1).collect();
        if portions.is_empty() {
            portions.push(&[]);
        }
        for portion in portions {
            let mut update = Update::new(rows::EvaluationDataset::key(dataset)).set(UPDATED, number(now));
            let mut writes = Vec::new();
            for experiment in portion {
                let (changed, write) = change(update, experiment);
                update = changed;
                writes.push(write);
            }
            writes.push(Write::Update(update));
            match self.table.transact(&writes).await {
                Err(Failure::Cancelled(reasons)) if matches!(reasons.last(), Some(WriteRefusal::Refused(None))) => {
                    return Err(no_dataset(id));
                }
                outcome => outcome?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use key_schema::Key;
    use table::{Item, Map, map};

    use super::*;

    #[test]
    fn experiments_are_in_the_order_they_were_added_in() {
        let entries = [("2", 7), ("10", 5), ("\0", 7), ("1", 7)];
        let entries: Map = entries.map(|(name, added)| (name.to_owned(), number(added))).into_iter().collect();
        let item = Item::new(Key { pk: "P".to_owned(), sk: "S".to_owned() }).with(EXPERIMENTS, map(entries));
        assert_eq!(experiments_of(&item), ["10", "", "1", "2"]);
    }
}
