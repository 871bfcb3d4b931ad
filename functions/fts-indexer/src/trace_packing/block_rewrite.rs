//! Rewrites blocks in which traces have changed, have been deleted, or arrived late.

use std::collections::{HashMap, HashSet};

use entities::{StoredTrace, failed};
use key_schema::WideDigest;
use mlflow_api::TraceId;
use table::{Failure, Result};
use trace_blocks::{Block, SpanGroup, SpansToPack, TraceKey, TraceToPack, read_spans_to_pack, room};

use crate::trace_packing::block_writer::BlockContent;
use crate::trace_packing::{Mark, Packer, block_sizes};

/// A trace that the rewritten block will contain.
struct BlockEntry {
    trace: StoredTrace,
    packed_bytes: usize,
    /// The trace's spans, if the old block contains them and they have not changed.
    known_spans: Option<SpansToPack>,
}

impl Packer<'_> {
    /// Rewrites a block, so that it contains the given traces, updated with those that are marked
    /// at positions of the block. The marks are deleted. A block that would be too large is split
    /// into several, and a block without traces is deleted. Returns the time, in ms, within which
    /// some traces have to be checked again.
    pub(super) async fn rewrite(&self, block: &Block, traces: Vec<StoredTrace>, marks: &[Mark]) -> Result<Option<i64>> {
        let documents = self.documents(marks).await?;
        let nothing = documents.live.is_empty() && documents.dead.is_empty();
        if nothing && documents.recheck_within.is_some() {
            // Traces that are not packed yet keep their marks, so readers ignore the block's copies
            // of these traces, and nothing has to be written.
            return Ok(documents.recheck_within);
        }
        let marked: HashSet<&TraceKey> = marks.iter().map(|mark| &mark.place).collect();
        let mut entries: Vec<(TraceKey, BlockEntry)> = Vec::new();
        for trace in traces {
            let place = TraceKey::of(&trace);
            if !marked.contains(&place) {
                let room = room(&trace).map_err(failed)?;
                entries.push((place, BlockEntry { trace, packed_bytes: room, known_spans: None }));
            }
        }
        // The spans of live traces may have changed as well, so their spans are read again.
        let mut done = documents.dead;
        let mut changed = HashSet::new();
        for live in documents.live {
            changed.insert(live.mark.place.clone());
            entries.push((
                live.mark.place.clone(),
                BlockEntry { trace: live.trace, packed_bytes: live.packed_bytes, known_spans: None },
            ));
            done.push(live.mark);
        }
        // The entries are sorted from the oldest to the newest.
        entries.sort_by(|(one, _), (other, _)| other.cmp(one));
        let counts = block_sizes::split_evenly(
            &entries.iter().map(|(_, entry)| entry.packed_bytes).collect::<Vec<_>>(),
            self.thresholds.max_traces,
        );
        let is_sound = self.find_known_spans(block, &mut entries, marks, &changed, counts.len() == 1).await?;
        let unknown = entries.iter().filter(|(_, entry)| entry.known_spans.is_none());
        let unknown: Vec<TraceId> = unknown.map(|(place, _)| place.trace.clone()).collect();
        let mut read = self.spans(unknown).await?.into_iter();
        let mut pieces: Vec<BlockContent> = Vec::new();
        let mut entries = entries.into_iter();
        for count in counts {
            let entries: Vec<_> = entries.by_ref().take(count).collect();
            let Some((oldest, _)) = entries.first() else { continue };
            // The oldest piece keeps the end of the original block and replaces it. The other
            // pieces are new blocks.
            let (end, replaces) =
                if pieces.is_empty() { (block.end().clone(), Some(block.edits())) } else { (oldest.clone(), None) };
            let traces = entries.into_iter().map(|(_, entry)| TraceToPack {
                trace: entry.trace,
                spans: entry.known_spans.or_else(|| read.next()).unwrap_or(SpansToPack::Elsewhere),
            });
            let traces = traces.collect();
            if let Some(BlockContent { previous_end: behind, .. }) = pieces.last_mut() {
                *behind = Some(end.clone());
            }
            let archived = block.archived().clone();
            pieces.push(BlockContent { end, traces, replaces, previous_end: None, archived });
        }
        let is_split = pieces.len() > 1;
        if is_split && !is_sound && !block.archived().is_empty() {
            // An object of the archive belongs to one block only.
            return Err(Failure::Unexpected("a block whose spans cannot be read cannot be split".to_owned()));
        }
        let stays = |group: &&SpanGroup| is_sound && (group.archived.is_none() || !is_split);
        let are_there: HashSet<_> = block.groups().iter().filter(stays).filter_map(|group| group.digest).collect();
        let before: HashSet<WideDigest> = block.groups().iter().filter_map(SpanGroup::digest_of_item).collect();
        let after: HashSet<WideDigest> = if pieces.is_empty() {
            self.remove(block).await?;
            HashSet::new()
        } else {
            // If the spans in the block could not be read, all spans are written again. So are archived
            // spans of a block that is split, because an object belongs to one block only.
            let blocks = self.write(pieces, &are_there).await?;
            blocks.iter().flat_map(Block::groups).filter_map(SpanGroup::digest_of_item).collect()
        };
        self.unmark(done).await?;
        self.delete_spans(before.difference(&after).copied()).await?;
        runtime::clock::sleep(self.thresholds.pause).await;
        Ok(documents.recheck_within)
    }

    /// Finds the spans that the block already contains for traces that have not changed. A group of
    /// spans is kept if no mark lies within it and all of it stays in one block. The spans of other
    /// groups are read again. Returns whether the block's spans could be read. Takes one request.
    async fn find_known_spans(
        &self,
        block: &Block,
        entries: &mut [(TraceKey, BlockEntry)],
        marks: &[Mark],
        changed: &HashSet<TraceKey>,
        is_one: bool,
    ) -> Result<bool> {
        let core = block.core().map_err(failed)?;
        let mut rest = core.as_slice();
        let (mut known, mut wanted) = (HashMap::new(), Vec::new());
        for group in block.groups() {
            let (here, others) = rest.split_at_checked(group.traces).unwrap_or((rest, &[]));
            rest = others;
            let (Some(newest), Some(oldest)) = (here.first(), here.last()) else { continue };
            let is_within = |mark: &Mark| newest.place <= mark.place && mark.place <= oldest.place;
            let stays = is_one && !marks.iter().any(is_within);
            for trace in here {
                match group.digest {
                    None => {
                        known.insert(&trace.place, SpansToPack::Elsewhere);
                    }
                    Some(digest) if stays => {
                        known.insert(&trace.place, SpansToPack::In(digest));
                    }
                    Some(_) => wanted.push(&trace.place),
                }
            }
        }
        wanted.retain(|place| !changed.contains(place));
        let asked: Vec<_> = wanted.iter().map(|place| (block, &place.trace)).collect();
        let mut is_sound = true;
        let mut read = match read_spans_to_pack(self.table, self.archive, &asked).await {
            // If the block's spans cannot be read, they are read from the traces, which also store
            // them.
            Err(failure @ (Failure::Unreadable(_) | Failure::Lost(_) | Failure::Unexpected(_))) => {
                tracing::error!(?failure, "spans of a block cannot be read, and are packed again from their traces");
                is_sound = false;
                HashMap::new()
            }
            read => read?,
        };
        for place in wanted {
            known.extend(read.remove(&place.trace).map(|spans| (place, spans)));
        }
        for (place, entry) in entries.iter_mut().filter(|(place, _)| !changed.contains(place)) {
            entry.known_spans = known.remove(place);
        }
        Ok(is_sound)
    }
}
