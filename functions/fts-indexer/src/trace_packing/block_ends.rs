//! Finds the block whose range contains a position in the time order, using the index of blocks'
//! ends.

use key_schema::index::TraceBlocks;
use table::{Query, Result};
use trace_blocks::TraceKey;

use crate::trace_packing::Packer;

/// Number of block ends that are read at a time, which costs about one read unit.
const BATCH_SIZE: usize = 40;

/// The block whose range contains a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnerBlock {
    /// End of the block.
    pub(super) end: TraceKey,
    /// Whether it is the newest block.
    pub(super) is_newest: bool,
}

/// A cache of some of the blocks' ends. Positions must be looked up from the oldest to the newest.
#[derive(Debug, Default)]
pub(super) struct BlockEnds {
    /// Ends, from the oldest to the newest.
    known: Vec<TraceKey>,
    /// The newest position up to which all ends are cached. `None` if nothing has been read.
    known_until: Option<KnownUntil>,
}

#[derive(Debug)]
enum KnownUntil {
    TraceKey(TraceKey),
    Newest,
}

impl BlockEnds {
    /// Returns the block whose range contains a position, or `None` if all blocks end before the
    /// position. Takes two requests, which together cost one read unit, per about forty blocks.
    pub(super) async fn owner(&mut self, packer: &Packer<'_>, place: &TraceKey) -> Result<Option<OwnerBlock>> {
        let is_known = match &self.known_until {
            None => false,
            Some(KnownUntil::Newest) => true,
            Some(KnownUntil::TraceKey(until)) => place >= until,
        };
        if !is_known {
            self.read(packer, place).await?;
        }
        // The number of cached ends that are at the position or after it. The last of them is the
        // end of the block that contains the position.
        let newer = self.known.partition_point(|end| end >= place);
        let Some(end) = newer.checked_sub(1).and_then(|at| self.known.get(at)) else { return Ok(None) };
        let is_newest = newer == self.known.len() && matches!(self.known_until, Some(KnownUntil::Newest));
        Ok(Some(OwnerBlock { end: end.clone(), is_newest }))
    }

    async fn read(&mut self, packer: &Packer<'_>, place: &TraceKey) -> Result<()> {
        let ends = || packer.partition.block_ends();
        let of_page = |items: &[table::Item]| -> Vec<TraceKey> {
            let entries = items.iter().filter_map(table::Item::entry::<TraceBlocks>);
            entries.map(|entry| TraceKey { time: entry.time.0, trace: entry.trace }).collect()
        };
        let owner = Query::of(ends().starting(&place.text())).limit(1);
        self.known = of_page(&packer.table.query_page(&owner).await?.items);
        let newer = Query::of(ends().until(&place.text())).backwards().limit(BATCH_SIZE);
        let page = packer.table.query_page(&newer).await?;
        let newer = of_page(&page.items);
        self.known_until = match newer.last() {
            Some(last) if page.next.is_some() => Some(KnownUntil::TraceKey(last.clone())),
            _ => Some(KnownUntil::Newest),
        };
        // If the position is itself an end, that end has already been added, so it is filtered out
        // here.
        self.known.extend(newer.into_iter().filter(|end| end < place));
        Ok(())
    }
}
