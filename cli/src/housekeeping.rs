//! Background work for a table of the embedded engine. DynamoDB trims a stream after a day and
//! removes expired items by itself, but the embedded engine only does so on request. This module
//! also removes data past its retention, for which a deployed stack has a separate function.

use std::time::Duration;

use embedded_engine::Engine;
use entities::workspaces::Workspaces;
use retention::{LogReport, Retention};

/// Pause between two rounds.
const ROUND_INTERVAL: Duration = Duration::from_mins(5);
/// Retention of stream records.
const STREAM_RETENTION: Duration = Duration::from_hours(24);

/// Number of rounds (one hour) between two applications of the retention policies.
const ROUNDS_PER_POLICY_RUN: u32 = 12;
/// Time limit for applying the retention policies in one round. If more is left to remove, the next
/// round continues.
const MAX_POLICY_DURATION: Duration = Duration::from_mins(4);

/// Runs until the future is dropped. Without `retention`, the content of the table is not read.
pub(crate) async fn run(engine: Engine, retention: Option<(Retention, Workspaces)>) {
    let mut next = 0;
    for round in 0_u32.. {
        if let Err(error) = engine.trim_stream(STREAM_RETENTION).await {
            tracing::warn!(%error, "the stream could not be trimmed");
        }
        if let Err(error) = engine.sweep_ttl().await {
            tracing::warn!(%error, "expired items could not be removed");
        }
        if let Some((retention, workspaces)) = retention.as_ref().filter(|_| round >= next) {
            next = match Box::pin(retention.remove_for(MAX_POLICY_DURATION, workspaces, &LogReport)).await {
                Ok(true) => round + ROUNDS_PER_POLICY_RUN,
                Ok(false) => round + 1,
                Err(error) => {
                    tracing::warn!(%error, "the retention policies could not be applied");
                    round + ROUNDS_PER_POLICY_RUN
                }
            };
        }
        tokio::time::sleep(ROUND_INTERVAL).await;
    }
}
