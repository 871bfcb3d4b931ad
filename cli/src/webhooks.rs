//! `mlflow-serverless webhooks`: deliveries to webhooks that have failed for good.

use clap::{Args, Subcommand};
use entities::layout;
use entities::webhooks::{QueueId, StoredDelivery, StoredEvent, StoredQueue, StoredWebhook};
use mlflow_api::proto_json::time_text;
use mlflow_api::{WebhookId, Workspace};
use table::Table;

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
            let Ok(delivery) = StoredDelivery::of(item) else {
                print_line(&format!("a delivery cannot be read: {:?}", item.key()));
                continue;
            };
            let Some(of) = delivery.dead_webhook().filter(|of| webhook.is_none_or(|webhook| webhook == *of)) else {
                continue;
            };
            if !resends {
                print_delivery(of, &delivery);
            } else if let Some(obstacle) = resend(&table, &workspace, of, &delivery).await.map_err(failed)? {
                print_line(&format!("event {}: {}", delivery.event, obstacle.text()));
                continue;
            }
            count += 1;
        }
        page = Some(next);
    }
    print_line(&match (resends, count) {
        (true, 1) => "1 delivery will be sent again".to_owned(),
        (true, _) => format!("{count} deliveries will be sent again"),
        (false, 1) => "1 delivery has failed for good".to_owned(),
        (false, _) => format!("{count} deliveries have failed for good"),
    });
    Ok(())
}

/// Why a delivery is not sent again.
#[derive(Clone, Copy)]
enum Obstacle {
    /// The webhook or the event no longer exists, so the delivery is removed.
    Gone,
    /// The webhook or the event cannot be read. The delivery is kept.
    Unreadable,
    /// The webhook is disabled, or does not subscribe to the event. The delivery is kept.
    NotSubscribed,
}

impl Obstacle {
    fn text(self) -> &'static str {
        match self {
            Self::Gone => "the webhook or the event no longer exists, so the delivery is removed",
            Self::Unreadable => "the webhook or the event cannot be read, so the delivery is kept",
            Self::NotSubscribed => {
                "the webhook is disabled or does not subscribe to this event, so the delivery is kept"
            }
        }
    }
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

/// Queues a delivery again like [`queue_again`], but reports an unreadable webhook or event as an
/// obstacle instead of an error.
async fn resend(
    table: &Table,
    workspace: &Workspace,
    webhook: WebhookId,
    delivery: &StoredDelivery,
) -> table::Result<Option<Obstacle>> {
    match queue_again(table, workspace, webhook, delivery).await {
        Err(table::Failure::Unreadable(_)) => Ok(Some(Obstacle::Unreadable)),
        outcome => outcome,
    }
}

/// Queues a delivery again, and removes it from the deliveries that have failed for good. If there
/// is an obstacle, returns the obstacle instead. Safe to repeat.
async fn queue_again(
    table: &Table,
    workspace: &Workspace,
    webhook: WebhookId,
    delivery: &StoredDelivery,
) -> table::Result<Option<Obstacle>> {
    let unreadable = |error: mlflow_api::Error| table::Failure::Unreadable(error.message);
    let stored = table.get(&StoredWebhook::key(workspace, webhook)).await?;
    let event = table.get(&StoredEvent::key(&delivery.model, delivery.event)).await?;
    let (Some(stored), Some(event)) = (stored, event) else {
        delivery.remove_dead(table).await?;
        return Ok(Some(Obstacle::Gone));
    };
    let event = StoredEvent::of(&event).map_err(unreadable)?;
    if !StoredWebhook::of(&stored).map_err(unreadable)?.receives(&event.name) {
        return Ok(Some(Obstacle::NotSubscribed));
    }
    let queue = QueueId { workspace: workspace.clone(), webhook, model: delivery.model.clone() };
    StoredDelivery::add_again(table, &queue, delivery.event).await?;
    StoredQueue::announce(table, &queue).await?;
    delivery.remove_dead(table).await?;
    Ok(None)
}
