//! Spans of an export that creates a trace. They are stored in the trace's mark, which costs two write
//! units less per trace than a separate item (`docs/adr/0093-spans-in-marks.md`).
//!
//! The mark is written before it is known whether the trace exists. If the trace does not exist, its
//! new document refers to the mark. Otherwise, the spans are stored under the trace's key, and the mark
//! has no effect.

use entities::StoredTrace;
use key_schema::WideDigest;
use mlflow_api::Result;
use table::Item;
use trace_blocks::mark_with_spans;

use super::document_draft::TraceDraft;
use super::mark::{PutMark, reliable_since};
use super::store::Store;

/// Maximum size in bytes of spans that are stored in a mark. Every search that reads the mark also
/// reads the spans.
const MAX_BYTES: usize = 4 << 10;

/// Spans that a request has written in a mark.
#[derive(Debug)]
pub(super) struct MarkedSpans {
    mark: PutMark,
    export: WideDigest,
    /// The item that stores the spans under the trace's key.
    spans: Item,
}

impl MarkedSpans {
    /// Returns the spans of an export, and the mark with spans to write, if the spans are small enough.
    /// `items` are the items that would store the spans under the trace's key, and `bytes` is their size
    /// if sizes are counted.
    pub(super) fn of(marks: &[PutMark], items: &[Item], bytes: Option<usize>) -> Option<(Self, Item)> {
        let ([mark], [spans]) = (marks, items) else { return None };
        if spans.size() > MAX_BYTES {
            return None;
        }
        let (export, item) = mark_with_spans(mark.item_with(bytes), &mark.partition, &mark.place, spans)?;
        Some((Self { mark: mark.clone(), export, spans: spans.clone() }, item))
    }

    /// Returns the item that stores the spans under the trace's key.
    pub(super) fn item(&self) -> Item {
        self.spans.clone()
    }

    /// Makes the new document of a trace refer to the mark, and returns the mark. Returns `None` if that
    /// is not possible. Has to be called immediately before the document is written.
    pub(super) fn refer(&self, draft: &mut TraceDraft) -> Option<PutMark> {
        if !self.may_belong_to(draft) {
            return None;
        }
        draft.set_in_mark(self.export);
        Some(self.mark.clone())
    }

    /// Checks whether the document of a new trace may refer to the mark.
    fn may_belong_to(&self, draft: &TraceDraft) -> bool {
        let PutMark { partition, place, at, .. } = &self.mark;
        let is_there = partition.experiment == draft.experiment() && place.time == draft.time();
        // A mark that is too old may be deleted before the document is written, because the process
        // may have been suspended.
        draft.before().is_none() && is_there && *at >= reliable_since()
    }
}

impl Store {
    /// Stores spans under the key of an existing trace. Also puts a mark without spans if the trace's own
    /// mark is more than a minute old, because archivers detect changes by marks without spans. Takes
    /// one request.
    pub(super) async fn trace_store_spans(
        &self,
        spans: &MarkedSpans,
        trace: &StoredTrace,
        marked: &mut Vec<PutMark>,
    ) -> Result<()> {
        // Spans for a trace of another experiment are going to be rejected.
        if trace.experiment() != spans.mark.partition.experiment {
            return Ok(());
        }
        let is_marked = |put: &PutMark| put.at >= reliable_since() && put.is_of(trace);
        let needs_mark = trace.marked_at() < reliable_since() && !marked.iter().any(is_marked);
        let new = needs_mark.then(|| PutMark::of(trace));
        // The packer deletes a mark with spans that is not used only if there is another mark.
        let elsewhere = (!spans.mark.is_of(trace)).then(|| spans.mark.clone().of_existing());
        let items = new.iter().chain(&elsewhere).map(PutMark::item).chain([spans.spans.clone()]);
        self.put_with_marks(items.collect()).await?;
        marked.extend(new);
        Ok(())
    }
}
