//! Creation of new blocks from marks at places that no block owns.

use std::collections::HashSet;

use table::Result;
use trace_blocks::{ToPack, TraceKey};

use crate::trace_packing::documents::Live;
use crate::trace_packing::write::{Home, Piece};
use crate::trace_packing::{Mark, Packer, cut};

/// Number of marks whose documents are read at a time.
const AT_A_TIME: usize = 100;

/// The result of packing marks into new blocks.
#[derive(Debug, Default)]
pub(super) struct Appended {
    /// Marks that are too few for a block, oldest first.
    pub(super) left: Vec<Mark>,
    /// Time in ms within which some marks have to be checked again.
    pub(super) again: Option<i64>,
    /// Whether the experiment was deleted in the meantime.
    pub(super) is_over: bool,
    /// Place of the oldest mark that was not processed because the pass ran out of time, or that
    /// waits for such marks.
    pub(super) rest: Option<TraceKey>,
}

impl Packer<'_> {
    /// Creates blocks from marks, given oldest first. No block owns their places or the places
    /// between them. Marks that are no longer valid are deleted.
    pub(super) async fn append(&self, marks: &[Mark]) -> Result<Appended> {
        let (mut live, mut appended): (Vec<Live>, _) = (Vec::new(), Appended::default());
        for (portion, marks) in marks.chunks(AT_A_TIME).enumerate() {
            if portion > 0 && self.begin.age() > self.sizes.longest {
                appended.rest = marks.first().map(|mark| mark.place.clone());
                break;
            }
            let documents = self.documents(marks).await?;
            self.unmark(documents.dead).await?;
            appended.again = appended.again.into_iter().chain(documents.again).min();
            live.extend(documents.live);
            loop {
                let count = cut::first(live.iter().map(|trace| trace.room), self.sizes.most);
                // More traces may be added to a block that is not full.
                if live.len() <= count && count < self.sizes.most {
                    break;
                }
                if !self.create(live.drain(..count.min(live.len())).collect()).await? {
                    appended.is_over = true;
                    return Ok(appended);
                }
            }
        }
        if live.len() >= self.sizes.least_new.max(1) {
            appended.is_over = !self.create(live).await?;
        } else {
            appended.left = live.into_iter().map(|trace| trace.mark).collect();
            let oldest = appended.left.first().map(|mark| mark.place.clone());
            appended.rest = appended.rest.take().map(|rest| oldest.unwrap_or(rest));
        }
        Ok(appended)
    }

    /// Creates a block of traces, given oldest first, which must fit, and deletes their marks.
    /// Returns whether the experiment is still active. If it is not, the block is deleted again,
    /// since the process that removes the experiment may already have searched for blocks.
    async fn create(&self, live: Vec<Live>) -> Result<bool> {
        let Some(end) = live.first().map(|oldest| oldest.mark.place.clone()) else { return Ok(true) };
        let spans = self.spans(live.iter().map(|trace| trace.trace.id().clone()).collect()).await?;
        let (mut marks, mut traces) = (Vec::new(), Vec::new());
        for (Live { mark, trace, .. }, spans) in live.into_iter().zip(spans) {
            marks.push(mark);
            traces.push(ToPack { trace, spans });
        }
        let blocks = self.write(vec![Piece { end, traces, replaces: None, behind: None }], &HashSet::new()).await?;
        if self.home().await? != Home::Active {
            for block in &blocks {
                self.remove(block).await?;
                self.forget_spans(block.groups().iter().filter_map(|group| group.digest)).await?;
            }
            return Ok(false);
        }
        self.unmark(marks).await?;
        runtime::clock::sleep(self.sizes.rest).await;
        Ok(true)
    }
}
