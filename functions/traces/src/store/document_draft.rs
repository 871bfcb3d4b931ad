//! A new version of a trace's document that has not been written yet.

use std::collections::BTreeSet;

use entities::attributes::{
    ASSESSMENTS, Attribute, CLIENT_REQUEST, DURATION, EDITS, EXPERIMENT, IN_BLOCK, IN_MARK, MARKED_AT, METADATA,
    PROMPTS, REQUEST, RESPONSE, RUNS, SHARD, START_TIME, STATE, TAGS, Texts,
};
use entities::{StoredTrace, TraceStub, client_request_entry, entry_name, judges_a_session};
use key_schema::{WideDigest, rows};
use mlflow_api::assessments::Assessment;
use mlflow_api::traces::TraceState;
use mlflow_api::{AssessmentId, ExperimentId, TraceId};
use rand::RngExt;
use table::{Condition, Item, Map, Value, bytes, bytes_set, map, number, text};

use super::mark::PutMark;

/// Size in bytes of a map entry, without its name and its value, as counted by [`Item::size`].
const ENTRY_OVERHEAD: usize = 1;

/// The new state of a document. It is written as a whole, on condition that the stored document has
/// not changed since it was read.
#[derive(Clone, Debug)]
pub(super) struct TraceDraft {
    trace: TraceId,
    experiment: ExperimentId,
    item: Item,
    before: Option<StoredTrace>,
    /// The edit counter of the stub that the document replaces. A stub stores links to a trace that
    /// has not arrived.
    awaited: Option<i64>,
}

impl TraceDraft {
    /// Starts a trace that does not exist yet.
    pub(super) fn new(trace: &TraceId, experiment: ExperimentId, time: i64, state: TraceState) -> Self {
        let empty = || map(Map::new());
        let item = Item::new(rows::Trace::key(trace))
            .with(EXPERIMENT, text(experiment.to_string()))
            .with(START_TIME, number(time))
            .with(STATE, text(state.name()))
            .with(TAGS, empty())
            .with(METADATA, empty())
            .with(ASSESSMENTS, empty());
        Self { trace: trace.clone(), experiment, item, before: None, awaited: None }
    }

    /// Starts a change to an existing trace.
    pub(super) fn of(stored: &StoredTrace) -> Self {
        Self {
            trace: stored.id().clone(),
            experiment: stored.experiment(),
            item: stored.item().clone(),
            before: Some(stored.clone()),
            awaited: None,
        }
    }

    /// Takes over the links of the stub that stored them until the trace arrived. The document
    /// replaces the stub.
    pub(super) fn take_links(&mut self, awaited: &TraceStub) {
        let runs = awaited.runs().iter().map(|run| run.clone().into_bytes());
        self.set(RUNS.name(), Some(bytes_set(runs)));
        self.awaited = Some(awaited.edits());
    }

    /// Links the trace to runs, and to versions of prompts, given as `name/version`.
    pub(super) fn set_links(&mut self, runs: &[String], prompts: &[String]) {
        for (attribute, links) in [(RUNS, runs), (PROMPTS, prompts)] {
            let links: BTreeSet<_> = links.iter().map(|link| link.clone().into_bytes()).collect();
            self.set(attribute.name(), (!links.is_empty()).then(|| bytes_set(links)));
        }
    }

    pub(super) fn experiment(&self) -> ExperimentId {
        self.experiment
    }

    pub(super) fn time(&self) -> i64 {
        self.item.get(START_TIME).unwrap_or_default()
    }

    pub(super) fn set_time(&mut self, time: i64) {
        self.set(START_TIME.name(), Some(number(time)));
    }

    /// Records that neither a block nor a mark contains spans of the trace.
    pub(super) fn forget_place_of_spans(&mut self) {
        self.set(IN_BLOCK.name(), None);
        self.set(IN_MARK.name(), None);
    }

    /// Records that the mark with this digest contains spans of the trace.
    pub(super) fn set_in_mark(&mut self, export: WideDigest) {
        self.set(IN_MARK.name(), Some(bytes(export.0.to_be_bytes().to_vec())));
    }

    pub(super) fn duration(&self) -> Option<i64> {
        self.item.get(DURATION)
    }

    pub(super) fn set_duration(&mut self, duration: Option<i64>) {
        self.set(DURATION.name(), duration.map(number));
    }

    pub(super) fn state(&self) -> TraceState {
        self.item.get(STATE).unwrap_or_default()
    }

    /// Checks whether the trace's root span has not ended yet, as far as is known.
    pub(super) fn is_in_progress(&self) -> bool {
        matches!(self.state(), TraceState::InProgress | TraceState::Unspecified)
    }

    pub(super) fn set_state(&mut self, state: TraceState) {
        self.set(STATE.name(), Some(text(state.name())));
    }

    pub(super) fn has_client_request(&self) -> bool {
        self.item.has(CLIENT_REQUEST)
    }

    /// Sets the client's request id, and its entry in the index that lets searches find the trace
    /// by this id.
    pub(super) fn set_client_request(&mut self, id: Option<&str>) {
        self.set(CLIENT_REQUEST.name(), id.map(text));
        let entry = client_request_entry(id.unwrap_or_default(), self.experiment, &self.trace);
        for (attribute, place) in entry.0 {
            self.set(attribute, id.map(|_| text(place)));
        }
    }

    pub(super) fn set_request(&mut self, preview: &str) {
        self.set(REQUEST.name(), Some(text(preview)));
    }

    pub(super) fn has_request(&self) -> bool {
        self.item.has(REQUEST)
    }

    pub(super) fn has_response(&self) -> bool {
        self.item.has(RESPONSE)
    }

    pub(super) fn set_response(&mut self, preview: &str) {
        self.set(RESPONSE.name(), Some(text(preview)));
    }

    pub(super) fn metadata(&self, key: &str) -> Option<&str> {
        self.entry(METADATA, key)
    }

    pub(super) fn set_metadata(&mut self, key: &str, value: &str) {
        let _ = self.set_entry(METADATA, key, value);
    }

    pub(super) fn remove_metadata(&mut self, key: &str) {
        if let Some(Value::M(entries)) = self.item.0.get_mut(METADATA.name()) {
            entries.remove(entry_name(key).as_ref());
        }
    }

    pub(super) fn has_tag(&self, key: &str) -> bool {
        self.entry(TAGS, key).is_some()
    }

    pub(super) fn set_tag(&mut self, key: &str, value: &str) {
        let _ = self.set_entry(TAGS, key, value);
    }

    /// Sets tags while the document stays below `most` bytes. Tags that do not fit are skipped.
    pub(super) fn set_tags_within<'a>(&mut self, most: usize, tags: impl IntoIterator<Item = (&'a str, &'a str)>) {
        // The size is updated incrementally, because measuring the document for each of many
        // thousand tags would take minutes.
        let mut size = self.size();
        for (key, value) in tags {
            if size + key.len() + value.len() >= most {
                continue;
            }
            size += value.len();
            match self.set_entry(TAGS, key, value) {
                Some(replaced) => size = size.saturating_sub(replaced),
                None => size += entry_name(key).len() + ENTRY_OVERHEAD,
            }
        }
    }

    pub(super) fn has_assessment(&self, id: &AssessmentId) -> bool {
        self.entry(ASSESSMENTS, id.as_str()).is_some()
    }

    pub(super) fn set_assessment(&mut self, id: &AssessmentId, assessment: &Assessment) {
        let _ = self.set_entry(ASSESSMENTS, id.as_str(), &assessment.to_stored().to_string());
    }

    pub(super) fn remove_assessment(&mut self, id: &AssessmentId) {
        if let Some(Value::M(entries)) = self.item.0.get_mut(ASSESSMENTS.name()) {
            entries.remove(entry_name(id.as_str()).as_ref());
        }
    }

    fn entry(&self, attribute: Attribute<Texts>, key: &str) -> Option<&str> {
        self.item.map(attribute)?.get(entry_name(key).as_ref())?.as_s().ok().map(String::as_str)
    }

    /// Sets an entry of a map. Returns the length of the value that was replaced, if there was one.
    fn set_entry(&mut self, attribute: Attribute<Texts>, key: &str, value: &str) -> Option<usize> {
        let entries = self.item.0.entry(attribute.into()).or_insert_with(|| map(Map::new()));
        let Value::M(entries) = entries else { return None };
        let replaced = entries.insert(entry_name(key).into_owned(), text(value))?;
        Some(replaced.as_s().map_or(0, String::len))
    }

    fn set(&mut self, attribute: &str, value: Option<Value>) {
        match value {
            Some(value) => drop(self.item.0.insert(attribute.to_owned(), value)),
            None => drop(self.item.0.remove(attribute)),
        }
    }

    /// Returns the size of the document in bytes.
    pub(super) fn size(&self) -> usize {
        self.item.size()
    }

    /// Checks whether the document is larger than before.
    pub(super) fn grows(&self) -> bool {
        self.before.as_ref().is_none_or(|before| before.item().size() < self.item.size())
    }

    /// Checks whether the document differs from what was read.
    pub(super) fn is_changed(&self) -> bool {
        self.before.as_ref().is_none_or(|before| *before.item() != self.item)
    }

    /// Checks whether the document now has an assessment of its session, and had none before.
    pub(super) fn gains_session_assessment(&self) -> bool {
        judges_a_session(&self.item) && !self.before.as_ref().is_some_and(StoredTrace::judges_a_session)
    }

    /// Returns the trace's id.
    pub(super) fn trace(&self) -> &TraceId {
        &self.trace
    }

    /// Returns the document as it was read.
    pub(super) fn before(&self) -> Option<&StoredTrace> {
        self.before.as_ref()
    }

    /// Returns the item to write and the condition of the write. `mark` is the trace's mark, if
    /// this request has written it.
    pub(super) fn finish(&self, mark: Option<&PutMark>) -> (Item, Condition) {
        let edits = self.before.as_ref().map(StoredTrace::edits).or(self.awaited);
        let next = edits.map_or_else(|| i64::from(rand::rng().random::<u32>()) << 24, |edits| edits.saturating_add(1));
        let mut item = self.item.clone().with(EDITS, number(next));
        if let Some(put) = mark {
            item = item.with(MARKED_AT, number(put.at));
            match put.partition.shard {
                0 => drop(item.take(SHARD)),
                shard => item = item.with(SHARD, number(shard)),
            }
        }
        let condition = match edits {
            None => Condition::item_missing(),
            Some(edits) => Condition::Equals(EDITS.into(), number(edits)),
        };
        (item, condition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_fill_a_document_and_no_more() {
        let empty = TraceDraft::new(&TraceId::new(1), ExperimentId::DEFAULT, 5, TraceState::Ok);
        let most = empty.size() + 1_000;
        let keys: Vec<String> = (0..200_u32).map(|number| format!("k{}", number % 150)).collect();
        let values: Vec<String> = (0..200_usize).map(|number| "x".repeat(number * 7 % 23)).collect();
        let tags = || keys.iter().zip(&values).map(|(key, value)| (key.as_str(), value.as_str()));
        let (mut counted, mut measured) = (empty.clone(), empty);
        counted.set_tags_within(most, tags());
        for (key, value) in tags() {
            if measured.size() + key.len() + value.len() < most {
                measured.set_tag(key, value);
            }
        }
        assert_eq!(counted.item, measured.item);
        assert!((most - 30..=most).contains(&counted.size()), "{} of {most}", counted.size());
    }
}
