//! Traces, read from their documents.

use std::sync::Arc;

use key_schema::attributes::{Attribute, Text, TextSet};
use key_schema::{WideDigest, rows};
use mlflow_api::assessments::Assessment;
use mlflow_api::traces::{SESSION, TraceInfo};
use mlflow_api::{AssessmentId, ExperimentId, Result, TraceId};
use table::{Item, Value};

use crate::attributes::{
    ASSESSMENTS, CLIENT_REQUEST, DURATION, EDITS, EXPERIMENT, EXPIRES, IMPORTED, IN_BLOCK, IN_MARK, MARKED_AT,
    METADATA, PROMPTS, REQUEST, RESPONSE, RUNS, SHARD, START_TIME, STATE, TAGS,
};
use crate::param_and_tag_maps::entries;
use crate::unreadable_item::unreadable;

/// Value of [`IN_BLOCK`] in the pointer to a packed trace.
pub const POINTER: i64 = 1;

/// A trace as stored in its document. Cheap to clone.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredTrace {
    id: TraceId,
    experiment: ExperimentId,
    item: Arc<Item>,
    /// Whether this document was read from a block, because the table contains a pointer to it.
    is_behind_pointer: bool,
}

fn digest_of_mark(item: &Item) -> Option<WideDigest> {
    let digest = item.bytes(IN_MARK)?.try_into().ok()?;
    Some(WideDigest(u128::from_be_bytes(digest)))
}

impl StoredTrace {
    /// Reads a trace from its document.
    ///
    /// # Errors
    /// Returns an internal error if the document cannot be read, or is the stub of a trace that has
    /// not arrived yet or the pointer to a packed trace ([`TraceRow`](crate::TraceRow)).
    pub fn of(item: Item) -> Result<Self> {
        let id = item.key().as_ref().and_then(rows::Trace::parse).map(|row| row.trace);
        let experiment = item.get(EXPERIMENT);
        let is_other = item.has(EXPIRES) || item.get(IN_BLOCK) == Some(POINTER);
        let (Some(id), Some(experiment), false) = (id, experiment, is_other) else {
            return Err(unreadable(&item, "a trace"));
        };
        if item.has(IN_MARK) && digest_of_mark(&item).is_none() {
            return Err(unreadable(&item, "a trace"));
        }
        Ok(Self { id, experiment, item: Arc::new(item), is_behind_pointer: false })
    }

    /// Returns the same trace with another document.
    pub(crate) fn with_item(&self, item: Item, is_behind_pointer: bool) -> Self {
        Self { id: self.id.clone(), experiment: self.experiment, item: Arc::new(item), is_behind_pointer }
    }

    /// Returns the trace with another fingerprint of its import.
    pub(crate) fn with_import(&self, fingerprint: Value) -> Self {
        self.with_item(self.item.as_ref().clone().with(IMPORTED, fingerprint), self.is_behind_pointer)
    }

    /// Checks whether the table contains a pointer to the trace, and the document comes from a
    /// block.
    #[must_use]
    pub fn is_behind_pointer(&self) -> bool {
        self.is_behind_pointer
    }

    /// Returns the trace's ID.
    #[must_use]
    pub fn id(&self) -> &TraceId {
        &self.id
    }

    /// Returns the trace's experiment.
    #[must_use]
    pub fn experiment(&self) -> ExperimentId {
        self.experiment
    }

    /// Returns the start time in ms.
    #[must_use]
    pub fn request_time(&self) -> i64 {
        self.item.get(START_TIME).unwrap_or_default()
    }

    /// Returns the number of the partition of traces, among those of the trace's day, that contains
    /// the trace's mark.
    #[must_use]
    pub fn shard(&self) -> u32 {
        self.item.get(SHARD).unwrap_or_default()
    }

    /// Returns the time in ms at which the mark was last written, according to the document. The
    /// mark itself may be newer.
    #[must_use]
    pub fn marked_at(&self) -> i64 {
        self.item.get(MARKED_AT).unwrap_or_default()
    }

    /// Returns the number of times that the document was written.
    #[must_use]
    pub fn edits(&self) -> i64 {
        self.item.get(EDITS).unwrap_or_default()
    }

    /// Returns the digest in the key of the mark that has the spans of the export that created the
    /// trace. `None` if all spans are elsewhere.
    #[must_use]
    pub fn in_mark(&self) -> Option<WideDigest> {
        digest_of_mark(&self.item)
    }

    /// Returns the ID that the client gave the request.
    #[must_use]
    pub fn client_request(&self) -> Option<&str> {
        self.item.get(CLIENT_REQUEST)
    }

    /// Returns the trace's document.
    #[must_use]
    pub fn item(&self) -> &Item {
        &self.item
    }

    /// Returns the runs that the trace was linked to, without the run in its metadata.
    #[must_use]
    pub fn runs(&self) -> Vec<String> {
        texts(&self.item, RUNS)
    }

    /// Returns the prompt versions that the trace was linked to, in the form `name/version`.
    #[must_use]
    pub fn prompts(&self) -> Vec<String> {
        texts(&self.item, PROMPTS)
    }

    /// Checks whether an assessment in the document may be about the trace's session. False
    /// positives are possible.
    #[must_use]
    pub fn judges_a_session(&self) -> bool {
        judges_a_session(&self.item)
    }

    /// Returns one of the trace's assessments.
    ///
    /// # Errors
    /// Returns an internal error if it cannot be read.
    pub fn assessment(&self, id: &AssessmentId) -> Result<Option<Assessment>> {
        let stored = self
            .item
            .map(ASSESSMENTS)
            .and_then(|all| all.get(crate::param_and_tag_maps::entry_name(id.as_str()).as_ref()));
        let Some(stored) = stored.and_then(|stored| stored.as_s().ok()) else { return Ok(None) };
        let read = Assessment::from_stored(stored).ok_or_else(|| unreadable(&self.item, "an assessment"))?;
        Ok(Some(read))
    }

    /// Returns all that the document contains, with assessments in the order of their creation.
    ///
    /// # Errors
    /// Returns an internal error if it cannot be read.
    pub fn info(&self) -> Result<TraceInfo> {
        let item = &self.item;
        let owned = |attribute: Attribute<Text>| item.get(attribute).map(str::to_owned);
        let state = item.get(STATE);
        let mut assessments = Vec::new();
        for (id, stored) in entries(item, ASSESSMENTS, &[])? {
            let read = AssessmentId::parse(&id).zip(Assessment::from_stored(&stored));
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

/// Checks whether an assessment in a document may be about the trace's session, even before the
/// document is written. False positives are possible.
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
