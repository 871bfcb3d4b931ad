//! What MCP servers and skills have in common: they belong to a workspace, have a name in it, and
//! their versions are in a partition whose key is an id of this server.

use entities::attributes::{ID, IMPORTED};
use key_schema::{Digest, Key};
use mlflow_api::{Result, Workspace};
use sha2::Digest as _;
use table::{Condition, Item, Table, Write, text};

use super::ImportContext;
use crate::Failure;
use crate::transfer::database::Row;

/// Suffix that `--remap` adds to a name that is taken.
pub(crate) const NAME_SUFFIX: &str = "-imported";

/// Returns the workspaces and names of entities in the import's scope. The first column of the query
/// is the workspace. `name` returns the text that identifies the entity in reports, and its name. If
/// `reports` is set, reports entities whose names are not valid. Takes one query.
///
/// # Errors
/// The database cannot be read.
pub(crate) async fn names_in_scope<N>(
    context: &ImportContext,
    (kind, sql): (&'static str, &str),
    reports: bool,
    name: impl Fn(&Row) -> std::result::Result<(String, Result<N>), Failure>,
) -> std::result::Result<Vec<(Workspace, N)>, Failure> {
    let mut names = Vec::new();
    for row in context.source.rows(sql, Vec::new()).await? {
        let (label, name) = name(&row)?;
        match Workspace::parse(&row.text(0)?).and_then(|workspace| Ok((workspace, name?))) {
            Ok((workspace, name)) if context.scope.includes(&workspace) => names.push((workspace, name)),
            Err(error) if reports => {
                context.report.omitted(kind, &label, format!("because its name is not valid: {}", error.message));
            }
            Ok(_) | Err(_) => {}
        }
    }
    Ok(names)
}

/// Returns the id of a new entity: a hash of its workspace, name and creation time. A repeated
/// import computes the same id, so it overwrites the versions that an interrupted import has
/// written. `removal` returns the key of the row that exists while the versions of a deleted entity
/// are being removed. If an id has such a row, another id is used, because the removal would delete
/// the imported versions as well. Takes one request, and one more for each such row.
///
/// # Errors
/// The table cannot be read.
pub(crate) async fn new_id(
    table: &Table,
    (workspace, name, created): (&Workspace, &str, i64),
    removal: impl Fn(&Digest) -> Key,
) -> std::result::Result<u64, Failure> {
    let mut text = format!("{}/{name}/{created}", workspace.as_str());
    loop {
        let id = sha2::Sha256::digest(&text).iter().take(8).fold(0, |bits, byte| (bits << 8) | u64::from(*byte));
        let row = table.get(&removal(&Digest(id))).await;
        if row.map_err(|failure| format!("cannot read the table: {failure:?}"))?.is_none() {
            return Ok(id);
        }
        text.push('/');
    }
}

/// Writes the document of an entity, after its versions. `label` names the entity in errors.
///
/// # Errors
/// The table cannot be written, or a client has created an entity with this name in the meantime.
pub(crate) async fn write_document(
    context: &ImportContext,
    label: &str,
    document: Item,
    fingerprint: &str,
) -> std::result::Result<(), Failure> {
    let id = document.get(ID).unwrap_or_default().to_owned();
    let is_its = Condition::Any(vec![Condition::item_missing(), Condition::Equals(ID.into(), text(&id))]);
    let write = Write::Put(document.with(IMPORTED, text(fingerprint)), is_its);
    match context.writer.transact(&[write]).await {
        Ok(()) => Ok(()),
        Err(table::Failure::Cancelled(_)) => {
            Err(format!("{label} cannot be imported: its name was taken in the meantime").into())
        }
        Err(failure) => Err(format!("cannot write {label}: {failure:?}").into()),
    }
}

#[cfg(test)]
mod tests {
    use embedded_engine::Engine;
    use key_schema::rows;

    use super::*;

    #[tokio::test]
    async fn an_id_whose_versions_are_still_to_be_removed_is_not_used() {
        let table = Table::new(Engine::memory().unwrap().client(), "mlflow");
        table.create_if_missing().await.unwrap();
        let workspace = Workspace::default();
        let removal = rows::SkillRemoval::key;
        let first = new_id(&table, (&workspace, "review", 5), removal).await.unwrap();
        assert_eq!(new_id(&table, (&workspace, "review", 5), removal).await.unwrap(), first);
        assert_ne!(new_id(&table, (&workspace, "review", 6), removal).await.unwrap(), first);
        table.put(Item::new(removal(&Digest(first))), &Condition::item_missing()).await.unwrap();
        let second = new_id(&table, (&workspace, "review", 5), removal).await.unwrap();
        assert_ne!(second, first);
        assert_eq!(new_id(&table, (&workspace, "review", 5), removal).await.unwrap(), second);
    }
}
