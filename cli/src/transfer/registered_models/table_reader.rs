//! Reads registered models from the table.

use std::collections::BTreeMap;

use entities::attributes::{
    ALIASES, CREATED, DESCRIPTION, HOME, NAME, RENAMED, RUN, RUN_LINK, SOURCE, STORAGE, TAG_ROWS, TAGS, UPDATED,
    VERSION_STAGE, VERSIONS, WORKSPACE,
};
use entities::{entries, workspace_named};
use key_schema::{ModelKey, rows};
use mlflow_api::registry::ModelStage;
use table::{Item, Query, Table};

use super::{RegisteredModelRecord, VersionRecord};
use crate::Failure;
use crate::transfer::import::fingerprint;

/// Reads a model with the fingerprints of its versions, given its document. Takes one request per
/// MB of versions, and one more if tags are in rows. `each` is called for each version.
///
/// # Errors
/// The table or the model cannot be read, or `each` fails.
pub(super) async fn read(
    table: &Table,
    document: &Item,
    mut each: impl FnMut(&VersionRecord) -> Result<(), Failure>,
) -> Result<RegisteredModelRecord, Failure> {
    let workspace = workspace_named(document.get(WORKSPACE)).map_err(|error| error.message)?;
    let name = document.get(NAME).unwrap_or_default().to_owned();
    let failed = |failure: table::Failure| Failure::from(format!("cannot read registered model {name}: {failure:?}"));
    let home = document.get(HOME).map_or_else(|| ModelKey::of(&workspace, &name), ModelKey::from);
    let rows = if document.has(TAG_ROWS) {
        table.query(Query::of(rows::ModelTag::all(&home))).await.map_err(failed)?
    } else {
        Vec::new()
    };
    let renamed = document.get(RENAMED).unwrap_or_default();
    let mut versions = BTreeMap::new();
    let mut next = Some(Query::of(rows::ModelVersion::all(&home)));
    let mut unfinished: Option<(u32, Item, Vec<Item>)> = None;
    let mut finish = |version: Option<(u32, Item, Vec<Item>)>| {
        let Some((number, item, tags)) = version else { return Ok::<_, Failure>(()) };
        let record = version_record(number, &item, &tags, renamed)?;
        each(&record)?;
        versions.insert(number, fingerprint(&record)?);
        Ok(())
    };
    while let Some(query) = next {
        let page = table.query_page(&query).await.map_err(failed)?;
        // A version's document comes before its rows of tags.
        for item in page.items {
            let Some(key) = item.key() else { continue };
            if let Some(version) = rows::ModelVersion::parse(&key) {
                finish(unfinished.take())?;
                unfinished = Some((version.version.0, item, Vec::new()));
            } else if let Some((_, _, tags)) = &mut unfinished {
                tags.push(item);
            }
        }
        next = page.next.map(|start| query.starting_at(start));
    }
    finish(unfinished)?;
    let aliases = document.map(ALIASES).into_iter().flatten();
    let aliases = aliases.filter_map(|(alias, version)| Some((alias.clone(), version.as_n().ok()?.parse().ok()?)));
    Ok(RegisteredModelRecord {
        workspace,
        created: document.get(CREATED).unwrap_or_default(),
        updated: document.get(UPDATED).unwrap_or_default(),
        description: document.get(DESCRIPTION).unwrap_or_default().to_owned(),
        tags: entries(document, TAGS, &rows).map_err(|error| error.message)?,
        aliases: aliases.collect(),
        last_version: document.get(VERSIONS).unwrap_or_default(),
        versions,
        name,
    })
}

fn version_record(number: u32, item: &Item, tags: &[Item], renamed: i64) -> Result<VersionRecord, Failure> {
    let created = item.get(CREATED).unwrap_or_default();
    let source = item.get(SOURCE).unwrap_or_default().to_owned();
    Ok(VersionRecord {
        number,
        created,
        // As in MLflow, renaming a model changes its versions.
        updated: item.get(UPDATED).unwrap_or(created).max(renamed),
        stage: item.get(VERSION_STAGE).unwrap_or(ModelStage::None),
        description: item.get(DESCRIPTION).map(str::to_owned),
        storage: item.get(STORAGE).map_or_else(|| source.clone(), str::to_owned),
        source,
        run: item.get(RUN).map(str::to_owned),
        run_link: item.get(RUN_LINK).map(str::to_owned),
        tags: entries(item, TAGS, tags).map_err(|error| error.message)?,
    })
}
