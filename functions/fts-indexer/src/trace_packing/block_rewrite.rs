//! Rewrites blocks in which traces have changed, have been deleted, or arrived late.

use std::collections::{HashMap, HashSet};

use entities::attributes::EDITS;
use entities::{StoredTrace, TraceRow, failed};
use key_schema::{WideDigest, rows};
use table::{Condition, Failure, Result, number};
use trace_blocks::{
    Block, PackedTrace, SpanGroup, SpansToPack, StoredSpans, TraceKey, TraceToPack, read_spans_to_pack, room,
};

use crate::trace_packing::block_writer::BlockContent;
use crate::trace_packing::marks::Mark;
use crate::trace_packing::span_reader::ReadSpans;
use crate::trace_packing::trace_documents::LiveTrace;
use crate::trace_packing::{Packer, block_sizes};

/// A trace that the rewritten block will contain.
struct BlockEntry {
    trace: StoredTrace,
    packed_bytes: usize,
    /// The trace's spans, if it is known where they are.
    spans: Option<SpansToPack>,
    /// The items with spans that are stored with the trace and that are packed now.
    stored: Vec<StoredSpans>,
    /// Whether the trace was changed since it was packed.
    is_changed: bool,
    /// Whether the old block may lack some of the trace's spans.
    has_new_spans: bool,
}

impl BlockEntry {
    fn unchanged(trace: StoredTrace) -> Result<Self> {
        let packed_bytes = room(&trace).map_err(failed)?;
        Ok(Self { trace, packed_bytes, spans: None, stored: Vec::new(), is_changed: false, has_new_spans: false })
    }

    /// `packed` is the document in the block, if it is the current one.
    fn changed(live: LiveTrace, packed: Option<StoredTrace>, new_spans: Option<ReadSpans>) -> Self {
        let LiveTrace { trace, packed_bytes, .. } = live;
        let trace = packed.unwrap_or(trace);
        let has_new_spans = new_spans.is_some();
        let (spans, stored) = new_spans.map_or((None, Vec::new()), |read| (Some(read.spans), read.stored));
        Self { trace, packed_bytes, spans, stored, is_changed: true, has_new_spans }
    }
}

impl Packer<'_> {
    /// Replaces the pointer to a packed trace by its document, because some of its spans are not in the
    /// block. Any other request that changes the trace then fails, and reads these spans again. Returns
    /// `None` if the trace has changed in the meantime. Takes two requests.
    async fn restore_document(&self, settled: LiveTrace, packed: &StoredTrace) -> Result<Option<LiveTrace>> {
        let key = rows::Trace::key(settled.trace.id());
        let row = self.table.get(&key).await?.map(TraceRow::of).transpose().map_err(failed)?;
        let Some(TraceRow::Pointer(pointer)) = row else { return Ok(None) };
        let Some(trace) = pointer.resolve(packed) else { return Ok(None) };
        let item = trace.item().clone().with(EDITS, number(pointer.edits().saturating_add(1)));
        let is_same = Condition::Equals(EDITS.into(), number(pointer.edits()));
        match self.table.put(item.clone(), &is_same).await {
            Ok(()) => {}
            Err(Failure::Refused { item: Some(found), .. }) if found == item => {}
            Err(Failure::Refused { .. }) => return Ok(None),
            Err(failure) => return Err(failure),
        }
        Ok(Some(LiveTrace { trace: StoredTrace::of(item).map_err(failed)?, ..settled }))
    }

    /// Rewrites a block, so that it contains the given traces, updated with those that are marked
    /// at positions of the block. Pointers replace the documents of the traces that are packed, and
    /// their marks are deleted. Other traces keep their marks. A block that would be too large is split
    /// into several, and a block without traces is deleted. Returns the time, in ms, within which
    /// some traces have to be checked again.
    pub(super) async fn rewrite(&self, block: &Block, traces: Vec<StoredTrace>, marks: &[Mark]) -> Result<Option<i64>> {
        let documents = self.documents(marks).await?;
        let mut live = documents.live;
        // The block contains the current document of a trace with a pointer, but spans may have arrived
        // without a change of the document.
        let of_places: HashMap<TraceKey, &StoredTrace> =
            traces.iter().map(|trace| (TraceKey::of(trace), trace)).collect();
        let settled = settled_traces(documents.packed, &of_places)?;
        // Spans that have arrived since a trace was packed are stored with the trace.
        let packed_before =
            live.iter().chain(&settled).map(|live| &live.trace).filter(|trace| trace.has_packed_spans());
        let own = self.with_own_spans(packed_before.collect()).await?;
        let (with_spans, settled): (Vec<_>, Vec<_>) =
            settled.into_iter().partition(|settled| own.contains(settled.trace.id()));
        for settled in with_spans {
            if let Some(packed) = of_places.get(&settled.mark.place) {
                live.extend(self.restore_document(settled, packed).await?);
            }
        }
        if live.is_empty() && documents.dead.is_empty() {
            // Traces that are not packed yet keep their marks, so readers ignore the block's copies
            // of these traces, and nothing has to be written.
            self.unmark(settled.into_iter().map(|settled| settled.mark).collect()).await?;
            return Ok(documents.recheck_within);
        }
        let mut done = documents.dead;
        let mut rewritten: HashSet<TraceKey> = done.iter().map(|mark| mark.place.clone()).collect();
        done.extend(settled.into_iter().map(|settled| settled.mark));
        let mut entries: Vec<(TraceKey, BlockEntry)> = Vec::new();
        let is_same = |live: &LiveTrace| live.trace.has_packed_spans() && !own.contains(live.trace.id());
        let (same, with_spans): (Vec<_>, Vec<_>) = live.into_iter().partition(is_same);
        let read = self.spans(with_spans.iter().map(LiveTrace::with_marked_spans).collect()).await?;
        let read = with_spans.into_iter().zip(read);
        for (live, spans) in
            same.into_iter().map(|live| (live, None)).chain(read.map(|(live, read)| (live, Some(read))))
        {
            // A trace whose spans cannot be read keeps its mark.
            let Some(spans) = spans.map_or(Some(None), |read| read.map(Some)) else { continue };
            let place = live.mark.place.clone();
            rewritten.insert(place.clone());
            done.push(live.mark.clone());
            let is_pointer = live.trace.is_behind_pointer();
            let packed = of_places.get(&place).filter(|_| is_pointer).map(|trace| (*trace).clone());
            entries.push((place, BlockEntry::changed(live, packed, spans)));
        }
        drop(of_places);
        for trace in traces {
            let place = TraceKey::of(&trace);
            // A trace that keeps its mark also stays in the block, which may be the only place of
            // its spans.
            if !rewritten.contains(&place) {
                entries.push((place, BlockEntry::unchanged(trace)?));
            }
        }
        // The entries are sorted from the oldest to the newest.
        entries.sort_by(|(one, _), (other, _)| other.cmp(one));
        let counts = block_sizes::split_evenly(
            &entries.iter().map(|(_, entry)| entry.packed_bytes).collect::<Vec<_>>(),
            self.thresholds.max_traces,
        );
        let is_sound = self.find_known_spans(block, &mut entries, counts.len() == 1).await?;
        // Traces of an earlier layout also store their spans themselves.
        let unknown = entries.iter().filter(|(_, entry)| entry.spans.is_none());
        let unknown: Vec<_> = unknown.map(|(_, entry)| (entry.trace.clone(), None)).collect();
        let mut read = self.spans(unknown).await?.into_iter();
        let mut packed = Vec::new();
        let mut pieces: Vec<BlockContent> = Vec::new();
        let mut entries = entries.into_iter();
        for count in counts {
            let entries: Vec<_> = entries.by_ref().take(count).collect();
            let Some((oldest, _)) = entries.first() else { continue };
            // The oldest piece keeps the end of the original block and replaces it. The other
            // pieces are new blocks.
            let (end, replaces) =
                if pieces.is_empty() { (block.end().clone(), Some(block.edits())) } else { (oldest.clone(), None) };
            let mut traces = Vec::new();
            for (_, BlockEntry { trace, spans, stored, is_changed, .. }) in entries {
                if is_changed {
                    packed.push(PackedTrace { document: trace.clone(), spans: stored });
                }
                let spans = spans.or_else(|| read.next().flatten().map(|read| read.spans));
                let spans = spans.unwrap_or(SpansToPack::Elsewhere);
                traces.push(TraceToPack { trace, spans });
            }
            if let Some(BlockContent { previous_end: behind, .. }) = pieces.last_mut() {
                *behind = Some(end.clone());
            }
            let (is_released, archived) = (block.is_released(), block.archived().clone());
            pieces.push(BlockContent { end, traces, replaces, previous_end: None, is_released, archived });
        }
        let is_split = pieces.len() > 1;
        if is_split && !is_sound {
            // Spans that cannot be read stay where they are, and belong to one block only.
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
        let kept = self.release(packed).await?;
        done.retain(|mark| !kept.contains(&mark.place.trace));
        self.unmark(done).await?;
        self.delete_spans(before.difference(&after).copied()).await?;
        runtime::clock::sleep(self.thresholds.pause).await;
        Ok(documents.recheck_within)
    }

    /// Finds the spans that the block already contains for traces whose spans have not changed. A
    /// group of spans is kept if all of its traces stay in one block, their spans have not changed,
    /// and no other traces are between them. The spans of other groups are read again. Returns
    /// whether the block's spans could be read. Takes one request if spans have to be read, and about
    /// one to the archive if they are archived. If they cannot be read, takes one more per trace.
    async fn find_known_spans(
        &self,
        block: &Block,
        entries: &mut [(TraceKey, BlockEntry)],
        is_one: bool,
    ) -> Result<bool> {
        let core = block.core().map_err(failed)?;
        let same: HashSet<&TraceKey> =
            entries.iter().filter(|(_, entry)| !entry.has_new_spans).map(|(place, _)| place).collect();
        let others: Vec<&TraceKey> =
            entries.iter().filter(|(_, entry)| entry.has_new_spans).map(|(place, _)| place).collect();
        let mut rest = core.as_slice();
        let (mut known, mut wanted) = (HashMap::new(), Vec::new());
        for group in block.groups() {
            let (here, following) = rest.split_at_checked(group.traces).unwrap_or((rest, &[]));
            rest = following;
            let (Some(newest), Some(oldest)) = (here.first(), here.last()) else { continue };
            let is_within = |place: &&TraceKey| newest.place <= **place && **place <= oldest.place;
            let stays = is_one && here.iter().all(|trace| same.contains(&trace.place)) && !others.iter().any(is_within);
            for trace in here.iter().filter(|trace| same.contains(&trace.place)) {
                match group.digest {
                    None => {
                        known.insert(trace.place.clone(), SpansToPack::Elsewhere);
                    }
                    Some(digest) if stays => {
                        known.insert(trace.place.clone(), SpansToPack::In(digest));
                    }
                    Some(digest) => wanted.push((trace.place.clone(), digest)),
                }
            }
        }
        let asked: Vec<_> = wanted.iter().map(|(place, _)| (block, &place.trace)).collect();
        let is_sound = match read_spans_to_pack(self.table, self.archive, &asked).await {
            Err(failure @ (Failure::Unreadable(_) | Failure::Lost(_) | Failure::Unexpected(_))) => {
                tracing::error!(?failure, "spans of a block cannot be read, and stay as they are");
                // Traces of an earlier layout also store their spans themselves.
                let traces = entries.iter().filter(|(place, _)| wanted.iter().any(|(wanted, _)| wanted == place));
                let own = self.with_own_spans(traces.map(|(_, entry)| &entry.trace).collect()).await?;
                let kept = wanted.into_iter().filter(|(place, _)| !own.contains(&place.trace));
                known.extend(kept.map(|(place, digest)| (place, SpansToPack::In(digest))));
                false
            }
            read => {
                let mut read = read?;
                let found = wanted.into_iter().filter_map(|(place, _)| Some((read.remove(&place.trace)?, place)));
                known.extend(found.map(|(spans, place)| (place, spans)));
                true
            }
        };
        for (place, entry) in entries.iter_mut().filter(|(_, entry)| !entry.has_new_spans) {
            entry.spans = known.remove(place);
        }
        Ok(is_sound)
    }
}

/// Returns the traces of marks whose current documents are in the block, given the documents of the
/// block.
fn settled_traces(marks: Vec<Mark>, of_places: &HashMap<TraceKey, &StoredTrace>) -> Result<Vec<LiveTrace>> {
    let mut settled = Vec::new();
    for mark in marks {
        if let Some(packed) = of_places.get(&mark.place) {
            let packed_bytes = room(packed).map_err(failed)?;
            settled.push(LiveTrace { mark, packed_bytes, trace: StoredTrace::behind_pointer(packed) });
        } else {
            tracing::error!(trace = mark.place.trace.as_str(), "a packed trace is not in its block");
        }
    }
    Ok(settled)
}
