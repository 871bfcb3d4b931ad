//! `mlflow-serverless webhooks`: deliveries to webhooks that have failed for good.

use clap::{Args, Subcommand};
use entities::layout;
use entities::webhooks::{QueueId, StoredDelivery, StoredEvent, StoredQueue, StoredWebhook};
use mlflow_api::proto_json::time_text;
use mlflow_api::{WebhookId, Workspace};
use table::{Condition, Table};

use crate::Failure;
use crate::output::print_line;
use crate::table_options::TableOptions;

/// Options of `webhooks`.
#[derive(Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the deliveries that have failed for good within the last 14 days.
    Dead(DeadOptions),
    /// Deliver events again whose deliveries have failed for good. The server or the stack sends
    /// them within a minute. Their delivery ids stay the same.
    Resend(DeadOptions),
}

/// Options of both commands.
#[derive(Args)]
struct DeadOptions {
    /// Only deliveries to the webhook with this id.
    #[arg(long, value_name = "ID")]
    webhook: Option<String>,
    /// Workspace of the webhooks.
    #[arg(long, value_name = "NAME", default_value = "default")]
    workspace: String,
    #[command(flatten)]
    place: TableOptions,
}

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let (options, resends) = match options.command {
        Command::Dead(options) => (options, false),
        Command::Resend(options) => (options, true),
    };
    let workspace = Workspace::parse(&options.workspace).map_err(|error| error.message)?;
    let webhook = match &options.webhook {
        Some(id) => Some(WebhookId::parse(id).ok_or_else(|| format!("{id} is not the id of a webhook"))?),
        None => None,
    };
    let (table, _engine) = options.place.connect().await?;
    layout::check(&table).await?;
    let table = table.in_background();
    let failed = |failure| format!("the table cannot be accessed: {failure:?}");
    let mut page = None;
    let mut count = 0_u64;
    while let Some(next) = StoredDelivery::dead(&table, &workspace, page).await.map_err(failed)? {
        for item in &next.items {
            let delivery = StoredDelivery::of(item).map_err(|error| error.message)?;
            let Some(of) = delivery.dead_webhook().filter(|of| webhook.is_none_or(|webhook| webhook == *of)) else {
                continue;
            };
            if resends {
                resend(&table, &workspace, of, &delivery).await?;
            } else {
                print_delivery(of, &delivery);
            }
            count += 1;
        }
        page = Some(next);
    }
    let what = if resends { "will be sent again" } else { "have failed for good" };
    print_line(&format!("{count} deliveries {what}"));
    Ok(())
}

fn print_delivery(webhook: WebhookId, delivery: &StoredDelivery) {
    let died = time_text(delivery.died.unwrap_or_default());
    print_line(&format!(
        "webhook {webhook}  event {}  model {:?}  {} attempts  failed {died}: {}",
        delivery.event,
        delivery.model.name(),
        delivery.attempts,
        delivery.answer.as_deref().unwrap_or_default()
    ));
}

/// Queues a delivery again, and removes it from the deliveries that have failed for good. Safe to
/// repeat.
async fn resend(
    table: &Table,
    workspace: &Workspace,
    webhook: WebhookId,
    delivery: &StoredDelivery,
) -> Result<(), Failure> {
    let failed = |failure| format!("the table cannot be accessed: {failure:?}");
    let is_there = table.get(&StoredWebhook::key(workspace, webhook)).await.map_err(failed)?.is_some()
        && table.get(&StoredEvent::key(&delivery.model, delivery.event)).await.map_err(failed)?.is_some();
    if is_there {
        let queue = QueueId { workspace: workspace.clone(), webhook, model: delivery.model.clone() };
        StoredDelivery::add_again(table, &queue, delivery.event).await.map_err(failed)?;
        StoredQueue::announce(table, &queue).await.map_err(failed)?;
    } else {
        print_line(&format!("event {}: the webhook or the event no longer exists", delivery.event));
    }
    Ok(table.delete(&delivery.key, &Condition::Always).await.map_err(failed)?)
}
