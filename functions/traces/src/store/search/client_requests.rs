//! Searches by clients' request ids, which read an index of these ids instead of the blocks.
//!
//! Marks are read first, then the index, and then documents. A mark is deleted only after its trace
//! has been added to the index (`docs/adr/0036-client-requests.md`). Therefore every trace without
//! a mark is in the index, and no block has to be read. A trace with a mark may not be in the index
//! yet, so it is read from its document, as in any other search.

use std::collections::{BTreeSet, HashSet};

use entities::traces_of_client_request;
use futures::stream::{self, StreamExt, TryStreamExt};
use mlflow_api::{ExperimentId, Result, TraceId};
use search::TimeRange;
use search::trace::TraceFilter;
use trace_blocks::{TraceKey, TracePartition};

use super::super::store::Store;
use super::partition_reader::{OccupiedSpot, ReadDepth, SpotEntry};
use super::time_merge::MergedPlaces;

/// Maximum number of queries to the index: one per experiment and request id.
const MAX_QUERIES: usize = 128;
/// Number of queries that are in flight at the same time.
const CONCURRENCY: usize = 16;
/// Maximum number of partitions whose marks are read before falling back to a search that reads
/// blocks.
const MAX_PARTITIONS: usize = 4_096;
/// Maximum number of marks that are read. 16,384 of them cost 550 read units without spans, and about
/// 5,700 with the spans of traces of 5 KB.
const MAX_MARKS: usize = 16_384;
/// Maximum number of traces that the index may return.
const MAX_TRACES: usize = 1_000;
/// Number of documents that are read with one request.
const BATCH_SIZE: usize = 100;
/// Maximum size in bytes of the documents that are kept in memory. Beyond it, only the positions of
/// traces are kept, and their documents are read again later.
const MAX_KEPT_BYTES: usize = 8 << 20;

impl Store {
    /// Returns an iterator over the traces that may pass a filter. If the filter names clients'
    /// requests, the iterator only returns traces with marks and traces in the index. If the filter
    /// names no requests, or if there are too many of these traces, it returns all traces.
    ///
    /// If the filter names requests, takes one request per experiment, per partition of its days,
    /// per request id in each experiment, and per hundred traces in the index. Costs a read unit
    /// per 30 marks and per trace in the index.
    pub(super) async fn trace_places(
        &self,
        experiments: &[ExperimentId],
        filter: &TraceFilter,
        times: TimeRange,
        behind: Option<&TraceKey>,
    ) -> Result<MergedPlaces> {
        if let Some(requests) = filter.client_requests()
            && let Some(walks) = self.places_of_requests(experiments, &requests, times, behind).await?
        {
            return Ok(walks);
        }
        MergedPlaces::of(self, experiments, times, behind, ReadDepth::Documents).await
    }

    async fn places_of_requests(
        &self,
        experiments: &[ExperimentId],
        requests: &[&str],
        times: TimeRange,
        behind: Option<&TraceKey>,
    ) -> Result<Option<MergedPlaces>> {
        if experiments.len().saturating_mul(requests.len()) > MAX_QUERIES {
            return Ok(None);
        }
        let mut walks = MergedPlaces::of(self, experiments, times, behind, ReadDepth::Nothing).await?;
        if walks.partitions() > MAX_PARTITIONS {
            return Ok(None);
        }
        let marks = walks.next(self, MAX_MARKS + 1).await?;
        if marks.len() > MAX_MARKS {
            return Ok(None);
        }
        let Some(traces) = self.traces_of_requests(experiments, requests).await? else { return Ok(None) };
        let is_asked = |spot: &OccupiedSpot| {
            experiments.contains(&spot.partition.experiment)
                && times.contains(spot.place.time)
                && behind.is_none_or(|behind| spot.place > *behind)
        };
        let mut spots: Vec<_> = self.spots_of(&traces).await?.into_iter().filter(is_asked).collect();
        let read: HashSet<(TracePartition, TraceKey)> =
            spots.iter().map(|spot| (spot.partition, spot.place.clone())).collect();
        spots.extend(marks.into_iter().filter(|mark| !read.contains(&(mark.partition, mark.place.clone()))));
        spots.sort_by(|one, other| one.place.cmp(&other.place));
        Ok(Some(walks.with_known_spots(spots)))
    }

    /// Returns the traces in the index, or `None` if there are too many.
    async fn traces_of_requests(
        &self,
        experiments: &[ExperimentId],
        requests: &[&str],
    ) -> Result<Option<BTreeSet<TraceId>>> {
        let all = experiments.iter().flat_map(|experiment| requests.iter().map(|request| (*experiment, *request)));
        let questions: Vec<_> = all
            .map(|(experiment, request)| traces_of_client_request(&self.table, request, experiment, MAX_TRACES))
            .collect();
        let mut answers = stream::iter(questions).buffered(CONCURRENCY);
        let mut traces = BTreeSet::new();
        while let Some(found) = answers.try_next().await? {
            let Some(found) = found else { return Ok(None) };
            traces.extend(found);
            if traces.len() > MAX_TRACES {
                return Ok(None);
            }
        }
        Ok(Some(traces))
    }

    /// Reads the documents of these traces, and returns the traces' positions in the time order.
    async fn spots_of(&self, traces: &BTreeSet<TraceId>) -> Result<Vec<OccupiedSpot>> {
        let (mut spots, mut bytes) = (Vec::new(), 0);
        for portion in traces.iter().collect::<Vec<_>>().chunks(BATCH_SIZE) {
            for trace in self.trace_unexpired_documents(portion).await?.into_values() {
                bytes += trace.item().size();
                let (partition, place) = (TracePartition::of(&trace), TraceKey::of(&trace));
                let standing = if bytes <= MAX_KEPT_BYTES { SpotEntry::Read(trace) } else { SpotEntry::Mark };
                spots.push(OccupiedSpot { partition, place, entry: standing });
            }
        }
        Ok(spots)
    }
}
