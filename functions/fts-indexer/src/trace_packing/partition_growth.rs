//! Adds partitions to a day that receives more traces than its partitions can handle
//! ([`mark_rate`](crate::trace_packing::mark_rate)).

use std::collections::BTreeSet;

use entities::attributes::{GREW, SHARDS};
use key_schema::{Ascending, rows};
use mlflow_api::ExperimentId;
use table::{Condition, Failure, Result, Table, Update, number};

/// Maximum number of partitions of a day. A reader queries each of them. 64 partitions handle
/// 16,000 traces per second.
const MAX_PARTITIONS: u32 = 64;
/// Minimum time, in ms, between two increases of a day's number of partitions. It gives all
/// processes time to read the new number.
const MIN_GROWTH_INTERVAL_MS: i64 = 45_000;

/// Doubles the number of partitions of each of these days, unless the number was increased
/// recently. `now` is a clock in ms. Takes two requests per day. A failed attempt is not retried,
/// because the next batch will contain as many traces and cause another one.
pub(crate) async fn add_partitions(table: &Table, days: BTreeSet<(ExperimentId, i64)>, now: impl Fn() -> i64) {
    for (experiment, day) in days {
        match add_partitions_to_day(table, experiment, day, &now).await {
            Ok(Some(partitions)) => {
                tracing::info!(%experiment, day, partitions, "a day of traces got more partitions");
            }
            Ok(None) => {}
            Err(failure) => {
                tracing::warn!(?failure, %experiment, day, "a day of traces could not get more partitions");
            }
        }
    }
}

async fn add_partitions_to_day(
    table: &Table,
    experiment: ExperimentId,
    day: i64,
    now: impl Fn() -> i64,
) -> Result<Option<u32>> {
    let key = rows::TraceDay::key(&experiment, &Ascending(day));
    // If the day has no row, the experiment no longer exists.
    let Some(row) = table.get(&key).await? else { return Ok(None) };
    let (now, shards) = (now(), row.get(SHARDS).unwrap_or(1));
    let is_settled = row.get(GREW).is_none_or(|grew| grew <= now.saturating_sub(MIN_GROWTH_INTERVAL_MS));
    if shards >= MAX_PARTITIONS || !is_settled {
        return Ok(None);
    }
    let more = Update::new(key)
        .set(SHARDS, number(shards * 2))
        .set(GREW, number(now))
        .only_if(Condition::unchanged(&row, SHARDS));
    match table.apply(&more).await {
        Ok(()) => Ok(Some(shards * 2)),
        // Another consumer has increased the number first, or the experiment no longer exists.
        Err(Failure::Refused { .. }) => Ok(None),
        Err(failure) => Err(failure),
    }
}
