//! Reads webhooks from an MLflow database.

use std::collections::{BTreeSet, HashMap};

use mlflow_api::Workspace;
use mlflow_api::webhooks::WebhookStatus;
use outbound::{OutboundPolicy, OutboundUrl, Schemes};

use super::{KIND, WebhookRecord};
use crate::Failure;
use crate::transfer::database::Row;
use crate::transfer::import::ImportContext;

/// The policy for URLs of imported webhooks. The server applies its own policy when it sends events.
const ANY_URL: OutboundPolicy = OutboundPolicy { schemes: Schemes::HttpsAndHttp, allow_private_peers: true };

/// Reads the webhooks in the import's scope, oldest first, without deleted ones. If `reports` is set,
/// reports webhooks that cannot be imported. Takes two queries.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn webhooks(context: &ImportContext, reports: bool) -> Result<Vec<WebhookRecord>, Failure> {
    let source = &context.source;
    if !source.has_table("webhooks") {
        return Ok(Vec::new());
    }
    let mut events: HashMap<String, BTreeSet<String>> = HashMap::new();
    for row in source.rows("SELECT webhook_id, entity, action FROM webhook_events", Vec::new()).await? {
        events.entry(row.text(0)?).or_default().insert(format!("{}.{}", row.text(1)?, row.text(2)?));
    }
    let columns = [
        "workspace",
        "webhook_id",
        "name",
        "description",
        "url",
        "status",
        "secret",
        "creation_timestamp",
        "last_updated_timestamp",
    ];
    let sql = format!(
        "SELECT {} FROM webhooks WHERE deleted_timestamp IS NULL ORDER BY creation_timestamp, webhook_id",
        source.columns("webhooks", &columns)
    );
    let mut records = Vec::new();
    for row in source.rows(&sql, Vec::new()).await? {
        match parse(&row, events.remove(&row.text(1)?).unwrap_or_default())? {
            Ok(record) if context.scope.includes(&record.workspace) => records.push(record),
            Err(reason) if reports => context.report.omitted(KIND, &row.text(2)?, reason),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(records)
}

/// Returns the webhook of a row. If it cannot be imported, the inner error is the reason, as a clause
/// that completes "not imported, ".
fn parse(row: &Row, events: BTreeSet<String>) -> Result<Result<WebhookRecord, String>, Failure> {
    let workspace = match row.optional_text(0)? {
        Some(name) => match Workspace::parse(&name) {
            Ok(workspace) => workspace,
            Err(error) => return Ok(Err(format!("because {}", error.message))),
        },
        None => Workspace::default(),
    };
    let url = row.text(4)?;
    if let Err(error) = OutboundUrl::parse(&url, ANY_URL) {
        return Ok(Err(format!("because of its URL: {error}")));
    }
    if events.is_empty() {
        return Ok(Err("because it has no events".to_owned()));
    }
    let Some(status) = WebhookStatus::parse(&row.text(5)?) else {
        return Ok(Err("because its status is unknown".to_owned()));
    };
    let created = row.integer(7)?;
    Ok(Ok(WebhookRecord {
        workspace,
        source_id: row.text(1)?,
        name: row.text(2)?,
        description: row.text(3)?,
        url,
        events,
        status,
        secret: row.optional_text(6)?,
        created,
        updated: row.optional_integer(8)?.unwrap_or(created),
    }))
}
