//! Trace retention: decides which traces are kept, based on their start time and the tag of their
//! experiment or the server's setting.
//!
//! Every read of traces applies this decision, so expired traces are hidden whether or not they
//! have been deleted. A process reads the setting once per minute, together with the tags of the
//! requested experiments that may have one.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::attributes::{ROW_VALUE, TAGS};
use crate::{LocatedTrace, Moment, StoredTrace, entry_name, now_ms};
use key_schema::{Name, rows};
use mlflow_api::{ExperimentId, Result, TRACE_RETENTION_TAG, TraceRetention};
use table::{Item, Table};

use crate::trace_retention::TraceRetentionSetting;

/// How long a process relies on the setting and the tags that it has read.
const CACHE_DURATION: Duration = Duration::from_mins(1);
/// Maximum number of experiments whose tags are cached.
const MAX_CACHED_EXPERIMENTS: usize = 10_000;

/// A per-process cache of the trace retention. Cheap to clone; clones share the cache.
#[derive(Clone)]
pub struct TraceRetentionCache {
    table: Table,
    // A std mutex is sufficient: nothing is awaited while it is held.
    known: Arc<Mutex<CachedRetention>>,
}

#[derive(Default)]
struct CachedRetention {
    setting: Option<(Moment, Arc<TraceRetentionSetting>)>,
    /// Retention in the experiments' tags. `None` for an experiment without the tag.
    own: HashMap<ExperimentId, (Moment, Option<TraceRetention>)>,
}

/// For some experiments, the earliest start time of traces that are kept.
#[derive(Clone, Debug, Default)]
pub struct TraceCutoffs(HashMap<ExperimentId, i64>);

impl TraceCutoffs {
    /// Returns the earliest start time, in ms, of traces that are kept in one of the requested
    /// experiments. `None` if all of its traces are kept.
    #[must_use]
    pub fn of(&self, experiment: ExperimentId) -> Option<i64> {
        self.0.get(&experiment).copied()
    }

    /// Checks whether a trace in one of these experiments is kept.
    #[must_use]
    pub fn has(&self, trace: &StoredTrace) -> bool {
        self.has_time(trace.experiment(), trace.request_time())
    }

    /// Checks whether a trace in one of these experiments is kept, given its document or pointer.
    #[must_use]
    pub fn has_located(&self, trace: &LocatedTrace) -> bool {
        self.has_time(trace.experiment(), trace.request_time())
    }

    fn has_time(&self, experiment: ExperimentId, request_time: i64) -> bool {
        self.of(experiment).is_none_or(|since| request_time >= since)
    }
}

impl TraceRetentionCache {
    /// Creates an empty cache for a table.
    #[must_use]
    pub fn new(table: Table) -> Self {
        Self { table, known: Arc::default() }
    }

    /// Returns the times before which traces of these experiments have expired. Takes at most one
    /// request per minute for the setting, and one more per minute for every fifty experiments that
    /// may override the setting with a tag.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read. The caller then shows no traces, because some
    /// of them may have to be hidden.
    pub async fn since(&self, experiments: impl IntoIterator<Item = ExperimentId> + Send) -> Result<TraceCutoffs> {
        let setting = self.setting().await?;
        if setting.kept.is_none() && setting.own.is_empty() {
            return Ok(TraceCutoffs::default());
        }
        let mut experiments: Vec<_> = experiments.into_iter().collect();
        experiments.sort_unstable();
        experiments.dedup();
        let own: Vec<_> = experiments.iter().copied().filter(|experiment| setting.own.contains(experiment)).collect();
        let own = self.own(&own).await?;
        let now = now_ms();
        let since = experiments.into_iter().filter_map(|experiment| {
            let retention = own.get(&experiment).copied().or(setting.kept)?;
            Some((experiment, retention.since(now)?))
        });
        Ok(TraceCutoffs(since.collect()))
    }

    /// Returns the server's setting, from the cache or the table.
    async fn setting(&self) -> Result<Arc<TraceRetentionSetting>> {
        let known = self.memory().setting.clone();
        if let Some((_, setting)) = known.filter(|(read, _)| read.age() < CACHE_DURATION) {
            return Ok(setting);
        }
        let read = Moment::now();
        let setting = Arc::new(TraceRetentionSetting::read(&self.table).await?);
        self.memory().setting = Some((read, Arc::clone(&setting)));
        Ok(setting)
    }

    /// Returns the retention of each of these experiments that overrides the setting with a tag.
    async fn own(&self, experiments: &[ExperimentId]) -> Result<HashMap<ExperimentId, TraceRetention>> {
        let (mut known, mut unknown) = (HashMap::new(), Vec::new());
        {
            let memory = self.memory();
            for experiment in experiments {
                match memory.own.get(experiment) {
                    Some((read, said)) if read.age() < CACHE_DURATION => {
                        known.extend(said.map(|said| (*experiment, said)));
                    }
                    _ => unknown.push(*experiment),
                }
            }
        }
        if unknown.is_empty() {
            return Ok(known);
        }
        let read = Moment::now();
        let tag = Name::from(TRACE_RETENTION_TAG);
        let keys =
            |experiment: &ExperimentId| (rows::Experiment::key(experiment), rows::ExperimentTag::key(experiment, &tag));
        let all: Vec<_> = unknown.iter().flat_map(|experiment| <[_; 2]>::from(keys(experiment))).collect();
        let items = self.table.get_many(&all).await?;
        let mut memory = self.memory();
        if memory.own.len() >= MAX_CACHED_EXPERIMENTS {
            memory.own.clear();
        }
        for experiment in unknown {
            let (document, row) = keys(&experiment);
            let said = said_by(items.get(&document), items.get(&row));
            memory.own.insert(experiment, (read, said));
            known.extend(said.map(|said| (experiment, said)));
        }
        Ok(known)
    }

    fn memory(&self) -> MutexGuard<'_, CachedRetention> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the text of the retention tag of all experiments that have the tag. Takes one request
/// for the setting, and one per fifty experiments that the setting lists.
///
/// # Errors
/// Returns failures of the table.
pub async fn retention_tags(table: &Table) -> Result<BTreeMap<ExperimentId, String>> {
    let own = TraceRetentionSetting::read(table).await?.own;
    let tag = Name::from(TRACE_RETENTION_TAG);
    let keys =
        |experiment: &ExperimentId| (rows::Experiment::key(experiment), rows::ExperimentTag::key(experiment, &tag));
    let all: Vec<_> = own.iter().flat_map(|experiment| <[_; 2]>::from(keys(experiment))).collect();
    let items = table.get_many(&all).await?;
    let said = own.into_iter().filter_map(|experiment| {
        let (document, row) = keys(&experiment);
        Some((experiment, text_of(items.get(&document), items.get(&row))?.to_owned()))
    });
    Ok(said.collect())
}

/// Returns the text of the retention tag. It is in the experiment's document, or in a row if the
/// document was full.
fn text_of<'a>(document: Option<&'a Item>, row: Option<&'a Item>) -> Option<&'a str> {
    let tags = document?.map(TAGS);
    let held = tags.and_then(|tags| tags.get(entry_name(TRACE_RETENTION_TAG).as_ref())?.as_s().ok());
    held.map(String::as_str).or_else(|| row?.get(ROW_VALUE))
}

/// Returns the retention that an experiment's tag specifies. Returns `None` if there is no tag.
fn said_by(document: Option<&Item>, row: Option<&Item>) -> Option<TraceRetention> {
    let text = text_of(document, row)?;
    let said = TraceRetention::parse(text);
    if said.is_err() {
        tracing::warn!(text, "the trace retention tag of an experiment is invalid: its traces are kept forever");
    }
    // An invalid tag keeps traces forever, and does not fall back to the setting, because the tag
    // was meant to override it. Traces that are kept too long can still be deleted later.
    Some(said.unwrap_or(TraceRetention::Forever))
}

#[cfg(test)]
mod tests {
    use table::{map, text};

    use super::*;

    #[test]
    fn what_a_tag_says_that_cannot_be_read_is_for_ever() {
        let document = |value: &str| {
            let tags = [(entry_name(TRACE_RETENTION_TAG).into_owned(), text(value))];
            Item::new(rows::Experiment::key(&ExperimentId::DEFAULT)).with(TAGS, map(tags.into_iter().collect()))
        };
        assert_eq!(said_by(None, None), None);
        assert_eq!(said_by(Some(&document("1m")), None), Some(TraceRetention::Ms(60_000)));
        assert_eq!(said_by(Some(&document("soon")), None), Some(TraceRetention::Forever));
    }
}
