//! Invariants of traces that hold at any time, regardless of interruptions.

use artifact_store::Archive;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use entities::StoredTrace;
use key_schema::{Key, rows};
use mlflow_api::{ExperimentId, TraceId};
use test_site::{TestEnvironment, key_of};
use trace_blocks::{
    LargeTraceTurn, TraceKey, TracePartition, in_mark_key, is_mark, read_block_spans, read_blocks, read_trace_spans,
    read_traces,
};

/// Documents, marks and blocks of a site.
struct Whole<'a> {
    site: &'a TestEnvironment,
    archive: &'a Archive,
    traces: HashMap<TraceId, StoredTrace>,
    keys: HashSet<Key>,
    marks: BTreeMap<TracePartition, BTreeSet<TraceKey>>,
    /// Traces that a mark or a block refers to, by experiment.
    named: BTreeSet<(ExperimentId, TraceId)>,
    /// Whether an export may have been interrupted. If so, the block of the exported trace may lack
    /// spans.
    is_cut_off: bool,
    /// Traces that are read from a block.
    packed: BTreeSet<TraceId>,
}

/// Checks the invariants of traces:
///
/// - Each trace has a mark at its position, or a block has its current content and spans.
/// - If a block has outdated content of a trace, or a trace that no longer exists, the trace has a
///   mark at its position in the block.
/// - Spans without a document belong to a trace that a mark or a block of their experiment refers
///   to.
/// - If a document refers to a mark with spans, this mark exists.
///
/// While a day is being emptied, because some of its traces are past their retention, only the last
/// rule applies to it.
pub(crate) async fn check(site: &TestEnvironment, is_kept: impl Fn(&TracePartition) -> bool) -> Result<(), String> {
    looked_at(site, &Archive::default(), is_kept, false).await
}

/// Checks the rules of [`check`] for a site whose old traces may be archived.
pub(crate) async fn check_with_archive(site: &TestEnvironment, archive: &Archive) -> Result<(), String> {
    looked_at(site, archive, |_| true, false).await
}

/// Checks the rules of [`check`] for a site on which an export may have been interrupted.
pub(crate) async fn check_cut_off(
    site: &TestEnvironment,
    is_kept: impl Fn(&TracePartition) -> bool,
) -> Result<(), String> {
    looked_at(site, &Archive::default(), is_kept, true).await
}

async fn looked_at(
    site: &TestEnvironment,
    archive: &Archive,
    is_kept: impl Fn(&TracePartition) -> bool,
    is_cut_off: bool,
) -> Result<(), String> {
    let keys: Vec<_> = site.items().await.iter().map(key_of).collect();
    let ids: Vec<_> = keys.iter().filter_map(|key| Some(rows::Trace::parse(key)?.trace)).collect();
    let traces = read_traces(&site.table, &ids.iter().collect::<Vec<_>>()).await.map_err(|error| error.to_string())?;
    let (marks, named, packed) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
    let mut whole =
        Whole { site, archive, traces, keys: keys.iter().cloned().collect(), marks, named, is_cut_off, packed };
    for key in keys.iter().filter(|key| is_mark(key)) {
        let (partition, place) = (TracePartition::of_key(key).unwrap(), TraceKey::of_key(key).unwrap());
        whole.named.insert((partition.experiment, place.trace.clone()));
        whole.marks.entry(partition).or_default().insert(place);
    }
    let partitions: BTreeSet<_> = keys.iter().filter_map(TracePartition::of_key).collect();
    for partition in partitions {
        whole.look_at(partition, is_kept(&partition)).await?;
    }
    whole.look_at_documents(&is_kept)?;
    whole.look_at_spans(&keys)
}

impl Whole<'_> {
    fn is_marked(&self, partition: &TracePartition, place: &TraceKey) -> bool {
        self.marks.get(partition).is_some_and(|marks| marks.contains(place))
    }

    /// Checks the blocks of a partition.
    async fn look_at(&mut self, partition: TracePartition, is_kept: bool) -> Result<(), String> {
        let table = &self.site.table;
        let read = read_blocks(table, &partition, None, usize::MAX).await;
        let mut before: Option<TraceKey> = None;
        for block in read.map_err(|failure| format!("{failure:?}"))?.0 {
            let mut wanted = Vec::new();
            for trace in block.traces().map_err(|error| error.to_string())? {
                let (place, id) = (TraceKey::of(&trace), trace.id().clone());
                self.named.insert((partition.experiment, id.clone()));
                if before.as_ref().is_some_and(|before| *before >= place) || place > *block.end() {
                    return Err(format!("{id} is in a block that does not own its place"));
                }
                if is_kept && !self.is_marked(&partition, &place) {
                    let own = self.traces.get(&id);
                    if own != Some(&trace) && own != Some(&StoredTrace::behind_pointer(&trace)) {
                        return Err(format!("{id} is not as its block says: {own:?}"));
                    }
                    wanted.push(id);
                }
            }
            let asked: Vec<_> = wanted.iter().map(|trace| (&block, trace)).collect();
            let spans =
                read_block_spans(table, self.archive, &asked).await.map_err(|failure| format!("{failure:?}"))?;
            for trace in wanted {
                let trace_now = &self.traces[&trace];
                let own = read_trace_spans(table, self.archive, trace_now, &LargeTraceTurn::default()).await;
                let own = own.map_err(|error| error.to_string())?;
                if spans.get(&trace) != Some(&*own) && !self.is_cut_off {
                    return Err(format!("the spans of {trace} are not as its block says"));
                }
                self.packed.insert(trace);
            }
            before = Some(block.end().clone());
        }
        Ok(())
    }

    fn look_at_documents(&self, is_kept: &impl Fn(&TracePartition) -> bool) -> Result<(), String> {
        for trace in self.traces.values() {
            if in_mark_key(trace).is_some_and(|key| !self.keys.contains(&key)) {
                return Err(format!("the mark with the spans of {} is missing", trace.id()));
            }
            let (partition, place) = (TracePartition::of(trace), TraceKey::of(trace));
            let is_found = self.is_marked(&partition, &place) || self.packed.contains(trace.id());
            if is_kept(&partition) && !is_found {
                return Err(format!("{} is lost: neither marked nor packed", trace.id()));
            }
        }
        Ok(())
    }

    fn look_at_spans(&self, keys: &[Key]) -> Result<(), String> {
        for row in keys.iter().filter_map(rows::TraceSpans::parse) {
            let has_document = self.traces.get(&row.trace).is_some_and(|head| head.experiment() == row.experiment);
            if !has_document && !self.named.contains(&(row.experiment, row.trace.clone())) {
                return Err(format!("nothing names spans of {} in experiment {}", row.trace, row.experiment));
            }
        }
        Ok(())
    }
}
