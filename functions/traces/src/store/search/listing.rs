//! All traces of an experiment.

use entities::StoredTrace;
use mlflow_api::{ExperimentId, Result};
use search::TimeRange;
use trace_blocks::TraceKey;

use super::super::store::Store;
use super::found_traces::FoundTrace;
use super::partition_reader::ReadDepth;
use super::time_merge::MergedPlaces;

impl Store {
    /// Returns up to `most` unexpired traces of an experiment after a position in the time order,
    /// newest first. Also returns the position of the last one, after which the next call
    /// continues, or `None` at the end. Takes one request for the days of the experiment, two per
    /// partition of a day, one per hundred traces with marks, and one per 40 blocks.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub async fn traces_after(
        &self,
        experiment: ExperimentId,
        behind: Option<&TraceKey>,
        most: usize,
    ) -> Result<(Vec<StoredTrace>, Option<TraceKey>)> {
        let (all, depth) = (TimeRange::default(), ReadDepth::Documents);
        let mut places = MergedPlaces::of(self, &[experiment], all, behind, depth).await?;
        let spots = places.next(self, most).await?;
        let last = spots.last().map(|spot| spot.place.clone());
        let found = self.traces_at(spots).await?.into_iter().filter_map(|found| match found {
            FoundTrace::Trace(trace, _) => Some(trace),
            FoundTrace::Columns(..) => None,
        });
        Ok((found.collect(), last))
    }
}
