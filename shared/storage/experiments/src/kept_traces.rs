//! Decides which traces are kept: those that did not begin too long ago, by the tag of their
//! experiment or the setting of the server.
//!
//! Every read of traces asks this. So expired traces are hidden, whether or not they have been
//! removed. A process reads the setting once a minute, and with it the tags of the requested
//! experiments, if they may have one.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use entities::attributes::{ROW_VALUE, TAGS};
use entities::{Moment, StoredTrace, entry_name, now_ms};
use key_schema::{Name, rows};
use mlflow_api::{ExperimentId, Result, TRACE_RETENTION_TAG, TraceRetention};
use table::{Item, Table};

use crate::trace_setting::TraceSetting;

/// For how long a process relies on its reads.
const READ: Duration = Duration::from_mins(1);
/// Experiments whose tags are remembered at a time.
const MOST: usize = 10_000;

/// How long traces are kept, as this process last read it. Cheap to clone; clones share the cache.
#[derive(Clone)]
pub struct KeptTraces {
    table: Table,
    // A std mutex: nothing is awaited while it is held.
    known: Arc<Mutex<Memory>>,
}

#[derive(Default)]
struct Memory {
    setting: Option<(Moment, Arc<TraceSetting>)>,
    /// The times in tags; `None` where there is no tag.
    own: HashMap<ExperimentId, (Moment, Option<TraceRetention>)>,
}

/// When traces began at the earliest that are kept, of some experiments.
#[derive(Clone, Debug, Default)]
pub struct KeptSince(HashMap<ExperimentId, i64>);

impl KeptSince {
    /// Of one of the experiments that were asked about, in ms; `None` if all of its traces are kept.
    #[must_use]
    pub fn of(&self, experiment: ExperimentId) -> Option<i64> {
        self.0.get(&experiment).copied()
    }

    /// Whether a trace is kept that is in one of these experiments.
    #[must_use]
    pub fn has(&self, trace: &StoredTrace) -> bool {
        self.of(trace.experiment()).is_none_or(|since| trace.request_time() >= since)
    }
}

impl KeptTraces {
    /// The cache of a table, with nothing read yet.
    #[must_use]
    pub fn new(table: Table) -> Self {
        Self { table, known: Arc::default() }
    }

    /// Which traces of these experiments are kept now. No request, or one per minute. Experiments
    /// may have tags that say otherwise. Such ones take one more request per minute and fifty
    /// experiments.
    ///
    /// # Errors
    /// Those of the table. No trace is shown while it is unknown whether it is to be hidden.
    pub async fn since(&self, experiments: impl IntoIterator<Item = ExperimentId> + Send) -> Result<KeptSince> {
        let setting = self.setting().await?;
        if setting.kept.is_none() && setting.own.is_empty() {
            return Ok(KeptSince::default());
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
        Ok(KeptSince(since.collect()))
    }

    /// The setting of the server.
    async fn setting(&self) -> Result<Arc<TraceSetting>> {
        let known = self.memory().setting.clone();
        if let Some((_, setting)) = known.filter(|(read, _)| read.age() < READ) {
            return Ok(setting);
        }
        let read = Moment::now();
        let setting = Arc::new(TraceSetting::read(&self.table).await?);
        self.memory().setting = Some((read, Arc::clone(&setting)));
        Ok(setting)
    }

    /// The times in the tags of these experiments, for those that have one.
    async fn own(&self, experiments: &[ExperimentId]) -> Result<HashMap<ExperimentId, TraceRetention>> {
        let (mut known, mut unknown) = (HashMap::new(), Vec::new());
        {
            let memory = self.memory();
            for experiment in experiments {
                match memory.own.get(experiment) {
                    Some((read, said)) if read.age() < READ => known.extend(said.map(|said| (*experiment, said))),
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
        if memory.own.len() >= MOST {
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

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The tags of the experiments that have one, as these say it. One request for the setting, and one
/// per fifty experiments that it names.
///
/// # Errors
/// Those of the table.
pub async fn retention_tags(table: &Table) -> Result<BTreeMap<ExperimentId, String>> {
    let own = TraceSetting::read(table).await?.own;
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

/// The tag: in the document, or in a row where the document is full.
fn text_of<'a>(document: Option<&'a Item>, row: Option<&'a Item>) -> Option<&'a str> {
    let tags = document?.map(TAGS);
    let held = tags.and_then(|tags| tags.get(entry_name(TRACE_RETENTION_TAG).as_ref())?.as_s().ok());
    held.map(String::as_str).or_else(|| row?.get(ROW_VALUE))
}

/// The time in the tag.
fn said_by(document: Option<&Item>, row: Option<&Item>) -> Option<TraceRetention> {
    let text = text_of(document, row)?;
    let said = TraceRetention::parse(text);
    if said.is_err() {
        tracing::warn!(text, "a tag does not say how long traces are kept: for ever");
    }
    // The tag was set to depart from the others. Traces that are kept too long can be removed
    // later.
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
