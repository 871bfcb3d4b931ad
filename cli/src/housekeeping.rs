//! Work that DynamoDB does by itself, and the embedded engine only when asked. It forgets the
//! stream after a day, and removes items whose time has come. It also removes what the policies no
//! longer keep, for which a stack has a function.

use std::time::Duration;

use embedded_engine::Engine;
use retention::{Retention, ToLog};
use workspaces::Workspaces;

/// Pause between two rounds.
const PAUSE: Duration = Duration::from_mins(5);
/// How long a stream keeps its records.
const STREAM: Duration = Duration::from_hours(24);

/// Rounds from one look at the policies to the next: an hour.
const POLICY: u32 = 12;
/// How long a round removes what the policies keep no longer. If more is left, the next round goes
/// on.
const SLICE: Duration = Duration::from_mins(4);

/// Runs until it is dropped. Without a retention, it does not look at the table's content.
pub(crate) async fn run(engine: Engine, retention: Option<(Retention, Workspaces)>) {
    let mut next = 0;
    for round in 0_u32.. {
        if let Err(error) = engine.trim_stream(STREAM).await {
            tracing::warn!(%error, "the stream could not be trimmed");
        }
        if let Err(error) = engine.sweep_ttl().await {
            tracing::warn!(%error, "expired items could not be removed");
        }
        if let Some((retention, workspaces)) = retention.as_ref().filter(|_| round >= next) {
            next = match Box::pin(retention.remove_for(SLICE, workspaces, &ToLog)).await {
                Ok(true) => round + POLICY,
                Ok(false) => round + 1,
                Err(error) => {
                    tracing::warn!(%error, "the retention policies could not be applied");
                    round + POLICY
                }
            };
        }
        tokio::time::sleep(PAUSE).await;
    }
}
