//! The housekeeper as a Lambda function.

use artifact_store::ArtifactStore;
use entities::workspaces::Workspaces;
use housekeeper::MAX_DURATION;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use retention::{HistoryScans, LogReport, Retention};
use serde_json::Value;
use table::Table;

// For the allocator and the single thread, see `domain::lambda`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    domain::lambda::logged(Box::pin(serve())).await
}

async fn serve() -> Result<(), Error> {
    let root = std::env::var("ARTIFACT_ROOT").map_err(|_| "the environment variable ARTIFACT_ROOT is not set")?;
    let table = Table::from_environment().await?;
    let layout = entities::layout::of(&table).await?;
    let table = table.in_background();
    let artifacts = ArtifactStore::from_environment(&root);
    let retention = Retention::new(table.clone(), artifacts).with_layout(layout).looking(HistoryScans::InTurn);
    let workspaces = Workspaces::new(table);
    let handler = |event: LambdaEvent<Value>| {
        let (retention, workspaces) = (retention.clone(), workspaces.clone());
        async move {
            // A deployment sends this request to check that the function starts
            // (`tools/deploy/first_call.py`).
            if event.payload["rawPath"] == "/health" {
                return Ok(serde_json::json!({ "statusCode": 200 }));
            }
            // The future is boxed, because the compiler fails on more deeply nested futures.
            Box::pin(answer(retention, workspaces)).await
        }
    };
    lambda_runtime::run(service_fn(handler)).await
}

async fn answer(retention: Retention, workspaces: Workspaces) -> Result<Value, Error> {
    let work = retention.remove_for(MAX_DURATION, &workspaces, &LogReport);
    let is_done = Box::pin(service::log_work("housekeeper", work)).await.map_err(|error| format!("{error:?}"))?;
    if !is_done {
        // A metric filter in `template.yaml` matches this message. The next call continues where
        // this one stopped.
        tracing::warn!("housekeeping is behind");
    }
    Ok(serde_json::json!({ "is_done": is_done }))
}
