//! Aggregated metrics of traces, and correlations of filters. Both read all traces that began in a
//! time range.

use access::Granted;
use entities::listing::{CooperativeYield, ReadBudget};
use futures::stream::{self, StreamExt, TryStreamExt};
use mlflow_api::trace_metrics::{MetricDataPoint, TraceCorrelationResponse, TraceMetricsResponse};
use mlflow_api::{Error, ExperimentId, Result};
use search::TimeRange;
use search::trace::metrics::{MetricsCollector, MetricsQuery};
use search::trace::{CorrelationCounts, MatchingSessions, RelatedEntity, TraceFilter};
use trace_blocks::LargeTraceTurn;

use super::super::store::Store;
use super::found_traces::{FoundTrace, split_by_blocks};
use super::partition_reader::ReadDepth;
use super::span_fields::SearchableSpan;
use super::time_merge::MergedPlaces;
use super::trace_fields::{SearchableColumns, SearchableTrace};

/// Maximum number of traces per read. If only columns are needed, which are short, the maximum is
/// raised to 40 blocks, the number that fits into one request.
const BATCH_SIZE: usize = 2_048;
const COLUMN_BATCH_SIZE: usize = 5_120;
/// Number of traces whose spans are read concurrently.
const CONCURRENCY: usize = 16;

/// Two filters to be correlated, among the traces that pass a third one.
pub struct Correlation {
    /// The filter that a trace has to pass to be counted at all. `None` counts all traces.
    pub base: Option<TraceFilter>,
    /// The first filter.
    pub first: TraceFilter,
    /// The second filter.
    pub second: TraceFilter,
}

impl Correlation {
    /// Returns the related entities by which traces are filtered.
    pub fn related(&self) -> impl Iterator<Item = RelatedEntity> {
        self.base.iter().chain([&self.first, &self.second]).flat_map(TraceFilter::related)
    }
}

impl Store {
    /// Aggregates metrics of the traces in these experiments. Takes one request per experiment, two
    /// per day and partition, one per 40 blocks, and one per hundred recently changed traces.
    /// Counting spans takes one more request per hundred span items of blocks, and one per recently
    /// changed trace.
    pub async fn trace_metrics(
        &self,
        experiments: &[Granted<ExperimentId>],
        question: MetricsQuery,
    ) -> Result<TraceMetricsResponse> {
        let times = question.request_times();
        let with_spans = question.asks_for_spans();
        let depth = if question.is_about_columns() { ReadDepth::Columns } else { ReadDepth::Documents };
        let (mut metrics, turn) = (MetricsCollector::of(question), &LargeTraceTurn::default());
        let mut all = TraceBatches::of(self, experiments, times, depth).await?;
        let mut pace = CooperativeYield::default();
        while let Some(found) = all.next().await? {
            let mut counted = Vec::new();
            for found in found {
                pace.keep().await;
                match found {
                    FoundTrace::Trace(trace, block) if with_spans => {
                        counted.push((SearchableTrace::of(&trace)?, block));
                    }
                    FoundTrace::Trace(trace, _) => {
                        metrics.add(&SearchableTrace::of(&trace)?, std::iter::empty::<SearchableSpan>());
                    }
                    FoundTrace::Columns(experiment, columns) => {
                        metrics.add(&SearchableColumns { experiment, columns }, std::iter::empty::<SearchableSpan>());
                    }
                }
            }
            for portion in split_by_blocks(counted, |(_, block)| block.as_ref()) {
                let in_blocks = portion.iter().map(|(seen, block)| (&seen.info.id, block.as_ref()));
                let mut packed = all.store.packed_spans(in_blocks).await?;
                let reads = portion.into_iter().map(|(seen, _)| {
                    let read = packed.remove(&seen.info.id);
                    async move {
                        let spans = self.spans_unless_read(read, &seen.stored, turn).await?;
                        Ok::<_, Error>((seen, spans))
                    }
                });
                let mut reads = stream::iter(reads.collect::<Vec<_>>()).buffer_unordered(CONCURRENCY);
                while let Some((seen, spans)) = reads.try_next().await? {
                    pace.keep().await;
                    metrics.add(&seen, spans.iter().map(SearchableSpan::of));
                }
            }
        }
        let points = metrics.finish().into_iter().map(|point| MetricDataPoint {
            metric_name: point.metric,
            dimensions: point.dimensions,
            values: point.values,
        });
        Ok(TraceMetricsResponse { data_points: points.collect() })
    }

    /// Counts how many traces pass each of two filters, and how many pass both. Takes as many
    /// requests as [`Store::trace_metrics`]. Spans are read only if a filter refers to them.
    pub async fn trace_correlation(
        &self,
        experiments: &[Granted<ExperimentId>],
        correlation: &Correlation,
    ) -> Result<TraceCorrelationResponse> {
        let Correlation { base, first, second } = correlation;
        let ids: Vec<_> = experiments.iter().map(|experiment| **experiment).collect();
        let of_first = self.trace_sessions(&ids, first).await?;
        let of_second = self.trace_sessions(&ids, second).await?;
        let of_base = match base {
            Some(base) => self.trace_sessions(&ids, base).await?,
            None => MatchingSessions::default(),
        };
        let filters =
            [base.as_ref().map(|base| (base, &of_base)), Some((first, &of_first)), Some((second, &of_second))];
        let times = base.as_ref().map(TraceFilter::request_times).unwrap_or_default();
        let (mut counts, turn) = (CorrelationCounts::default(), &LargeTraceTurn::default());
        if !times.is_empty() {
            let mut all = TraceBatches::of(self, experiments, times, ReadDepth::Documents).await?;
            let mut pace = CooperativeYield::default();
            while let Some(found) = all.next().await? {
                let mut undecided = Vec::new();
                for found in found {
                    pace.keep().await;
                    let FoundTrace::Trace(trace, block) = found else { continue };
                    let seen = SearchableTrace::of(&trace)?;
                    let passes =
                        filters.map(|filter| filter.is_none_or(|(filter, sessions)| filter.matches(&seen, sessions)));
                    if filters.iter().zip(passes).any(|(filter, passes)| passes && needs_spans(filter.as_ref())) {
                        undecided.push((seen, passes, block));
                    } else {
                        add(&mut counts, passes);
                    }
                }
                for portion in split_by_blocks(undecided, |(.., block)| block.as_ref()) {
                    let in_blocks = portion.iter().map(|(seen, _, block)| (&seen.info.id, block.as_ref()));
                    let mut packed = all.store.packed_spans(in_blocks).await?;
                    let reads = portion.into_iter().map(|(seen, passes, _)| {
                        let read = packed.remove(&seen.info.id);
                        async move { Ok::<_, Error>((passes, self.spans_unless_read(read, &seen.stored, turn).await?)) }
                    });
                    let mut reads = stream::iter(reads.collect::<Vec<_>>()).buffer_unordered(CONCURRENCY);
                    while let Some((mut passes, spans)) = reads.try_next().await? {
                        pace.keep().await;
                        let asked =
                            passes.iter_mut().zip(filters).filter_map(|(passes, filter)| Some((passes, filter?)));
                        for (passes, (filter, _)) in asked {
                            *passes = *passes && filter.matches_spans(spans.iter().map(SearchableSpan::of));
                        }
                        add(&mut counts, passes);
                    }
                }
            }
        }
        let (npmi, npmi_smoothed) = counts.correlation().unwrap_or_default();
        Ok(TraceCorrelationResponse {
            npmi,
            npmi_smoothed,
            filter1_count: counts.first,
            filter2_count: counts.second,
            joint_count: counts.joint,
            total_count: counts.total,
        })
    }
}

fn needs_spans(filter: Option<&(&TraceFilter, &MatchingSessions)>) -> bool {
    filter.is_some_and(|(filter, _)| filter.asks_for_spans())
}

/// Counts a trace. The results of the two filters are counted only if the trace passes the base
/// filter as well.
fn add(counts: &mut CorrelationCounts, [base, first, second]: [bool; 3]) {
    counts.total += u64::from(base);
    counts.first += u64::from(base && first);
    counts.second += u64::from(base && second);
    counts.joint += u64::from(base && first && second);
}

/// All traces of experiments that began in a time range, read in portions.
struct TraceBatches {
    store: Store,
    walks: MergedPlaces,
    reading: ReadBudget,
    batch_size: usize,
}

impl TraceBatches {
    async fn of(
        store: &Store,
        experiments: &[Granted<ExperimentId>],
        times: TimeRange,
        depth: ReadDepth,
    ) -> Result<Self> {
        let reading = ReadBudget::default();
        let store = store.with_table(reading.of(&store.table));
        let ids: Vec<_> = experiments.iter().map(|experiment| **experiment).collect();
        let walks = MergedPlaces::of(&store, &ids, times, None, depth).await?;
        let portion = if depth == ReadDepth::Columns { COLUMN_BATCH_SIZE } else { BATCH_SIZE };
        Ok(Self { store, walks, reading, batch_size: portion })
    }

    async fn next(&mut self) -> Result<Option<Vec<FoundTrace>>> {
        let spots = self.walks.next(&self.store, self.reading.portion(self.batch_size)).await?;
        let read = spots.len();
        if read == 0 {
            return Ok(None);
        }
        let traces = self.store.traces_at(spots).await?;
        self.reading.portion_was(read);
        Ok(Some(traces))
    }
}
