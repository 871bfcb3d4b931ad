//! New blocks, of marks at places that no block has.

use std::collections::HashSet;

use table::Result;
use trace_blocks::{ToPack, TraceKey};

use crate::documents::Live;
use crate::write::{Home, Piece};
use crate::{Mark, Packer, cut};

/// Marks whose documents are read at a time.
const AT_A_TIME: usize = 100;

/// The outcome for marks.
#[derive(Debug, Default)]
pub(super) struct Appended {
    /// Those that are too few for a block, oldest first.
    pub(super) left: Vec<Mark>,
    /// Within which time some have to be looked at again, in ms.
    pub(super) again: Option<i64>,
    /// Whether the experiment was deleted meanwhile.
    pub(super) is_over: bool,
    /// The oldest of those that were not looked at, or wait for them, because time was short.
    pub(super) rest: Option<TraceKey>,
}

impl Packer<'_> {
    /// Makes blocks of marks, oldest first. No block has anything at their places, or between them.
    /// Marks that do not count are deleted.
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
                // One that is not full may get more.
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

    /// Makes a block of traces, oldest first, that fit, and takes their marks away. Returns whether
    /// the experiment is still active. If not, the block is removed again, since the process that
    /// removes the experiment may have looked for blocks already.
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
        clock::sleep(self.sizes.rest).await;
        Ok(true)
    }
}
