//! A batch of the stream, sorted by the kind of change.

use std::collections::HashMap;

use crate::trace_packing::{MarkTimes, PackingScope};
use crate::webhook_events::AnnouncedEvent;
use entities::attributes::{ALL, Attribute, FROM, HOOK, NAME, START_TIME, Scalar, TO_PACK, WORKSPACE};
use entities::{DocumentAttributes, IndexingState, RunLocation, workspace_named};
use key_schema::definition::Index;
use key_schema::{Key, rows};
use mlflow_api::{EvaluationDatasetId, ExperimentId, Workspace};
use serde::Deserialize;
use serde_json::Value;
use trace_blocks::{TraceKey, TracePartition, is_mark};

use crate::schedule::Urgency;

/// A batch as Lambda delivers it. The records are parsed one by one, so that the other records are
/// processed even if one of them is unreadable.
#[derive(Clone, Debug, Default)]
pub struct StreamBatch {
    /// Records, in the order of the stream.
    pub records: Vec<Value>,
}

/// The input of the function: either a batch of the stream, or an event of the schedule. The latter
/// has no records.
#[derive(Clone, Debug, Deserialize)]
pub struct IndexerEvent {
    #[serde(rename = "Records")]
    records: Option<Vec<Value>>,
}

impl IndexerEvent {
    /// Returns the batch, or `None` if the event comes from the schedule.
    #[must_use]
    pub fn batch(self) -> Option<StreamBatch> {
        self.records.map(|records| StreamBatch { records })
    }
}

/// The subject of a record: what has changed, or what has to be done.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RecordSubject {
    /// A changed run.
    Run(RunLocation),
    /// A deleted run, and its start time in ms if it is known.
    RemovedRun(RunLocation, Option<i64>),
    /// A deleted experiment, with the workspace and the name that it had.
    RemovedExperiment(ExperimentId, Workspace, String),
    /// A deleted evaluation dataset.
    RemovedDataset(EvaluationDatasetId),
    /// A partition in which a trace was marked.
    MarkedTraces(TracePartition),
    /// A partition of traces to be packed.
    TracesToPack(TracePartition, PackingScope),
    /// An event for webhooks.
    WebhookEvent(AnnouncedEvent),
}

/// The work of a batch.
#[derive(Debug, Default)]
pub(crate) struct BatchWork {
    /// Subjects, in the order of their first record, each with the sequence number of this record.
    subjects: Vec<(RecordSubject, String)>,
    /// When each run has to be indexed, according to its records.
    urgencies: HashMap<RunLocation, Urgency>,
    positions: HashMap<RecordSubject, usize>,
    /// Times at which traces were marked.
    pub(crate) marked: MarkTimes,
    /// Sequence numbers of unreadable records.
    pub(crate) unreadable: Vec<String>,
}

impl BatchWork {
    pub(crate) fn of(batch: StreamBatch) -> Self {
        let mut work = Self::default();
        for record in batch.records {
            let number = record.pointer("/dynamodb/SequenceNumber").and_then(Value::as_str).unwrap_or_default();
            match subject(&record) {
                Ok(Some(subject)) => {
                    if let RecordSubject::Run(at) = &subject {
                        let known = work.urgencies.entry(at.clone()).or_default();
                        *known = known.and(urgency(&record));
                    }
                    if let RecordSubject::MarkedTraces(partition) = &subject {
                        work.marked.add(*partition, &record);
                    }
                    work.add(subject, number);
                }
                Ok(None) => {}
                Err(what) => {
                    tracing::error!(number, what, "a record of the stream cannot be read");
                    // A record without a sequence number is left out, because the response
                    // identifies records by number, and an empty identifier would repeat the whole
                    // batch.
                    work.unreadable.extend((!number.is_empty()).then(|| number.to_owned()));
                }
            }
        }
        work
    }

    fn add(&mut self, subject: RecordSubject, number: &str) {
        if !self.positions.contains_key(&subject) {
            self.positions.insert(subject.clone(), self.subjects.len());
            self.subjects.push((subject, number.to_owned()));
        }
    }

    /// Returns the sequence number of the first record about a subject.
    pub(crate) fn first_record(&self, subject: &RecordSubject) -> Option<String> {
        self.positions.get(subject).and_then(|place| self.subjects.get(*place)).map(|(_, number)| number.clone())
    }

    /// Returns the sequence number of the first record whose subject passes the given check.
    pub(crate) fn first_record_of(&self, is_meant: impl Fn(&RecordSubject) -> bool) -> Option<String> {
        self.subjects.iter().find(|(subject, _)| is_meant(subject)).map(|(_, number)| number.clone())
    }

    pub(crate) fn changed_runs(&self) -> impl Iterator<Item = (&RunLocation, Urgency)> {
        self.subjects.iter().filter_map(|(subject, _)| match subject {
            RecordSubject::Run(at) => Some((at, self.urgencies.get(at).copied().unwrap_or_default())),
            _ => None,
        })
    }

    pub(crate) fn removed(&self) -> impl Iterator<Item = &RecordSubject> {
        let subjects = self.subjects.iter().map(|(subject, _)| subject);
        let is_removed = |subject: &&RecordSubject| {
            matches!(
                subject,
                RecordSubject::RemovedRun(..) | RecordSubject::RemovedExperiment(..) | RecordSubject::RemovedDataset(_)
            )
        };
        subjects.filter(is_removed)
    }

    /// Returns the partitions in which traces were marked.
    pub(crate) fn marked_traces(&self) -> impl Iterator<Item = TracePartition> {
        self.subjects.iter().filter_map(|(subject, _)| match subject {
            RecordSubject::MarkedTraces(partition) => Some(*partition),
            _ => None,
        })
    }

    /// Returns the events for webhooks, in the order of the stream.
    pub(crate) fn webhook_events(&self) -> impl Iterator<Item = &AnnouncedEvent> {
        self.subjects.iter().filter_map(|(subject, _)| match subject {
            RecordSubject::WebhookEvent(event) => Some(event),
            _ => None,
        })
    }

    /// Returns the partitions of traces to be packed.
    pub(crate) fn traces_to_pack(&self) -> impl Iterator<Item = (TracePartition, PackingScope)> {
        self.subjects.iter().filter_map(|(subject, _)| match subject {
            RecordSubject::TracesToPack(partition, scope) => Some((*partition, scope.clone())),
            _ => None,
        })
    }
}

/// Returns the subject of a record, or `None` if the record results from a write of the indexer
/// itself and nothing has to be done.
fn subject(record: &Value) -> Result<Option<RecordSubject>, &'static str> {
    let change = record.get("dynamodb").ok_or("it has no change")?;
    let keys = change.get("Keys").ok_or("it has no keys")?;
    let part = |name: &str| keys.get(name)?.get("S")?.as_str().map(str::to_owned);
    let key = Key { pk: part("PK").ok_or("it has no PK")?, sk: part("SK").ok_or("it has no SK")? };
    match record.get("eventName").and_then(Value::as_str).ok_or("it has no name")? {
        "REMOVE" => {
            let image = Image(change.get("OldImage").unwrap_or(&Value::Null));
            let workspace = workspace_named(image.get(WORKSPACE)).map_err(|_| "its workspace has no name")?;
            Ok(removed(&key, workspace, image.get(NAME).unwrap_or_default(), image.get(START_TIME)))
        }
        "INSERT" | "MODIFY" => {
            let image = Image(change.get("NewImage").ok_or("it has no new image")?);
            if image.has(HOOK) {
                let number = change.get("SequenceNumber").and_then(Value::as_str).ok_or("it has no number")?;
                let event = AnnouncedEvent::of(&key, image.0, number).ok_or("it is no event for webhooks")?;
                return Ok(Some(RecordSubject::WebhookEvent(event)));
            }
            if image.has(TO_PACK) {
                return Ok(traces_subject(&key, &image));
            }
            let state = IndexingState::of(&image);
            // If a run keeps its mark when the indexer writes its document, the resulting record is
            // not a change of the run.
            Ok(if state.is_marked && !state.was_seen() { changed_subject(&key) } else { None })
        }
        _ => Err("it has an unknown name"),
    }
}

/// Returns when a run has to be indexed, according to one record. The run's main document states
/// whether the run has ended, and each of its documents states from when on the run may be indexed.
fn urgency(record: &Value) -> Urgency {
    let image = record.pointer("/dynamodb/NewImage");
    image.map_or_else(Urgency::default, |image| Urgency::of(&IndexingState::of(&Image(image))))
}

/// The content of an item in a record of the stream.
struct Image<'a>(&'a Value);

impl DocumentAttributes for Image<'_> {
    fn get<T: Scalar + ?Sized>(&self, attribute: Attribute<T>) -> Option<T::Value<'_>> {
        T::parsed(self.0.get(attribute.name())?.get(T::KIND.code)?.as_str()?)
    }

    fn has<T: ?Sized>(&self, attribute: Attribute<T>) -> bool {
        self.0.get(attribute.name()).is_some()
    }

    fn is_in(&self, index: &Index) -> bool {
        self.0.get(index.sort).is_some()
    }
}

fn changed_subject(key: &Key) -> Option<RecordSubject> {
    let row = rows::Run::parse(key)?;
    Some(RecordSubject::Run(RunLocation { experiment: row.experiment, run: row.run }))
}

/// Returns the subject of a record about a trace's mark, or about the row that requests packing.
fn traces_subject(key: &Key, image: &Image<'_>) -> Option<RecordSubject> {
    let partition = TracePartition::of_key(key)?;
    if is_mark(key) {
        return Some(RecordSubject::MarkedTraces(partition));
    }
    let scope = PackingScope { from: image.get(FROM).and_then(TraceKey::parse), is_all: image.has(ALL) };
    Some(RecordSubject::TracesToPack(partition, scope))
}

fn removed(key: &Key, workspace: Workspace, name: &str, started: Option<i64>) -> Option<RecordSubject> {
    if let Some(row) = rows::Experiment::parse(key) {
        return Some(RecordSubject::RemovedExperiment(row.experiment, workspace, name.to_owned()));
    }
    if let Some(row) = rows::EvaluationDataset::parse(key) {
        return Some(RecordSubject::RemovedDataset(row.dataset));
    }
    let row = rows::Run::parse(key)?;
    Some(RecordSubject::RemovedRun(RunLocation { experiment: row.experiment, run: row.run }, started))
}

#[cfg(test)]
mod tests {
    use key_schema::IndexEntry;
    use key_schema::index::RunsChanged;
    use serde_json::json;

    use super::*;

    fn record(name: &str, sk: &str, number: usize) -> Value {
        json!({
            "eventName": name,
            "dynamodb": {
                "Keys": { "PK": { "S": "EXP#1" }, "SK": { "S": sk } },
                "NewImage": { (RunsChanged::INDEX.sort): { "S": "x" } },
                "SequenceNumber": number.to_string(),
            },
        })
    }

    #[test]
    fn several_changes_of_a_run_are_one() {
        let records = [
            record("MODIFY", "IX#run#M#loss", 1),
            record("INSERT", "R#a", 2),
            record("MODIFY", "R#b", 3),
            record("MODIFY", "R#a#TAG#t", 4),
            record("MODIFY", "R#a", 6),
            record("REMOVE", "R#c", 7),
            record("REMOVE", "R#c#TAG#t", 8),
            record("REMOVE", "E#META", 9),
        ];
        let work = BatchWork::of(StreamBatch { records: records.into() });
        let subjects: Vec<_> = work.subjects.iter().map(|(_, number)| number.as_str()).collect();
        assert_eq!(subjects, ["2", "3", "7", "9"]);
        assert_eq!(work.changed_runs().count(), 2);
        assert!(work.unreadable.is_empty());
    }

    #[test]
    fn records_say_when_their_run_is_to_be_indexed() {
        let of = |images: &[Value]| {
            let records = images.iter().enumerate().map(|(number, image)| {
                let mut record = record("MODIFY", "R#a", number);
                for (name, value) in image.as_object().unwrap() {
                    record["dynamodb"]["NewImage"][name] = value.clone();
                }
                record
            });
            let work = BatchWork::of(StreamBatch { records: records.collect() });
            let urgencies: Vec<_> = work.changed_runs().map(|(_, urgency)| urgency).collect();
            urgencies[0]
        };
        let status = |status: &str| json!({ "status": { "S": status } });
        let due = |due: i64| json!({ "due": { "N": due.to_string() } });
        assert_eq!(of(&[status("RUNNING"), json!({})]), Urgency::default());
        assert_eq!(of(&[due(7), due(9), due(8)]), Urgency { now: false, due: Some(9) });
        assert_eq!(of(&[status("SCHEDULED"), due(9), status("KILLED")]), Urgency { now: true, due: Some(9) });
        for asked in ["rebuild", "overdue"] {
            assert!(of(&[status("RUNNING"), due(9), json!({ asked: { "N": "1" } })]).now, "{asked}");
        }
    }

    #[test]
    fn an_event_without_records_is_no_batch() {
        let batch =
            |event: Value| serde_json::from_value::<IndexerEvent>(event).unwrap().batch().map(|batch| batch.records);
        assert_eq!(batch(json!({ "Records": [{}] })), Some(vec![json!({})]));
        assert_eq!(batch(json!({ "Records": [] })), Some(Vec::new()));
        assert_eq!(batch(json!({ "source": "aws.events", "detail-type": "Scheduled Event" })), None);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let mut unmarked = record("MODIFY", "R#a", 1);
        unmarked["dynamodb"]["NewImage"] = json!({});
        let mut no_key = record("MODIFY", "R#a", 2);
        no_key["dynamodb"]["Keys"] = json!({ "PK": { "S": "EXP#1" } });
        let mut no_image = record("INSERT", "R#a", 3);
        no_image["dynamodb"].as_object_mut().unwrap().remove("NewImage");
        let unknown = record("EXPLODE", "R#a", 4);
        let records = vec![unmarked, no_key, no_image, unknown, json!(7)];
        let work = BatchWork::of(StreamBatch { records });
        assert_eq!(work.unreadable, ["2", "3", "4"]);
        assert!(work.subjects.is_empty());
    }
}
