//! The indexer as a Lambda function. It receives the records of the table's stream, and once per
//! minute an event of a schedule.

use std::sync::Arc;
use std::time::Duration;

use artifact_store::{Archive, ArtifactStore};
use aws_lambda_events::event::streams::DynamoDbEventResponse;
use entities::webhooks::LambdaDeliverer;
use fts_indexer::{DEFAULT_INTERVAL, Indexer, IndexerEvent};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use table::Table;

// For the allocator and the single thread, see `domain::lambda`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Minimum interval, in seconds, between two indexings of a run that is being logged to.
const INTERVAL_VARIABLE: &str = "RUN_INDEXING_INTERVAL";
/// Environment variable that is set if there are workspaces other than the default one.
const WORKSPACES_VARIABLE: &str = "WORKSPACES";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    domain::lambda::logged(Box::pin(serve())).await
}

async fn serve() -> Result<(), Error> {
    let interval = match std::env::var(INTERVAL_VARIABLE) {
        Ok(seconds) => Duration::from_secs(seconds.parse()?),
        Err(_) => DEFAULT_INTERVAL,
    };
    let root = std::env::var("ARTIFACT_ROOT").map_err(|_| "the environment variable ARTIFACT_ROOT is not set")?;
    let table = Table::from_environment().await?;
    let layout = entities::layout::of(&table).await?;
    let archive = Archive::new(ArtifactStore::from_environment(&root));
    let indexer = Indexer::new(table).with_interval(interval).with_layout(layout).with_archive(archive);
    let indexer = match LambdaDeliverer::of_stack(fts_indexer::FUNCTION.name).await {
        Ok(deliverer) => indexer.with_webhooks(Arc::new(deliverer)),
        Err(error) => {
            tracing::warn!(?error, "events are not delivered to webhooks");
            indexer
        }
    };
    let has_workspaces = std::env::var(WORKSPACES_VARIABLE).is_ok_and(|value| value == "on");
    let indexer = if has_workspaces { indexer.with_usage_counter() } else { indexer };
    let handler = |event: LambdaEvent<IndexerEvent>| {
        let indexer = indexer.clone();
        // The future is boxed, because the compiler fails on more deeply nested futures.
        async move { Box::pin(answer(indexer, event.payload)).await }
    };
    lambda_runtime::run(service_fn(handler)).await
}

async fn answer(indexer: Indexer, event: IndexerEvent) -> Result<DynamoDbEventResponse, Error> {
    let Some(batch) = event.batch() else {
        indexer.tick().await.map_err(|failure| format!("{failure:?}"))?;
        return Ok(DynamoDbEventResponse::default());
    };
    Ok(indexer.handle(batch).await)
}
