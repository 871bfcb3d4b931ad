//! Chooses the ids of logged models whose own ids are taken (`--remap`). This is done before
//! anything is imported, because logged models and runs refer to each other.

use entities::ModelLocation;
use mlflow_api::ModelId;

use crate::Failure;
use crate::transfer::database::SqlValue;
use crate::transfer::experiments::ImportedExperiment;
use crate::transfer::import::{IdKind, ImportContext, ImportDecision, replacement_digits};

/// Number of models whose ids are read together.
const BATCH: usize = 1_000;

/// Records the new ids of those logged models of an experiment whose ids are taken. Takes one query
/// per 1,000 models, and one request per 100.
///
/// # Errors
/// The source or the table cannot be read.
pub(crate) async fn remap_ids(context: &ImportContext, experiment: &ImportedExperiment) -> Result<(), Failure> {
    if !context.source.has_table("logged_models") {
        return Ok(());
    }
    let sql = format!(
        "SELECT model_id FROM logged_models WHERE experiment_id = ? AND model_id > ? ORDER BY model_id LIMIT {BATCH}"
    );
    let number = i64::try_from(experiment.source_id.number())?;
    let mut after = String::new();
    loop {
        let rows = context.source.rows(&sql, vec![SqlValue::Integer(number), after.as_str().into()]).await?;
        let ids: Vec<_> = rows.iter().map(|row| row.text(0)).collect::<Result<_, _>>()?;
        let Some(last) = ids.last() else { return Ok(()) };
        after.clone_from(last);
        let models: Vec<_> = ids.iter().filter_map(|id| ModelId::parse(id)).collect();
        let (foreign, own): (Vec<_>, Vec<_>) =
            models.into_iter().partition(|model| model.experiment().is_some_and(|other| other != experiment.id));
        let keys: Vec<_> =
            own.iter().map(|model| ModelLocation { experiment: experiment.id, model: model.clone() }.key()).collect();
        let documents = context.table.get_many(&keys).await;
        let documents = documents.map_err(|failure| format!("cannot read models: {failure:?}"))?;
        let is_taken = |key| ImportDecision::of(documents.get(key), "") == ImportDecision::Taken;
        let taken = own.iter().zip(&keys).filter(|(_, key)| is_taken(key)).map(|(model, _)| model);
        for model in foreign.iter().chain(taken) {
            context.remapped.insert(IdKind::LoggedModel, model.as_str(), &replacement_id(model.as_str()));
        }
    }
}

/// Returns the id that a logged model gets if its own is taken.
pub(super) fn replacement_id(source_id: &str) -> String {
    let mut digits = replacement_digits(IdKind::LoggedModel, source_id);
    // The version of a random UUID, so that the id is not mistaken for an id of this server, which
    // contains its experiment.
    digits.replace_range(12..13, "4");
    format!("m-{digits}")
}
