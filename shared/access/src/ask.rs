//! The guards of a need, and the asks about them.

use std::collections::{HashMap, HashSet};

use key_schema::rows;
use mlflow_api::{EvaluationDatasetId, ExperimentId, Result};
use table::Table;

use crate::guard::{Ask, Guarded, Stored, experiments_of};
use crate::needs::Need;
use crate::resolve::Resolved;

/// The ask about a need and one of its guards.
pub(crate) fn one(need: &Need, guard: Guarded, stored: Option<Stored>) -> Ask {
    let is_prompt = stored.as_ref().is_some_and(|stored| stored.is_prompt);
    let kind = if is_prompt { need.kind.of_prompt() } else { need.kind };
    Ask { action: need.action, kind, guard, stored }
}

/// The guards of a need's target: each of the experiments of an evaluation dataset, if there is
/// any, and one guard for all else.
pub(crate) fn guards(
    need: &Need,
    resolved: Option<&Resolved>,
    listed: &HashMap<EvaluationDatasetId, Vec<ExperimentId>>,
) -> Vec<Guarded> {
    let Some(resolved) = resolved else { return Vec::new() };
    match resolved {
        Resolved::EvaluationDataset(dataset) => match listed.get(dataset) {
            Some(experiments) if !experiments.is_empty() => {
                experiments.iter().copied().map(Guarded::Experiment).collect()
            }
            _ => vec![resolved.guarded(&need.target)],
        },
        _ => vec![resolved.guarded(&need.target)],
    }
}

/// The experiments of the evaluation datasets that a request names. One request, if it names any.
pub(crate) async fn experiments_of_datasets(
    table: &Table,
    targets: &[Option<Resolved>],
) -> Result<HashMap<EvaluationDatasetId, Vec<ExperimentId>>> {
    let named = targets.iter().flatten().filter_map(|resolved| match resolved {
        Resolved::EvaluationDataset(dataset) => Some(dataset.clone()),
        _ => None,
    });
    let named: HashSet<_> = named.collect();
    if named.is_empty() {
        return Ok(HashMap::new());
    }
    let key = |dataset: &EvaluationDatasetId| Some(rows::EvaluationDataset::key(dataset));
    let keys: Vec<_> = named.iter().filter_map(key).collect();
    let items = table.get_many(&keys).await?;
    let listed = named.into_iter().map(|dataset| {
        let item = key(&dataset).and_then(|key| items.get(&key));
        let experiments = item.map(|item| experiments_of(item).collect()).unwrap_or_default();
        (dataset, experiments)
    });
    Ok(listed.collect())
}
