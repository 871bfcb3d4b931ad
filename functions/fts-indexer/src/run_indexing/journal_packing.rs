//! Packs the journals of runs before they are indexed.

use std::collections::HashMap;

use entities::{RunLocation, failed};
use futures::stream::{self, StreamExt, TryStreamExt};
use metric_packing::{PackingResult, pack};
use table::{Failure, Result};

use super::run_reader::ReadRun;
use crate::Indexer;

/// Number of concurrent requests.
const CONCURRENCY: usize = 16;

/// What happened to the journal of a marked run.
pub(super) enum JournalPacking {
    /// The journal did not have to be packed.
    NotDue,
    /// The journal was packed.
    Done(PackingResult),
}

impl JournalPacking {
    /// Checks whether points are left that have to be packed soon.
    pub(super) fn has_points_left(&self) -> bool {
        matches!(self, Self::Done(packed) if packed.leaves_some)
    }
}

impl Indexer {
    /// Packs the journals of those marked runs that are due for packing. The result contains
    /// neither runs without a mark nor runs that cannot be packed. The latter keep their mark.
    pub(super) async fn pack_runs(&self, runs: &[&ReadRun]) -> Result<HashMap<RunLocation, JournalPacking>> {
        let marked = runs.iter().filter(|run| run.state().is_marked);
        let packed = marked.map(|run| async move {
            if !metric_packing::is_due(&run.items).map_err(failed)? {
                return Ok(Some((run.at.clone(), JournalPacking::NotDue)));
            }
            match pack(&self.table, &run.at, &run.items, self.schedule.now(), self.segments).await {
                Err(Failure::TooLarge) => {
                    tracing::error!(at = ?run.at, "a run has more metrics than can be packed");
                    Ok(None)
                }
                packed => Ok(Some((run.at.clone(), JournalPacking::Done(packed?)))),
            }
        });
        let packed = stream::iter(packed.collect::<Vec<_>>()).buffer_unordered(CONCURRENCY);
        Ok(packed.try_collect::<Vec<_>>().await?.into_iter().flatten().collect())
    }
}
