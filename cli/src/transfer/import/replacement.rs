//! Decides whether entities that consist of few items are replaced. To find out whether a client
//! has changed such an entity, all of its items are read.

use entities::attributes::IMPORTED;
use table::Item;

use super::{ImportContext, ImportDecision};
use crate::Failure;

/// Returns whether an entity has to be written. If not, reports it as unchanged or as changed by a
/// client. `document` is the entity's document in the table. `here` computes the fingerprint of the
/// entity in the table, and is only awaited if the record has changed since it was imported. If an
/// existing entity has to be replaced, this function marks it as being replaced.
///
/// # Errors
/// The table cannot be read or written, or a client created an entity with this key.
pub(crate) async fn is_to_be_written(
    context: &ImportContext,
    (kind, name): (&'static str, &str),
    fingerprint: &str,
    document: Option<&Item>,
    here: impl Future<Output = Result<String, Failure>>,
) -> Result<bool, Failure> {
    let decision = ImportDecision::of(document, fingerprint);
    match (decision, document) {
        (ImportDecision::Create, _) | (_, None) => return Ok(true),
        (ImportDecision::Unchanged, _) => {
            context.report.unchanged(kind, 1);
            return Ok(false);
        }
        (ImportDecision::Taken, _) => {
            return Err(format!("{name} of the {kind} cannot be imported: it exists here already").into());
        }
        (ImportDecision::Changed, Some(document)) if document.get(IMPORTED) != Some(here.await?.as_str()) => {
            context.report.changed_here(kind, name);
            return Ok(false);
        }
        (ImportDecision::Changed | ImportDecision::Interrupted, Some(document)) => {
            context.writer.begin_replacement(document).await?;
        }
    }
    Ok(true)
}

/// Reports an entity that was written: as updated if `document` was replaced, and otherwise as
/// imported.
pub(crate) fn report_written(context: &ImportContext, kind: &'static str, document: Option<&Item>) {
    match document {
        Some(_) => context.report.updated(kind, 1),
        None => context.report.imported(kind, 1),
    }
}

/// Compares an entity with its record, and reports differences. If the fingerprint in the document
/// is not that of the record, the import has not replaced the entity, because a client had changed
/// it. The report contains such entities already, so they are skipped.
///
/// # Errors
/// The table cannot be read.
pub(crate) async fn verify(
    context: &ImportContext,
    (kind, name): (&'static str, &str),
    fingerprint: &str,
    document: Option<&Item>,
    here: impl Future<Output = Result<String, Failure>>,
) -> Result<(), Failure> {
    let Some(document) = document else {
        context.report.different(kind, &format!("{name} is missing"));
        return Ok(());
    };
    if document.get(IMPORTED) == Some(fingerprint) && here.await? != fingerprint {
        context.report.different(kind, name);
    }
    Ok(())
}
