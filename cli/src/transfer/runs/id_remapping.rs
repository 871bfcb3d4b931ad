//! Chooses the ids of runs whose own ids are taken (`--remap`). This is done before anything is
//! imported, because logged models and runs refer to each other.

use entities::RunLocation;
use mlflow_api::RunId;

use crate::Failure;
use crate::transfer::database::SqlValue;
use crate::transfer::experiments::ImportedExperiment;
use crate::transfer::import::{IdKind, ImportContext, ImportDecision, replacement_digits};

/// Number of runs whose ids are read together.
const BATCH: usize = 1_000;

/// Records the new ids of those runs of an experiment whose ids are taken. Takes one query per
/// 1,000 runs, and one request per 100.
///
/// # Errors
/// The source or the table cannot be read.
pub(crate) async fn remap_ids(context: &ImportContext, experiment: &ImportedExperiment) -> Result<(), Failure> {
    let sql =
        format!("SELECT run_uuid FROM runs WHERE experiment_id = ? AND run_uuid > ? ORDER BY run_uuid LIMIT {BATCH}");
    let number = i64::try_from(experiment.source_id.number())?;
    let mut after = String::new();
    loop {
        let rows = context.source.rows(&sql, vec![SqlValue::Integer(number), after.as_str().into()]).await?;
        let ids: Vec<_> = rows.iter().map(|row| row.text(0)).collect::<Result<_, _>>()?;
        let Some(last) = ids.last() else { return Ok(()) };
        after.clone_from(last);
        let runs: Vec<_> = ids.iter().filter_map(|id| RunId::parse(id)).collect();
        let (foreign, own): (Vec<_>, Vec<_>) =
            runs.into_iter().partition(|run| run.experiment().is_some_and(|other| other != experiment.id));
        let keys: Vec<_> =
            own.iter().map(|run| RunLocation { experiment: experiment.id, run: run.clone() }.key()).collect();
        let documents = context.table.get_many(&keys).await;
        let documents = documents.map_err(|failure| format!("cannot read runs: {failure:?}"))?;
        let is_taken = |key| ImportDecision::of(documents.get(key), "") == ImportDecision::Taken;
        let taken = own.iter().zip(&keys).filter(|(_, key)| is_taken(key)).map(|(run, _)| run);
        for run in foreign.iter().chain(taken) {
            context.remapped.insert(IdKind::Run, run.as_str(), &replacement_id(run.as_str()));
        }
    }
}

/// Returns the id that a run gets if its own is taken.
pub(super) fn replacement_id(source_id: &str) -> String {
    let mut digits = replacement_digits(IdKind::Run, source_id);
    // The version of a random UUID, so that the id is not mistaken for an id of this server, which
    // contains its experiment.
    digits.replace_range(12..13, "4");
    digits
}
