//! Traces from their documents.

use std::collections::HashMap;
use std::sync::Arc;

use key_schema::attributes::{Attribute, Text, TextSet};
use key_schema::{Key, rows};
use mlflow_api::assessments::Assessment;
use mlflow_api::traces::{SESSION, TraceInfo};
use mlflow_api::{AssessmentId, ExperimentId, Result, TraceId};
use table::{Item, Table};

use crate::attributes::{
    ASSESSMENTS, CLIENT_REQUEST, DURATION, EDITS, EXPERIMENT, EXPIRES, MARKED_AT, METADATA, PROMPTS, REQUEST, RESPONSE,
    RUNS, SHARD, START_TIME, STATE, TAGS,
};
use crate::maps::entries;
use crate::unreadable::unreadable;

/// A trace as its document has it. Cheap to clone.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredTrace {
    id: TraceId,
    experiment: ExperimentId,
    item: Arc<Item>,
}

impl StoredTrace {
    /// The trace of a document.
    ///
    /// # Errors
    /// An internal one, if it cannot be read, or is the stub of a trace that has not come ([`TraceItem`](crate::TraceItem)).
    pub fn of(item: Item) -> Result<Self> {
        let id = item.key().as_ref().and_then(rows::Trace::parse).map(|row| row.trace);
        let experiment = item.get(EXPERIMENT);
        let (Some(id), Some(experiment), false) = (id, experiment, item.has(EXPIRES)) else {
            return Err(unreadable(&item, "a trace"));
        };
        Ok(Self { id, experiment, item: Arc::new(item) })
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &TraceId {
        &self.id
    }

    /// Its experiment.
    #[must_use]
    pub fn experiment(&self) -> ExperimentId {
        self.experiment
    }

    /// When it began, in ms.
    #[must_use]
    pub fn request_time(&self) -> i64 {
        self.item.get(START_TIME).unwrap_or_default()
    }

    /// In which of its day's partitions its mark is.
    #[must_use]
    pub fn shard(&self) -> u32 {
        self.item.get(SHARD).unwrap_or_default()
    }

    /// When its mark was put, in ms: perhaps later, but not earlier.
    #[must_use]
    pub fn marked_at(&self) -> i64 {
        self.item.get(MARKED_AT).unwrap_or_default()
    }

    /// How often its document was written.
    #[must_use]
    pub fn edits(&self) -> i64 {
        self.item.get(EDITS).unwrap_or_default()
    }

    /// The client's id of the request.
    #[must_use]
    pub fn client_request(&self) -> Option<&str> {
        self.item.get(CLIENT_REQUEST)
    }

    /// Its document.
    #[must_use]
    pub fn item(&self) -> &Item {
        &self.item
    }

    /// The runs that it was linked to, without that of its metadata.
    #[must_use]
    pub fn runs(&self) -> Vec<String> {
        texts(&self.item, RUNS)
    }

    /// The prompt versions that it was linked to, as `name/version`.
    #[must_use]
    pub fn prompts(&self) -> Vec<String> {
        texts(&self.item, PROMPTS)
    }

    /// Whether an assessment in the document is about the trace's session. It may turn out to be about none.
    #[must_use]
    pub fn judges_a_session(&self) -> bool {
        judges_a_session(&self.item)
    }

    /// One of its assessments.
    ///
    /// # Errors
    /// An internal one, if it cannot be read.
    pub fn assessment(&self, id: &AssessmentId) -> Result<Option<Assessment>> {
        let stored = self.item.map(ASSESSMENTS).and_then(|all| all.get(crate::maps::entry_name(id.as_str()).as_ref()));
        let Some(stored) = stored.and_then(|stored| stored.as_s().ok()) else { return Ok(None) };
        let read = Assessment::restore(stored).ok_or_else(|| unreadable(&self.item, "an assessment"))?;
        Ok(Some(read))
    }

    /// All that its document says, assessments in the order in which they were made.
    ///
    /// # Errors
    /// An internal one, if it cannot be read.
    pub fn info(&self) -> Result<TraceInfo> {
        let item = &self.item;
        let owned = |attribute: Attribute<Text>| item.get(attribute).map(str::to_owned);
        let state = item.get(STATE);
        let mut assessments = Vec::new();
        for (id, stored) in entries(item, ASSESSMENTS, &[])? {
            let read = AssessmentId::parse(&id).zip(Assessment::restore(&stored));
            assessments.push(read.ok_or_else(|| unreadable(item, "an assessment"))?);
        }
        assessments.sort_by(|(one, a), (other, b)| a.created.cmp(&b.created).then_with(|| one.cmp(other)));
        Ok(TraceInfo {
            id: self.id.clone(),
            experiment: self.experiment,
            request_time: self.request_time(),
            duration: item.get(DURATION),
            state: state.ok_or_else(|| unreadable(item, "the state of a trace"))?,
            client_request_id: owned(CLIENT_REQUEST),
            request_preview: owned(REQUEST),
            response_preview: owned(RESPONSE),
            metadata: entries(item, METADATA, &[])?,
            tags: entries(item, TAGS, &[])?,
            assessments,
        })
    }
}

/// The same of a document that is not written yet.
#[must_use]
pub fn judges_a_session(document: &Item) -> bool {
    let mut assessments = document.map(ASSESSMENTS).into_iter().flat_map(|assessments| assessments.values());
    assessments.any(|stored| stored.as_s().is_ok_and(|json| json.contains(SESSION)))
}

pub(crate) fn texts(item: &Item, attribute: Attribute<TextSet>) -> Vec<String> {
    let mut texts: Vec<_> =
        item.elements(attribute).iter().filter_map(|bytes| String::from_utf8(bytes.as_ref().to_vec()).ok()).collect();
    texts.sort_unstable();
    texts
}

/// Those of these traces that are there, not those that are awaited. One request per hundred; a read unit per 4 KB of each.
pub async fn read_traces(table: &Table, ids: &[&TraceId]) -> Result<HashMap<TraceId, StoredTrace>> {
    let keys: Vec<Key> = ids.iter().map(|id| rows::Trace::key(id)).collect();
    let items: Vec<Item> = if let [key] = keys.as_slice() {
        // For one, the request that DynamoDB answers fastest.
        table.get(key).await?.into_iter().collect()
    } else {
        table.get_many(&keys).await?.into_values().collect()
    };
    // A stub is not the trace.
    let documents = items.into_iter().filter(|item| !item.has(EXPIRES));
    documents.map(|item| StoredTrace::of(item).map(|trace| (trace.id.clone(), trace))).collect()
}
