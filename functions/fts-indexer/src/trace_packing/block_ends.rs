//! Finds the block that owns a place, using the index of blocks' ends.

use key_schema::index::TraceBlocks;
use table::{Query, Result};
use trace_blocks::TraceKey;

use crate::trace_packing::Packer;

/// Number of ends that are read at a time. Takes about one read unit.
const BATCH_SIZE: usize = 40;

/// The block that owns a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnerBlock {
    /// End of the block.
    pub(super) end: TraceKey,
    /// Whether it is the newest block.
    pub(super) is_newest: bool,
}

/// A cache of some of the ends. Places must be requested from the oldest to the newest.
#[derive(Debug, Default)]
pub(super) struct BlockEnds {
    /// Ends, from the oldest to the newest.
    known: Vec<TraceKey>,
    /// The newest place up to which all ends are known. `None` if nothing has been read.
    known_until: Option<KnownUntil>,
}

#[derive(Debug)]
enum KnownUntil {
    TraceKey(TraceKey),
    Newest,
}

impl BlockEnds {
    /// Returns the block that owns a place, or `None` if all blocks end before it. Two requests,
    /// together one read unit, per about forty blocks.
    pub(super) async fn owner(&mut self, packer: &Packer<'_>, place: &TraceKey) -> Result<Option<OwnerBlock>> {
        let is_known = match &self.known_until {
            None => false,
            Some(KnownUntil::Newest) => true,
            Some(KnownUntil::TraceKey(until)) => place >= until,
        };
        if !is_known {
            self.read(packer, place).await?;
        }
        // The newest of the blocks that end at or after the place.
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
        // The place itself may be an end, and would then occur twice.
        self.known.extend(newer.into_iter().filter(|end| end < place));
        Ok(())
    }
}
