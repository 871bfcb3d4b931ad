//! Imports scorers.

use entities::attributes::{IMPORTED, SCORER};
use entities::documents::content;
use evaluation::store::{StoredScorerItems, online_config_item, scorer_key, scorer_part_key};
use key_schema::{Key, rows};
use mlflow_api::ScorerId;
use table::{Item, Query, text};

use super::{KIND, ScorerRecord, database_reader, scorer_id, table_reader};
use crate::Failure;
use crate::transfer::experiments::ImportedExperiment;
use crate::transfer::import::{ImportContext, ImportDecision, fingerprint};

/// Imports the scorers of an experiment. Takes one request to decide about each scorer, and one per
/// 25 items.
///
/// # Errors
/// The source cannot be read, the table cannot be read or written, or the name of a scorer is taken
/// and `--remap` is not given.
pub(crate) async fn import(context: &ImportContext, experiment: &ImportedExperiment) -> Result<(), Failure> {
    let mut after = String::new();
    loop {
        let records = database_reader::next_scorers(context, experiment, &after, true).await?;
        let Some(last) = records.last() else { return Ok(()) };
        after.clone_from(&last.id);
        for record in records {
            import_scorer(context, experiment, record).await?;
        }
    }
}

async fn import_scorer(
    context: &ImportContext,
    experiment: &ImportedExperiment,
    mut record: ScorerRecord,
) -> Result<(), Failure> {
    let id = scorer_id(experiment.id, &record.id);
    let mut found = header(context, experiment, &record.name).await?;
    if is_taken(found.as_ref()) {
        if !context.remap {
            return Err(format!(
                "scorer {} of experiment {} cannot be imported: its name is taken. --remap imports it with another name",
                record.name, experiment.source_id
            )
            .into());
        }
        record.name = new_name(&record);
        found = header(context, experiment, &record.name).await?;
        if is_taken(found.as_ref()) {
            return Err(format!("scorer {} cannot be imported: its new name is taken too", record.name).into());
        }
    }
    let mut stale = Vec::new();
    if let Some(header) = &found {
        let decision = ImportDecision::of(Some(header), &fingerprint(&record)?);
        if decision == ImportDecision::Unchanged {
            context.report.unchanged(KIND, 1);
            return Ok(());
        }
        let is_interrupted = decision == ImportDecision::Interrupted;
        if !is_interrupted && is_changed_here(context, experiment, header).await? {
            context.report.changed_here(KIND, &record.name);
            return Ok(());
        }
        context.writer.begin_replacement(header).await?;
        if let Some(replaced) = header.get(SCORER) {
            stale = keys_of(context, experiment, &replaced).await?;
        }
    }
    let (mut items, header) = items(experiment, &id, &record);
    stale.retain(|key| !items.iter().any(|item| item.key().as_ref() == Some(key)));
    // The list begins with the parts of versions. They are written before the items that refer to
    // them.
    let versions = items.split_off(items.iter().take_while(|item| is_part(item)).count());
    context.writer.put_all(items).await?;
    context.writer.put_all(versions).await?;
    context.writer.put_all(vec![header.with(IMPORTED, text(fingerprint(&record)?))]).await?;
    context.writer.delete_all(stale).await?;
    match found {
        Some(_) => context.report.updated(KIND, 1),
        None => context.report.imported(KIND, 1),
    }
    Ok(())
}

/// Returns whether a client has changed a scorer since it was imported. Takes two requests.
async fn is_changed_here(
    context: &ImportContext,
    experiment: &ImportedExperiment,
    header: &Item,
) -> Result<bool, Failure> {
    let here = table_reader::record(&context.table, experiment.id, header).await?;
    Ok(header.get(IMPORTED) != Some(fingerprint(&here)?.as_str()))
}

/// Returns the name that a scorer gets if its own is taken.
fn new_name(record: &ScorerRecord) -> String {
    format!("{} (imported)", record.name)
}

fn is_part(item: &Item) -> bool {
    item.key().is_some_and(|key| rows::ScorerPart::parse(&key).is_some())
}

async fn header(context: &ImportContext, experiment: &ImportedExperiment, name: &str) -> Result<Option<Item>, Failure> {
    let found = context.table.get(&scorer_key(experiment.id, name)).await;
    found.map_err(|failure| format!("cannot read scorer {name}: {failure:?}").into())
}

/// Checks whether the name belongs to a scorer that was not imported.
fn is_taken(header: Option<&Item>) -> bool {
    header.is_some_and(|header| !header.has(IMPORTED))
}

/// Returns the items of a scorer: parts of large versions, its row in a list, its versions, and its
/// online configuration. Also returns the scorer's own item, which has to be written last.
fn items(experiment: &ImportedExperiment, id: &ScorerId, record: &ScorerRecord) -> (Vec<Item>, Item) {
    let stored = StoredScorerItems {
        experiment: experiment.id,
        workspace: &experiment.record.workspace,
        name: &record.name,
        id,
    };
    let (mut parts, mut items) = (Vec::new(), vec![stored.listed()]);
    let mut latest = None;
    for version in &record.versions {
        // The owner is the same in each import, so a repeated import writes the same parts.
        let owner = format!("{id} {} imported", version.version);
        let part_key = scorer_part_key(experiment.id);
        let packed = content::pack(&owner, &version.serialized, content::MAX_INLINE_BYTES, part_key);
        let item = stored.version(version.version, version.created, &packed);
        latest = Some(item.clone());
        parts.extend(packed.parts);
        items.push(item);
    }
    if let Some(config) = &record.online_config {
        let rate = f64::from_bits(config.rate_bits);
        items.push(online_config_item(experiment.id, id, &config.id, rate, config.filter.as_deref()));
    }
    parts.extend(items);
    (parts, stored.header(latest.as_ref()))
}

/// Returns the keys of the versions of a scorer, of their parts, and of its online configuration.
async fn keys_of(context: &ImportContext, experiment: &ImportedExperiment, id: &ScorerId) -> Result<Vec<Key>, Failure> {
    let versions = context.table.query(Query::of(rows::ScorerVersion::all(&experiment.id).scorer(id).range())).await;
    let versions = versions.map_err(|failure| format!("cannot read scorer {id}: {failure:?}"))?;
    let mut keys = vec![rows::ScorerOnlineConfig::key(&experiment.id, id)];
    for version in &versions {
        keys.extend(content::part_keys(version, scorer_part_key(experiment.id)));
        keys.extend(version.key());
    }
    Ok(keys)
}

/// Compares the imported scorers of an experiment with the source, and reports differences. Takes
/// three requests per scorer.
///
/// # Errors
/// The source or the table cannot be read.
pub(crate) async fn verify(context: &ImportContext, experiment: &ImportedExperiment) -> Result<(), Failure> {
    let mut after = String::new();
    loop {
        let records = database_reader::next_scorers(context, experiment, &after, false).await?;
        let Some(last) = records.last() else { return Ok(()) };
        after.clone_from(&last.id);
        for mut record in records {
            let id = scorer_id(experiment.id, &record.id);
            let mut found = header(context, experiment, &record.name).await?;
            if is_taken(found.as_ref()) {
                record.name = new_name(&record);
                found = header(context, experiment, &record.name).await?;
            }
            let Some(header) = found else {
                context.report.different(KIND, &format!("{} is missing", record.name));
                continue;
            };
            record.id = header.get(SCORER).unwrap_or(id).to_string();
            // If the hash differs, the scorer was changed in the table, and is in the report
            // already.
            if header.get(IMPORTED) == Some(fingerprint(&record)?.as_str())
                && table_reader::record(&context.table, experiment.id, &header).await? != record
            {
                context.report.different(KIND, &record.name);
            }
        }
    }
}
