//! What DynamoDB does by itself and the embedded engine only when asked: forget the stream after a day, and remove items
//! whose time has come.

use std::time::Duration;

use embedded_engine::Engine;

/// Pause between two rounds.
const PAUSE: Duration = Duration::from_mins(5);
/// How long a stream keeps its records.
const STREAM: Duration = Duration::from_hours(24);

/// Runs until it is dropped.
pub(crate) async fn run(engine: Engine) {
    loop {
        if let Err(error) = engine.trim_stream(STREAM).await {
            tracing::warn!(%error, "the stream could not be trimmed");
        }
        if let Err(error) = engine.sweep_ttl().await {
            tracing::warn!(%error, "expired items could not be removed");
        }
        tokio::time::sleep(PAUSE).await;
    }
}
