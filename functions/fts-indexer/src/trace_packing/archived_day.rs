//! Packing of days whose spans are or may be archived.

use std::collections::BTreeSet;

use entities::archived_objects::drop_later;
use entities::attributes::{ARCHIVED, PACKINGS};
use key_schema::{Ascending, rows};
use mlflow_api::ArchiveObject;
use table::{Failure, Result, Update, number};
use trace_blocks::{ArchivedGroups, Block, SpanGroup, TraceKey, day_of, objects};

use crate::trace_packing::Packer;

/// Minimum age, in days, of a day whose spans may be archived. Most traces are packed on their own
/// day or on the next one, so that counting the passes of older days causes few writes.
const MIN_ARCHIVED_AGE_DAYS: i64 = 2;

impl Packer<'_> {
    /// Schedules the deletion of the objects of the archive that a block, which ends at `end`, refers
    /// to now, unless its new version, which is the first of `blocks`, or a block that is split off
    /// refers to them. Must be called before the blocks are written. Takes no request if there are no
    /// such objects, and one otherwise.
    pub(super) async fn drop_archived(
        &self,
        end: &TraceKey,
        archived: &ArchivedGroups,
        blocks: &[Block],
    ) -> Result<()> {
        let kept: BTreeSet<ArchiveObject> = blocks.iter().flat_map(|block| objects(block.archived())).collect();
        let dropped = objects(archived).into_iter().filter(|object| !kept.contains(object));
        drop_later(self.table, dropped.collect::<Vec<_>>(), &self.partition.block_key(end)).await
    }

    /// Records that these blocks have spans that are not archived, if the spans of their day may have
    /// been archived. Must be called under the partition's lock, before the blocks are written: the
    /// archiver takes the lock after it has read the day, so it either sees the blocks or finds that
    /// the day has changed. Takes no request for recent days.
    pub(super) async fn reopen_day(&self, blocks: &[Block]) -> Result<()> {
        let has_items = blocks.iter().flat_map(Block::groups).any(|group: &SpanGroup| group.digest_of_item().is_some());
        let is_old = self.partition.day < day_of(self.now).saturating_sub(MIN_ARCHIVED_AGE_DAYS);
        if !has_items || !is_old {
            return Ok(());
        }
        let key = rows::TraceDay::key(&self.partition.experiment, &Ascending(self.partition.day));
        match self.table.apply(&Update::new(key).add(PACKINGS, number(1)).remove(ARCHIVED)).await {
            // Without this row, the experiment no longer exists.
            Ok(()) | Err(Failure::Refused { .. }) => Ok(()),
            Err(failure) => Err(failure),
        }
    }
}
