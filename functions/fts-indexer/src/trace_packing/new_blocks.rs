//! Creation of new blocks from marks at positions that are in the range of no block.

use std::collections::HashSet;

use table::Result;
use trace_blocks::{ArchivedGroups, PackedTrace, TraceKey, TraceToPack};

use crate::trace_packing::block_writer::{BlockContent, ExperimentStatus};
use crate::trace_packing::marks::Mark;
use crate::trace_packing::span_reader::ReadSpans;
use crate::trace_packing::trace_documents::LiveTrace;
use crate::trace_packing::{Packer, block_sizes};

/// Number of marks whose documents are read at a time.
const BATCH_SIZE: usize = 100;

/// The result of packing marks into new blocks.
#[derive(Debug, Default)]
pub(super) struct AppendResult {
    /// Marks that are too few to fill a block, oldest first.
    pub(super) left: Vec<Mark>,
    /// Time in ms within which some marks have to be checked again.
    pub(super) recheck_within: Option<i64>,
    /// Whether the experiment was deleted in the meantime.
    pub(super) is_over: bool,
    /// Position of the oldest mark that was not processed, either because the pass ran out of time,
    /// or because the mark has to be processed together with one for which time ran out.
    pub(super) resume_at: Option<TraceKey>,
}

impl Packer<'_> {
    /// Creates blocks from marks, given oldest first. Neither their positions nor the positions
    /// between them may be in the range of a block. Marks that are no longer valid are deleted.
    pub(super) async fn append(&self, marks: &[Mark]) -> Result<AppendResult> {
        let (mut live, mut appended): (Vec<LiveTrace>, _) = (Vec::new(), AppendResult::default());
        for (portion, marks) in marks.chunks(BATCH_SIZE).enumerate() {
            if portion > 0 && self.begin.age() > self.thresholds.max_duration {
                appended.resume_at = marks.first().map(|mark| mark.place.clone());
                break;
            }
            let documents = self.documents(marks).await?;
            self.unmark(documents.dead).await?;
            for mark in &documents.packed {
                tracing::error!(trace = mark.place.trace.as_str(), "no block covers the place of a packed trace");
            }
            appended.recheck_within = appended.recheck_within.into_iter().chain(documents.recheck_within).min();
            live.extend(documents.live);
            loop {
                let count =
                    block_sizes::count_fitting(live.iter().map(|trace| trace.packed_bytes), self.thresholds.max_traces);
                // If the last block is not full, more traces are read before it is written.
                if live.len() <= count && count < self.thresholds.max_traces {
                    break;
                }
                if !self.create(live.drain(..count.min(live.len())).collect()).await? {
                    appended.is_over = true;
                    return Ok(appended);
                }
            }
        }
        if live.len() >= self.thresholds.min_new_marks.max(1) {
            appended.is_over = !self.create(live).await?;
        } else {
            appended.left = live.into_iter().map(|trace| trace.mark).collect();
            let oldest = appended.left.first().map(|mark| mark.place.clone());
            appended.resume_at = appended.resume_at.take().map(|rest| oldest.unwrap_or(rest));
        }
        Ok(appended)
    }

    /// Creates a block from traces, given oldest first, and deletes their marks. The traces must
    /// fit into one block. Returns whether the experiment is still active. If it is not, the block
    /// is deleted again, because the process that removes the experiment may already have searched
    /// for blocks.
    async fn create(&self, live: Vec<LiveTrace>) -> Result<bool> {
        let Some(end) = live.first().map(|oldest| oldest.mark.place.clone()) else { return Ok(true) };
        let spans = self.spans(live.iter().map(LiveTrace::with_marked_spans).collect()).await?;
        let (mut marks, mut traces, mut packed) = (Vec::new(), Vec::new(), Vec::new());
        for (LiveTrace { mark, trace, .. }, read) in live.into_iter().zip(spans) {
            let Some(ReadSpans { spans, stored }) = read else { continue };
            marks.push(mark);
            packed.push(PackedTrace { document: trace.clone(), spans: stored });
            traces.push(TraceToPack { trace, spans });
        }
        if traces.is_empty() {
            return Ok(true);
        }
        let archived = ArchivedGroups::new();
        let blocks = self
            .write(
                vec![BlockContent { end, traces, replaces: None, previous_end: None, is_released: true, archived }],
                &HashSet::new(),
            )
            .await?;
        if self.experiment_status().await? != ExperimentStatus::Active {
            for block in &blocks {
                self.remove(block).await?;
                self.delete_spans(block.groups().iter().filter_map(|group| group.digest)).await?;
            }
            return Ok(false);
        }
        let kept = self.release(packed).await?;
        marks.retain(|mark| !kept.contains(&mark.place.trace));
        self.unmark(marks).await?;
        runtime::clock::sleep(self.thresholds.pause).await;
        Ok(true)
    }
}
