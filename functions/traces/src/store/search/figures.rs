//! Figures about traces: all that began in a range of time are read.

use access::Granted;
use entities::StoredTrace;
use futures::stream::{self, StreamExt, TryStreamExt};
use listing::{Pace, Reading};
use mlflow_api::trace_metrics::{MetricDataPoint, TraceCorrelation, TraceMetrics};
use mlflow_api::{Error, ExperimentId, Result};
use search::TimeRange;
use search::trace::metrics::{Metrics, MetricsQuestion};
use search::trace::{CorrelationCounts, Sessions, TraceFilter};

use super::super::store::Store;
use super::seen::Seen;
use super::span::SeenSpan;
use super::walk::Walks;

/// Traces read at a time at most.
const PORTION: usize = 1_600;
/// Traces whose spans are read at a time.
const AT_ONCE: usize = 16;

/// Two filters that are held against each other, among traces that pass a third.
pub struct Correlation {
    /// What every trace has to pass that is looked at; none if all are.
    pub base: Option<TraceFilter>,
    /// The first.
    pub first: TraceFilter,
    /// The second.
    pub second: TraceFilter,
}

impl Store {
    /// Figures of these experiments. One request for each experiment, one for each day and hundred traces; and one for each trace where
    /// spans are counted.
    pub async fn trace_metrics(
        &self,
        experiments: &[Granted<ExperimentId>],
        question: MetricsQuestion,
    ) -> Result<TraceMetrics> {
        let times = question.request_times();
        let with_spans = question.asks_for_spans();
        let mut metrics = Metrics::of(question);
        let mut all = All::of(self, experiments, times).await?;
        let mut pace = Pace::default();
        while let Some(traces) = all.next().await? {
            if with_spans {
                let reads = traces.iter().map(|trace| async move {
                    Ok::<_, Error>((Seen::of(trace)?, self.trace_spans_in(trace.experiment(), trace.id()).await?))
                });
                let mut reads = stream::iter(reads.collect::<Vec<_>>()).buffer_unordered(AT_ONCE);
                while let Some((seen, spans)) = reads.try_next().await? {
                    pace.keep().await;
                    metrics.add(&seen, spans.iter().map(SeenSpan::of));
                }
            } else {
                for trace in &traces {
                    pace.keep().await;
                    metrics.add(&Seen::of(trace)?, std::iter::empty::<SeenSpan>());
                }
            }
        }
        let points = metrics.finish().into_iter().map(|point| MetricDataPoint {
            metric_name: point.metric,
            dimensions: point.dimensions,
            values: point.values,
        });
        Ok(TraceMetrics { data_points: points.collect() })
    }

    /// How often two filters let the same traces pass. Costs what [`Store::trace_metrics`] does; spans are read where a filter asks for them.
    pub async fn trace_correlation(
        &self,
        experiments: &[Granted<ExperimentId>],
        correlation: &Correlation,
    ) -> Result<TraceCorrelation> {
        let Correlation { base, first, second } = correlation;
        let ids: Vec<_> = experiments.iter().map(|experiment| **experiment).collect();
        let of_first = self.trace_sessions(&ids, first).await?;
        let of_second = self.trace_sessions(&ids, second).await?;
        let of_base = match base {
            Some(base) => self.trace_sessions(&ids, base).await?,
            None => Sessions::default(),
        };
        let filters =
            [base.as_ref().map(|base| (base, &of_base)), Some((first, &of_first)), Some((second, &of_second))];
        let times = base.as_ref().map(TraceFilter::request_times).unwrap_or_default();
        let mut counts = CorrelationCounts::default();
        if !times.is_empty() {
            let mut all = All::of(self, experiments, times).await?;
            while let Some(traces) = all.next().await? {
                let checks = traces.iter().map(|trace| self.passes(trace, &filters));
                let mut checks = stream::iter(checks.collect::<Vec<_>>()).buffer_unordered(AT_ONCE);
                while let Some([base, first, second]) = checks.try_next().await? {
                    counts.total += u64::from(base);
                    // Either filter is asked with the base beside it.
                    counts.first += u64::from(base && first);
                    counts.second += u64::from(base && second);
                    counts.joint += u64::from(base && first && second);
                }
            }
        }
        let (npmi, npmi_smoothed) = counts.correlation().unwrap_or_default();
        Ok(TraceCorrelation {
            npmi,
            npmi_smoothed,
            filter1_count: counts.first,
            filter2_count: counts.second,
            joint_count: counts.joint,
            total_count: counts.total,
        })
    }

    /// Which of the filters a trace passes; one that is none it does.
    async fn passes(&self, trace: &StoredTrace, filters: &[Option<(&TraceFilter, &Sessions)>; 3]) -> Result<[bool; 3]> {
        let seen = Seen::of(trace)?;
        let mut passes = filters.map(|filter| filter.is_none_or(|(filter, sessions)| filter.matches(&seen, sessions)));
        let asks =
            |filter: &Option<(&TraceFilter, &Sessions)>| filter.is_some_and(|(filter, _)| filter.asks_for_spans());
        if filters.iter().zip(passes).any(|(filter, passes)| passes && asks(filter)) {
            let spans = self.trace_spans_in(trace.experiment(), trace.id()).await?;
            for (passes, (filter, _)) in
                passes.iter_mut().zip(filters).filter_map(|(passes, filter)| Some((passes, (*filter)?)))
            {
                *passes = *passes && filter.matches_spans(spans.iter().map(SeenSpan::of));
            }
        }
        Ok(passes)
    }
}

/// All traces of experiments that began in a range of time, a portion at a time.
struct All {
    store: Store,
    walks: Walks,
    reading: Reading,
}

impl All {
    async fn of(store: &Store, experiments: &[Granted<ExperimentId>], times: TimeRange) -> Result<Self> {
        let reading = Reading::default();
        let store = store.over(reading.of(&store.table));
        let ids: Vec<_> = experiments.iter().map(|experiment| **experiment).collect();
        let walks = Walks::of(&store, &ids, times, None).await?;
        Ok(Self { store, walks, reading })
    }

    async fn next(&mut self) -> Result<Option<Vec<StoredTrace>>> {
        let marks = self.walks.next(&self.store, self.reading.portion(PORTION)).await?;
        if marks.is_empty() {
            return Ok(None);
        }
        let traces = self.store.traces_at(&marks).await?;
        self.reading.portion_was(marks.len());
        Ok(Some(traces))
    }
}
