//! The indexer as a Lambda, fed by the table's stream.

use fts_indexer::{Batch, Indexer};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use table::Table;

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing_subscriber::fmt().json().with_max_level(tracing::Level::INFO).without_time().init();
    let table = Table::from_environment().await?;
    entities::layout::check(&table).await?;
    let indexer = Indexer::new(table);
    let handler = |event: LambdaEvent<Batch>| {
        let indexer = indexer.clone();
        // Boxed: the compiler gives up on futures nested deeper.
        async move { Ok::<_, Error>(Box::pin(indexer.handle(event.payload)).await) }
    };
    lambda_runtime::run(service_fn(handler)).await
}
