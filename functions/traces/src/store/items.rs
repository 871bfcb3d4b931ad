//! The items of whole traces that did not arrive in requests of clients, such as imported traces.

use entities::attributes::EDITS;
use entities::{StoredTrace, now_ms};
use key_schema::rows;
use mlflow_api::Result;
use mlflow_api::traces::TraceInfo;
use spans::Span;
use table::{Item, number};
use trace_blocks::{TraceKey, TracePartition, day_of, span_items};

use super::document_draft::TraceDraft;
use super::mark::{PutMark, shard_of};

/// The content of a trace with everything that belongs to it.
#[derive(Clone, Copy, Debug)]
pub struct WholeTraceContent<'a> {
    /// Everything except spans and links. It is stored as it is.
    pub info: &'a TraceInfo,
    /// Runs that the trace is linked to.
    pub runs: &'a [String],
    /// Versions of prompts that the trace is linked to, as `name/version`.
    pub prompts: &'a [String],
    /// The spans.
    pub spans: &'a [Span],
}

/// The document of a trace, and its marks.
#[derive(Clone, Debug)]
pub struct TraceHead {
    /// The mark at the trace's position in the time order and, if it replaces a trace at another
    /// position, the mark at that position. The marks are written before the document, which must
    /// follow within a minute.
    pub marks: Vec<Item>,
    /// The document.
    pub document: Item,
}

impl WholeTraceContent<'_> {
    fn draft(&self) -> TraceDraft {
        let info = self.info;
        let mut draft = TraceDraft::new(&info.id, info.experiment, info.request_time, info.state);
        draft.set_duration(info.duration);
        if info.client_request_id.is_some() {
            draft.set_client_request(info.client_request_id.as_deref());
        }
        if let Some(preview) = &info.request_preview {
            draft.set_request(preview);
        }
        if let Some(preview) = &info.response_preview {
            draft.set_response(preview);
        }
        for (key, value) in &info.tags {
            draft.set_tag(key, value);
        }
        for (key, value) in &info.metadata {
            draft.set_metadata(key, value);
        }
        for (id, assessment) in &info.assessments {
            draft.set_assessment(id, assessment);
        }
        draft.set_links(self.runs, self.prompts);
        draft
    }

    /// Returns the size of the document in bytes, without the attributes that the server adds.
    #[must_use]
    pub fn document_size(&self) -> usize {
        self.draft().size()
    }

    /// Returns the rows that have to be written before the marks: the spans, and a row that is
    /// needed if the trace may have an assessment of its session.
    ///
    /// # Errors
    /// Returns an error if the spans cannot be packed.
    pub fn rows(&self) -> Result<Vec<Item>> {
        let (trace, experiment) = (&self.info.id, self.info.experiment);
        let mut rows = if self.spans.is_empty() {
            Vec::new()
        } else {
            span_items(experiment, trace, self.spans, false, now_ms())?
        };
        if self.draft().gains_session_assessment() {
            rows.push(Item::new(rows::TraceOfSession::key(&experiment, trace)));
        }
        Ok(rows)
    }

    /// Returns the document and the marks, which contain the current time. The row of the trace's
    /// day must exist. `shards` is the number of the day's partitions. `replaced` is the existing
    /// trace that this one replaces.
    #[must_use]
    pub fn head(&self, shards: u32, replaced: Option<&StoredTrace>) -> TraceHead {
        let (trace, experiment, time) = (&self.info.id, self.info.experiment, self.info.request_time);
        let place = TraceKey { time, trace: trace.clone() };
        // A trace whose position does not change stays in its partition, because one of the
        // partition's blocks may contain it.
        let kept = replaced.map(|replaced| (TracePartition::of(replaced), TraceKey::of(replaced)));
        let partition = match &kept {
            Some((partition, known)) if partition.experiment == experiment && *known == place => *partition,
            _ => TracePartition { experiment, day: day_of(time), shard: shard_of(trace, shards) },
        };
        let mark = PutMark::now(partition, place);
        let mut marks = vec![mark.item()];
        marks.extend(replaced.map(PutMark::of).filter(|old| !mark.is_at(old)).map(|old| old.item()));
        let (mut document, _) = self.draft().finish(Some(&mark));
        if let Some(replaced) = replaced {
            document = document.with(EDITS, number(replaced.edits().saturating_add(1)));
        }
        TraceHead { marks, document }
    }
}
