//! Imports webhooks.
//!
//! An import sends no events, because events are written by the calls that cause them. A webhook whose
//! secret cannot be decrypted is imported disabled and without its secret, so that it does not send
//! events without a signature.

use entities::attributes::{CHANGES, IMPORTED, SECRET};
use entities::webhooks::{StoredWebhook, WEBHOOK_SECRET_PURPOSE, WorkspaceSubscriptions};
use mlflow_api::WebhookId;
use mlflow_api::webhooks::{MAX_WEBHOOKS, WebhookEvent, WebhookStatus};
use secrets::SecretContext;
use sha2::{Digest, Sha256};
use table::{Condition, Item, Write};

use super::{KIND, SECRETS_KIND, WebhookRecord, database_reader};
use crate::Failure;
use crate::transfer::import::{
    ImportContext, SOURCE_KEY_VARIABLE, SourceSecret, fingerprint, is_to_be_written, report_written, verify_entity,
};

/// Number of attempts to write a webhook while clients change other webhooks of its workspace.
const ATTEMPTS: usize = 5;

/// Checks that secrets which can be decrypted can be encrypted again. Takes up to two queries.
///
/// # Errors
/// The source cannot be read, or there is no key that encrypts the secrets.
pub(crate) async fn check_keys(context: &ImportContext) -> Result<(), Failure> {
    if !context.secrets.can_open() || context.secrets.can_seal() {
        return Ok(());
    }
    let with_secret = database_reader::webhooks(context, false).await?.into_iter().find(|it| it.secret.is_some());
    match with_secret {
        None => Ok(()),
        Some(webhook) => Err(format!(
            "the secret of webhook {} cannot be stored, because there is no key to encrypt it with: give --secrets-key, or \
             unset {SOURCE_KEY_VARIABLE} to import webhooks with secrets disabled and without their secrets",
            webhook.name
        )
        .into()),
    }
}

/// Imports the webhooks. Takes three requests per webhook, and one to KMS for each secret if the key
/// is there.
///
/// # Errors
/// The source cannot be read, the table cannot be read or written, a secret cannot be encrypted, or an
/// id is taken and `--remap` is not given.
pub(crate) async fn import(context: &ImportContext) -> Result<(), Failure> {
    for record in database_reader::webhooks(context, true).await? {
        let planned = plan(context, record).await?;
        let PlannedWebhook { record, document, .. } = &planned;
        let new = fingerprint(record)?;
        let secret = context.secrets.open_secret(record.secret.as_deref());
        let gains_secret = matches!(secret, SourceSecret::Readable(_)) && planned.lacks_secret(&new)?;
        let here = async { planned.here() };
        let is_written =
            gains_secret || is_to_be_written(context, (KIND, &record.name), &new, document.as_ref(), here).await?;
        if let SourceSecret::Unreadable(reason) = secret
            && (is_written || document.as_ref().is_none_or(|document| !document.has(SECRET)))
        {
            let reason = format!("{reason}; these webhooks are disabled");
            context.report.omitted(SECRETS_KIND, &record.name, reason);
        }
        if is_written && write(context, &planned, secret, new).await? {
            report_written(context, KIND, document.as_ref());
        }
    }
    Ok(())
}

/// A webhook, its id in the table, and the item that the table has for this id.
struct PlannedWebhook {
    record: WebhookRecord,
    id: WebhookId,
    document: Option<Item>,
}

impl PlannedWebhook {
    /// Computes the fingerprint of the webhook from its item in the table.
    fn here(&self) -> Result<String, Failure> {
        let stored = self.stored()?.ok_or("a webhook is missing")?;
        fingerprint(&WebhookRecord::of(&self.record.workspace, stored))
    }

    fn stored(&self) -> Result<Option<StoredWebhook>, Failure> {
        Ok(self.document.as_ref().map(StoredWebhook::of).transpose().map_err(|error| error.message)?)
    }

    /// Returns whether the webhook was imported from the same record without a secret, and has not
    /// been changed since then.
    fn lacks_secret(&self, fingerprint: &str) -> Result<bool, Failure> {
        let Some(document) = &self.document else { return Ok(false) };
        let is_unchanged = document.get(IMPORTED) == Some(fingerprint) && self.here()? == fingerprint;
        Ok(is_unchanged && !document.has(SECRET))
    }
}

/// Determines the id of a webhook in the table. An id in the format of this server is kept, unless it
/// is taken. Takes one request, or two if the id is taken.
async fn plan(context: &ImportContext, record: WebhookRecord) -> Result<PlannedWebhook, Failure> {
    let new = |seed: &str| {
        let digest = Sha256::digest(format!("{seed}{}", record.source_id));
        WebhookId::new(record.created, digest.iter().take(10).fold(0, |bits, byte| (bits << 8) | u128::from(*byte)))
    };
    let mut id = WebhookId::parse(&record.source_id).unwrap_or_else(|| new(""));
    let mut document = document(context, &record, id).await?;
    if context.remap && document.as_ref().is_some_and(|document| !document.has(IMPORTED)) {
        id = new("remapped/");
        document = self::document(context, &record, id).await?;
    }
    Ok(PlannedWebhook { record, id, document })
}

async fn document(context: &ImportContext, record: &WebhookRecord, id: WebhookId) -> Result<Option<Item>, Failure> {
    let found = context.table.get(&StoredWebhook::key(&record.workspace, id)).await;
    found.map_err(|failure| format!("cannot read webhook {}: {failure:?}", record.name).into())
}

/// Writes a webhook together with the subscriptions of its workspace. Returns whether it was written:
/// if the workspace has too many webhooks, reports the webhook instead.
async fn write(
    context: &ImportContext,
    planned: &PlannedWebhook,
    secret: SourceSecret,
    fingerprint: String,
) -> Result<bool, Failure> {
    let PlannedWebhook { record, id, document } = planned;
    let (name, workspace, before) = (&record.name, &record.workspace, planned.stored()?);
    let (sealed, status) = match secret {
        SourceSecret::None => (None, record.status),
        SourceSecret::Unreadable(_) => (None, WebhookStatus::Disabled),
        SourceSecret::Readable(_) if context.writer.is_dry_run() => (None, record.status),
        SourceSecret::Readable(secret) => {
            let owner = id.to_string();
            let of = SecretContext { purpose: WEBHOOK_SECRET_PURPOSE, workspace: workspace.as_str(), owner: &owner };
            (Some(context.secrets.seal(&secret, &of).await?), record.status)
        }
    };
    let events = record.events.iter().map(|event| WebhookEvent::parse(event).ok_or_else(|| event.clone()));
    let (known, unknown): (Vec<_>, Vec<_>) = events.partition(Result::is_ok);
    let after = StoredWebhook {
        id: *id,
        name: name.clone(),
        description: record.description.clone(),
        url: record.url.clone(),
        events: known.into_iter().filter_map(Result::ok).collect(),
        unknown_events: unknown.into_iter().filter_map(Result::err).collect(),
        status,
        secret: sealed,
        created: record.created,
        updated: record.updated,
        changes: before.as_ref().map_or(0, |before| before.changes + 1),
        imported: Some(fingerprint),
    };
    let is_unchanged = match document {
        Some(document) => Condition::unchanged(document, CHANGES),
        None => Condition::item_missing(),
    };
    for _ in 0..ATTEMPTS {
        let row = context.table.get(&WorkspaceSubscriptions::key(workspace)).await;
        let row = row.map_err(|failure| format!("cannot read the webhooks of {workspace}: {failure:?}"))?;
        let subscriptions = WorkspaceSubscriptions::of(row.as_ref());
        if before.is_none() && subscriptions.count() as usize >= MAX_WEBHOOKS {
            let reason = format!("because a workspace has at most {MAX_WEBHOOKS} webhooks");
            context.report.omitted(KIND, name, reason);
            return Ok(false);
        }
        let writes = [
            Write::Put(after.item(workspace), is_unchanged.clone()),
            subscriptions.with_change(workspace, before.as_ref(), Some(&after)),
        ];
        match context.writer.transact(&writes).await {
            Ok(()) => return Ok(true),
            Err(table::Failure::Cancelled(_)) => {}
            Err(failure) => return Err(format!("cannot write webhook {name}: {failure:?}").into()),
        }
    }
    Err(format!("webhook {name} cannot be imported: it was changed in the meantime").into())
}

/// Compares the imported webhooks with the source, and reports differences.
///
/// # Errors
/// The source or the table cannot be read.
pub(crate) async fn verify(context: &ImportContext) -> Result<(), Failure> {
    for record in database_reader::webhooks(context, false).await? {
        let planned = plan(context, record).await?;
        let (new, name) = (fingerprint(&planned.record)?, (KIND, planned.record.name.as_str()));
        verify_entity(context, name, &new, planned.document.as_ref(), async { planned.here() }).await?;
    }
    Ok(())
}
