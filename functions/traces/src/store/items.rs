//! The items of a whole trace, which did not arrive in requests of clients.

use entities::StoredTrace;
use entities::attributes::EDITS;
use key_schema::rows;
use mlflow_api::Result;
use mlflow_api::traces::TraceInfo;
use spans::Span;
use table::{Item, number};
use trace_blocks::{TraceKey, TracePartition, day_of};

use super::document_draft::TraceDraft;
use super::mark::{PutMark, shard_of};
use super::span_items;

/// A trace with everything that belongs to it.
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

/// The items of a trace, in the order in which they have to be written. The day of the trace must
/// exist before.
#[derive(Clone, Debug)]
pub struct TraceItems {
    /// The spans, and the row that tells that the trace may have an assessment of its session.
    pub rows: Vec<Item>,
    /// The mark, and the mark at the place where the trace was before. The document must follow
    /// within a minute.
    pub marks: Vec<Item>,
    /// The document.
    pub document: Item,
}

impl WholeTraceContent<'_> {
    /// Returns the items of the trace, with marks as of now. `shards` is the number of partitions
    /// of its day, and `replaced` is the trace that it replaces.
    ///
    /// # Errors
    /// Spans that are too large to be stored.
    pub fn items(&self, shards: u32, replaced: Option<&StoredTrace>) -> Result<TraceItems> {
        let info = self.info;
        let (trace, experiment, time) = (&info.id, info.experiment, info.request_time);
        let mut draft = TraceDraft::new(trace, experiment, time, info.state);
        draft.set_duration(info.duration);
        draft.set_client_request(info.client_request_id.as_deref());
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
        let mut rows =
            if self.spans.is_empty() { Vec::new() } else { span_items::items(experiment, trace, self.spans, false)? };
        if draft.gains_session_assessment() {
            rows.push(Item::new(rows::TraceOfSession::key(&experiment, trace)));
        }
        let place = TraceKey { time, trace: trace.clone() };
        // A trace that stays at its place keeps its partition, where a block may have it.
        let kept = replaced.map(|replaced| (TracePartition::of(replaced), TraceKey::of(replaced)));
        let partition = match &kept {
            Some((partition, known)) if partition.experiment == experiment && *known == place => *partition,
            _ => TracePartition { experiment, day: day_of(time), shard: shard_of(trace, shards) },
        };
        let mark = PutMark::now(partition, place);
        let mut marks = vec![mark.item()];
        marks.extend(replaced.map(PutMark::of).filter(|old| !mark.is_at(old)).map(|old| old.item()));
        let (mut document, _) = draft.finish(Some(&mark));
        if let Some(replaced) = replaced {
            document = document.with(EDITS, number(replaced.edits().saturating_add(1)));
        }
        Ok(TraceItems { rows, marks, document })
    }
}
