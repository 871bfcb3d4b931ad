//! Guards of a need, and the access checks that are made from them.

use std::collections::{HashMap, HashSet};

use key_schema::rows;
use mlflow_api::{EvaluationDatasetId, ExperimentId, Result, Workspace};
use table::Table;

use crate::guard::{AccessCheck, Guard, StoredGuard, experiments_of};
use crate::needs::Need;
use crate::target_resolution::ResolvedEntity;

/// Returns the access check of a need and one of its guards.
pub(crate) fn access_check(need: &Need, guard: Guard, stored: Option<StoredGuard>) -> AccessCheck {
    let is_prompt = stored.as_ref().is_some_and(|stored| stored.is_prompt);
    let kind = if is_prompt { need.kind.of_prompt() } else { need.kind };
    AccessCheck { action: need.action, kind, guard, stored }
}

/// Returns the guards of a need's target. An evaluation dataset is guarded by each of its
/// experiments. A dataset without experiments has one guard, like every other target.
pub(crate) fn guards_of(
    need: &Need,
    resolved: Option<&ResolvedEntity>,
    listed: &HashMap<EvaluationDatasetId, Vec<ExperimentId>>,
) -> Vec<Guard> {
    let Some(resolved) = resolved else { return Vec::new() };
    match resolved {
        ResolvedEntity::EvaluationDataset(dataset) => match listed.get(dataset) {
            Some(experiments) if !experiments.is_empty() => {
                experiments.iter().copied().map(Guard::Experiment).collect()
            }
            _ => vec![resolved.guarded(&need.target)],
        },
        _ => vec![resolved.guarded(&need.target)],
    }
}

/// Returns the experiments of the evaluation datasets that a request names. Datasets of another
/// workspace are removed from the targets. Takes one request if any dataset is named.
pub(crate) async fn experiments_of_datasets(
    table: &Table,
    workspace: &Workspace,
    targets: &mut [Option<ResolvedEntity>],
) -> Result<HashMap<EvaluationDatasetId, Vec<ExperimentId>>> {
    let named = targets.iter().flatten().filter_map(|resolved| match resolved {
        ResolvedEntity::EvaluationDataset(dataset) => Some(dataset.clone()),
        _ => None,
    });
    let named: HashSet<_> = named.collect();
    if named.is_empty() {
        return Ok(HashMap::new());
    }
    let key = |dataset: &EvaluationDatasetId| Some(rows::EvaluationDataset::key(dataset));
    let keys: Vec<_> = named.iter().filter_map(key).collect();
    let items = table.get_many(&keys).await?;
    for target in targets.iter_mut() {
        let Some(ResolvedEntity::EvaluationDataset(dataset)) = target else { continue };
        let item = key(dataset).and_then(|key| items.get(&key));
        if item.map(StoredGuard::of).transpose()?.is_some_and(|stored| stored.workspace != *workspace) {
            *target = None;
        }
    }
    let listed = named.into_iter().map(|dataset| {
        let item = key(&dataset).and_then(|key| items.get(&key));
        let experiments = item.map(|item| experiments_of(item).collect()).unwrap_or_default();
        (dataset, experiments)
    });
    Ok(listed.collect())
}
