//! The housekeeper as a Lambda function.

use artifact_store::Artifacts;
use entities::workspaces::Workspaces;
use housekeeper::SLICE;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use retention::{Looks, Retention, ToLog};
use serde_json::Value;
use table::Table;

// For the allocator and the single thread, see `domain::lambda`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing_subscriber::fmt().json().with_max_level(tracing::Level::INFO).without_time().init();
    let root = std::env::var("ARTIFACT_ROOT").map_err(|_| "the environment variable ARTIFACT_ROOT is not set")?;
    let table = Table::from_environment().await?;
    entities::layout::check(&table).await?;
    let table = table.in_background();
    let retention = Retention::new(table.clone(), Artifacts::from_environment(&root)).looking(Looks::InTurn);
    let workspaces = Workspaces::new(table);
    let handler = |_: LambdaEvent<Value>| {
        let (retention, workspaces) = (retention.clone(), workspaces.clone());
        // Boxed, because the compiler fails on more deeply nested futures.
        async move { Box::pin(answer(retention, workspaces)).await }
    };
    lambda_runtime::run(service_fn(handler)).await
}

async fn answer(retention: Retention, workspaces: Workspaces) -> Result<Value, Error> {
    let work = retention.remove_for(SLICE, &workspaces, &ToLog);
    let is_done = Box::pin(service::log_work("housekeeper", work)).await.map_err(|error| format!("{error:?}"))?;
    if !is_done {
        // A metric filter in `template.yaml` matches this message. The next call continues.
        tracing::warn!("housekeeping is behind");
    }
    Ok(serde_json::json!({ "is_done": is_done }))
}
