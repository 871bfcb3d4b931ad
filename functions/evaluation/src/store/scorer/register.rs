//! Registering scorers.

use access::{Guard, Resource};
use entities::documents::content;
use entities::{if_closed, now_ms};
use mlflow_api::scorers as wire;
use mlflow_api::{Error, Result, ScorerId, Workspace};
use rand::RngExt;
use table::{Condition, Failure, Write};

use super::items::StoredScorerItems;
use super::payload_validation;
use super::scorer_row::{ScorerName, StoredScorer, header_key, part_key};
use crate::store::Store;

/// Checks the name and the content of a scorer to register.
pub(crate) fn check_scorer(name: &str, serialized: &str) -> Result<()> {
    payload_validation::check(serialized)?;
    if name.trim().is_empty() {
        return Err(Error::invalid("Scorer name cannot be empty or contain only whitespace."));
    }
    Ok(())
}

impl Store {
    /// Registers a version of a scorer. The first version creates the scorer. Takes two requests,
    /// one more if the lease on the experiment has expired, and one more per 25 parts of a large
    /// version.
    pub async fn scorer_register(
        &self,
        workspace: &Workspace,
        scorer: &ScorerName,
        serialized: &str,
    ) -> Result<wire::RegisterScorerResponse> {
        let experiment = self.active_experiment(*scorer.experiment).await?;
        payload_validation::check_model(serialized)?;
        let mut attempts = self.table.attempts("a scorer");
        loop {
            attempts.next().await?;
            let item = self.table.get(&header_key(experiment, &scorer.name)).await?;
            let is_taken = item.is_some();
            let found = StoredScorer::named(scorer, item)?;
            if is_taken && found.is_none() {
                return Err(Error::key_taken("scorer"));
            }
            let latest = found.as_ref().and_then(StoredScorer::latest).unwrap_or_default();
            let version = latest.checked_add(1).ok_or_else(|| Error::internal("no versions left"))?;
            let created = now_ms();
            let (id, condition) = if let Some(found) = &found {
                (found.id.clone(), found.unchanged())
            } else {
                let time = u64::try_from(created).unwrap_or_default();
                (ScorerId::new(time, experiment, rand::rng().random()), Condition::item_missing())
            };
            let packed = content::pack_once(
                &format!("{id} {version}"),
                serialized,
                content::MAX_INLINE_BYTES,
                part_key(experiment),
            );
            let items = StoredScorerItems { experiment, workspace, name: &scorer.name, id: &id };
            let row = items.version(version, created, &packed);
            let header = items.header(Some(&row));
            let header = found.iter().fold(header, |header, found| found.keep_import(header));
            let mut others = vec![Write::Put(header, condition)];
            if found.is_none() {
                others.push(Write::Put(items.listed(), Condition::Always));
                let guarded = Guard::Scorer(experiment, scorer.name.clone());
                others.extend(self.authorizer_writes.workspace_open_condition(workspace));
                others.extend(self.authorizer_writes.writes_of_creation(
                    Resource::Scorer,
                    &guarded,
                    id.as_str(),
                    &scorer.name,
                ));
            }
            let parts = packed.part_keys();
            self.table.write_many(packed.parts, &[]).await?;
            match self.table.create(row, others).await {
                Ok(()) => {
                    return Ok(wire::RegisterScorerResponse {
                        version,
                        scorer_id: id.to_string(),
                        experiment_id: experiment.to_string(),
                        name: scorer.name.clone(),
                        serialized_scorer: serialized.to_owned(),
                        creation_time: created,
                    });
                }
                // Another request has registered a version concurrently. The parts that were
                // written for this attempt will never be referenced, so they are deleted.
                Err(Failure::Cancelled(reasons)) => {
                    self.table.write_many(Vec::new(), &parts).await?;
                    let check = reasons.get(3).filter(|_| {
                        found.is_none() && self.authorizer_writes.workspace_open_condition(workspace).is_some()
                    });
                    if let Some(closed) = if_closed(workspace, check) {
                        return Err(closed);
                    }
                }
                Err(failure) => return Err(failure.into()),
            }
        }
    }
}
