//! Imports, verifies and exports issues.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use entities::attributes::{EXPERIMENT, IMPORTED};
use entities::documents::content;
use entities::listing;
use evaluation::store::{IssueItems, NewIssue, issue_part_key, read_issue};
use futures::stream::TryStreamExt;
use key_schema::rows;
use mlflow_api::issues::{Issue, IssueSeverity, IssueStatus, Metadata};
use mlflow_api::{ExperimentId, IssueId};
use rusqlite::params;
use serde::Serialize;
use sha2::{Digest, Sha256};
use table::{Item, Query, Table, text};

use super::ids;
use crate::Failure;
use crate::transfer::database::{Row, SqlValue};
use crate::transfer::experiments::{ExportedExperiment, ImportedExperiment};
use crate::transfer::export::ExportContext;
use crate::transfer::import::{IdKind, ImportContext, fingerprint, is_to_be_written, report_written, verify_entity};

/// Name of this kind of entity in reports.
const KIND: &str = "issues";
/// Number of issues that a query reads from the source.
const BATCH: usize = 100;

/// An issue of an MLflow database.
#[derive(Clone, Debug, Serialize)]
struct IssueRecord {
    name: String,
    description: String,
    status: IssueStatus,
    severity: Option<IssueSeverity>,
    root_causes: Vec<String>,
    source_run: Option<String>,
    categories: Vec<String>,
    created: i64,
    updated: i64,
    last_seen: i64,
    created_by: Option<String>,
    updated_by: Option<String>,
    metadata: Metadata,
}

impl IssueRecord {
    fn of(issue: Issue) -> Self {
        Self {
            name: issue.name,
            description: issue.description,
            status: issue.status,
            severity: issue.severity,
            root_causes: issue.root_causes,
            source_run: issue.source_run_id,
            categories: issue.categories,
            created: issue.created_timestamp,
            updated: issue.last_updated_timestamp,
            last_seen: issue.last_seen_timestamp,
            created_by: issue.created_by,
            updated_by: issue.last_updated_by,
            metadata: issue.metadata,
        }
    }

    /// Reads an issue from a row of the source. If the issue cannot be imported, the inner error is
    /// the reason, as a clause that completes "not imported, ".
    fn read(context: &ImportContext, row: &Row) -> Result<Result<Self, &'static str>, Failure> {
        let list = |column: usize| -> Result<Option<Vec<String>>, Failure> {
            let json = row.optional_text(column)?.filter(|json| !json.is_empty());
            Ok(json.map_or_else(|| Some(Vec::new()), |json| serde_json::from_str(&json).ok()))
        };
        let Some(status) = IssueStatus::from_name(&row.text(3)?) else {
            return Ok(Err("because its status is unknown"));
        };
        let severity = row.optional_text(4)?.map(|name| IssueSeverity::from_name(&name).ok_or(()));
        let Ok(severity) = severity.transpose() else { return Ok(Err("because its severity is unknown")) };
        let (Some(root_causes), Some(categories)) = (list(5)?, list(7)?) else {
            return Ok(Err("because its root causes or its categories are not valid"));
        };
        let metadata = row.optional_text(13)?.filter(|json| !json.is_empty());
        let Ok(metadata) = metadata.map_or_else(|| Ok(Metadata::new()), |json| serde_json::from_str(&json)) else {
            return Ok(Err("because its metadata is not valid"));
        };
        let (created, created_by) = (row.integer(8)?, row.optional_text(10)?);
        Ok(Ok(Self {
            name: row.text(1)?,
            description: row.text(2)?,
            status,
            severity,
            root_causes,
            source_run: row.optional_text(6)?.map(|run| context.remapped.resolve(IdKind::Run, &run)),
            categories,
            created,
            updated: row.integer(9)?,
            last_seen: row.optional_integer(11)?.unwrap_or(created),
            updated_by: row.optional_text(12)?.or_else(|| created_by.clone()),
            created_by,
            metadata,
        }))
    }

    fn items(&self, experiment: ExperimentId, id: &IssueId) -> Result<IssueItems, mlflow_api::Error> {
        let new = NewIssue {
            id: Some(id.clone()),
            name: self.name.clone(),
            description: self.description.clone(),
            status: self.status,
            severity: self.severity,
            root_causes: self.root_causes.clone(),
            source_run: self.source_run.clone(),
            categories: self.categories.clone(),
            created_by: self.created_by.clone(),
            last_seen: Some(self.last_seen),
            metadata: self.metadata.clone(),
        };
        new.items(experiment, id, self.created, (self.updated, self.updated_by.as_deref()))
    }
}

/// An issue with its id in the table, and the document that the table already has for this id.
struct PlannedIssue {
    id: IssueId,
    record: IssueRecord,
    document: Option<Item>,
}

/// Reads the next issues of an experiment, in the order of their ids in the source, and determines
/// their ids in the table. `after` is the last id that was read, and is updated. Returns `None`
/// after the last issue. If `reports` is set, reports issues that cannot be imported. Takes one
/// query, and the requests of [`plan`] for each issue.
async fn next_issues(
    context: &ImportContext,
    experiment: &ImportedExperiment,
    after: &mut String,
    reports: bool,
) -> Result<Option<Vec<PlannedIssue>>, Failure> {
    let source = &context.source;
    if !source.has_table("issues") {
        return Ok(None);
    }
    let [last_seen, updated_by, metadata] =
        ["last_seen_timestamp", "last_updated_by", "metadata"].map(|column| source.column("issues", column));
    let sql = format!(
        "SELECT issue_id, name, description, status, severity, root_causes, source_run_id, categories, created_timestamp, \
         last_updated_timestamp, created_by, {last_seen}, {updated_by}, {metadata} FROM issues WHERE experiment_id = ? AND \
         issue_id > ? ORDER BY issue_id LIMIT {BATCH}"
    );
    let number = SqlValue::Integer(i64::try_from(experiment.source_id.number())?);
    let rows = source.rows(&sql, vec![number, after.as_str().into()]).await?;
    let Some(last) = rows.last() else { return Ok(None) };
    *after = last.text(0)?;
    let mut planned = Vec::with_capacity(rows.len());
    for row in &rows {
        let source_id = row.text(0)?;
        let read = IssueRecord::read(context, row)?;
        let read =
            read.and_then(|record| Ok((record, IssueId::parse(&source_id).ok_or("because its id is not valid")?)));
        match read {
            Ok((record, id)) => planned.push(plan(context, experiment.id, id, record).await?),
            Err(reason) if reports => context.report.omitted(KIND, &source_id, reason),
            Err(_) => {}
        }
    }
    Ok(Some(planned))
}

/// Determines the id of an issue in the table. This is its id in the source, unless that id belongs
/// to an issue of another experiment or one that a client has created. In that case, `--remap`
/// assigns a new id. Takes one request to read the document, one more if the id does not contain an
/// experiment, and one more if the id is taken.
async fn plan(
    context: &ImportContext,
    experiment: ExperimentId,
    id: IssueId,
    record: IssueRecord,
) -> Result<PlannedIssue, Failure> {
    let failed = |failure: table::Failure| format!("cannot read issues: {failure:?}");
    let mut place = id.experiment();
    if place.is_none() {
        let location = context.table.get(&rows::IssueLocation::key(&id)).await.map_err(failed)?;
        place = location.and_then(|location| location.get(EXPERIMENT));
    }
    if place.is_none_or(|place| place == experiment) {
        let document = context.table.get(&rows::Issue::key(&experiment, &id)).await.map_err(failed)?;
        if document.as_ref().is_none_or(|document| document.has(IMPORTED)) {
            return Ok(PlannedIssue { id, record, document });
        }
    }
    if !context.remap {
        let message = format!("issue {id} cannot be imported: its id is taken. --remap imports it with another id");
        return Err(message.into());
    }
    let source_id = id;
    let id = IssueId::new(record.created, experiment, ids::chance(source_id.as_str()));
    context.remapped.insert(IdKind::Issue, source_id.as_str(), id.as_str());
    let document = context.table.get(&rows::Issue::key(&experiment, &id)).await.map_err(failed)?;
    Ok(PlannedIssue { id, record, document })
}

/// Computes the fingerprint of an issue from its items in the table.
async fn here(table: &Table, document: Option<&Item>) -> Result<String, Failure> {
    let document = document.ok_or("an issue is missing")?.clone();
    fingerprint(&IssueRecord::of(read_issue(table, document).await.map_err(|error| error.message)?))
}

/// Determines the ids of all issues of an experiment, and records those that are new.
pub(super) async fn remap_ids(context: &ImportContext, experiment: &ImportedExperiment) -> Result<(), Failure> {
    let mut after = String::new();
    while next_issues(context, experiment, &mut after, false).await?.is_some() {}
    Ok(())
}

pub(super) async fn import(context: &ImportContext, experiment: &ImportedExperiment) -> Result<(), Failure> {
    let mut after = String::new();
    while let Some(issues) = next_issues(context, experiment, &mut after, true).await? {
        for PlannedIssue { id, record, document } in issues {
            let document = document.as_ref();
            let (name, new) = ((KIND, id.as_str()), fingerprint(&record)?);
            let items = match record.items(experiment.id, &id) {
                Ok(items) => items,
                Err(error) => {
                    context.report.omitted(KIND, id.as_str(), format!("because it is too large: {}", error.message));
                    continue;
                }
            };
            let here = Box::pin(here(&context.table, document));
            if is_to_be_written(context, name, &new, document, here).await? {
                write(context, experiment.id, &id, items, &new).await?;
                report_written(context, KIND, document);
            }
        }
    }
    Ok(())
}

/// Writes an issue: first the parts of its texts, then the item with its texts, and then its
/// document. Finally deletes the parts of the texts that were replaced.
async fn write(
    context: &ImportContext,
    experiment: ExperimentId,
    id: &IssueId,
    items: IssueItems,
    fingerprint: &str,
) -> Result<(), Failure> {
    let IssueItems { item, content, parts, location } = items;
    let replaced = context.table.get(&rows::IssueContent::key(&experiment, id)).await;
    let replaced = replaced.map_err(|failure| format!("cannot read issue {id}: {failure:?}"))?;
    let mut stale: Vec<_> =
        replaced.map(|replaced| content::part_keys(&replaced, issue_part_key(experiment))).unwrap_or_default();
    stale.retain(|key| !parts.iter().any(|part| part.key().as_ref() == Some(key)));
    context.writer.put_all(parts).await?;
    context.writer.put_all(location.into_iter().chain([content]).collect()).await?;
    context.writer.put_all(vec![item.with(IMPORTED, text(fingerprint))]).await?;
    context.writer.delete_all(stale).await
}

pub(super) async fn verify(context: &ImportContext, experiment: &ImportedExperiment) -> Result<(), Failure> {
    let mut after = String::new();
    while let Some(issues) = next_issues(context, experiment, &mut after, false).await? {
        for PlannedIssue { id, record, document } in issues {
            if record.items(experiment.id, &id).is_err() {
                continue;
            }
            let (name, document) = ((KIND, id.as_str()), document.as_ref());
            let here = Box::pin(here(&context.table, document));
            verify_entity(context, name, &fingerprint(&record)?, document, here).await?;
        }
    }
    Ok(())
}

/// Exports the issues of an experiment. Their metadata, the time at which they were last seen, and
/// their last editor require the schema of MLflow 3.18.
pub(super) async fn export(context: &ExportContext, experiment: &ExportedExperiment) -> Result<(), Failure> {
    let id = experiment.record.id;
    let number = i64::try_from(id.number())?;
    let json = |texts: &[String]| -> Result<Option<String>, Failure> {
        if texts.is_empty() { Ok(None) } else { Ok(Some(serde_json::to_string(texts)?)) }
    };
    let mut pages = std::pin::pin!(listing::pages(&context.table, Query::of(rows::Issue::all(&id))));
    while let Some(page) = pages.try_next().await.map_err(|failure| format!("cannot read issues: {failure:?}"))? {
        for item in page {
            let issue = read_issue(&context.table, item).await.map_err(|error| error.message)?;
            let metadata = if issue.metadata.is_empty() { None } else { Some(serde_json::to_string(&issue.metadata)?) };
            // An upgrade of an issue that 3.17 has created results in these values.
            if metadata.is_some()
                || issue.last_seen_timestamp != issue.created_timestamp
                || issue.last_updated_by != issue.created_by
            {
                context.require_newest_schema("issues have metadata, or were seen or changed again");
            }
            context.insert(
                "INSERT INTO issues (issue_id, experiment_id, name, description, status, severity, root_causes, \
                 source_run_id, categories, created_timestamp, last_updated_timestamp, created_by, \
                 last_seen_timestamp, last_updated_by, metadata) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                params![
                    issue.issue_id,
                    number,
                    issue.name,
                    issue.description,
                    issue.status.name(),
                    issue.severity.map(IssueSeverity::name),
                    json(&issue.root_causes)?,
                    issue.source_run_id,
                    json(&issue.categories)?,
                    issue.created_timestamp,
                    issue.last_updated_timestamp,
                    issue.created_by,
                    issue.last_seen_timestamp,
                    issue.last_updated_by,
                    metadata,
                ],
            )?;
            for (hash, category) in hashed_categories(&issue.categories) {
                let sql = "INSERT INTO issue_categories (issue_id, category_hash, category) VALUES (?, ?, ?)";
                context.insert(sql, params![issue.issue_id, hash, category])?;
            }
        }
    }
    Ok(())
}

/// Returns categories with the hashes by which MLflow finds them. Categories that differ only in case
/// and surrounding whitespace have one hash, and the last of them is used.
fn hashed_categories(categories: &[String]) -> BTreeMap<String, &str> {
    let hash = |category: &str| {
        let digest = Sha256::digest(category.trim().to_lowercase());
        digest.iter().fold(String::new(), |mut digits, byte| {
            let _ = write!(digits, "{byte:02x}");
            digits
        })
    };
    categories.iter().map(|category| (hash(category), category.as_str())).collect()
}
