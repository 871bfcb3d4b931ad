//! Decisions about entities whose items are few: they are read completely to find whether a client
//! has changed them.

use entities::attributes::IMPORTED;
use table::Item;

use super::{ImportContext, ImportDecision};
use crate::Failure;

/// Decides whether an entity has to be written, and reports it otherwise. `document` is the entity's
/// document here, and `here` the fingerprint of what the table contains, which is computed only if
/// the record has changed. An entity that is replaced is marked first.
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

/// Reports an entity that was written.
pub(crate) fn report_written(context: &ImportContext, kind: &'static str, document: Option<&Item>) {
    match document {
        Some(_) => context.report.updated(kind, 1),
        None => context.report.imported(kind, 1),
    }
}

/// Compares an entity with its record. Differences are reported, unless the entity was changed here,
/// which is in the report already.
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
