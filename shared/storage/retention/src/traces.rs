//! Permanently deletes the traces of an experiment, with their spans, marks and blocks.

use std::time::Duration;

use entities::archived_objects::drop_later;
use entities::attributes::{EDITS, SHARDS, UNTIL};
use entities::{StoredTrace, now_ms};
use key_schema::{Key, rows};
use mlflow_api::{Error, ExperimentId, Result, TraceId};
use table::{Condition, Failure, Item, Query, number};
use trace_blocks::{Block, TraceFile, TraceKey, TracePartition, objects, read_traces};

use crate::store::Retention;

/// Number of marks that are read at a time.
const MARK_BATCH_SIZE: usize = 100;
/// Number of blocks that are read at a time. Each has about 30 KB.
const BLOCK_BATCH_SIZE: usize = 10;
/// Pause before a partition that is being packed is checked again, and the maximum number of
/// pauses. All pauses together are longer than a lock, which lasts a minute and a half.
pub(crate) const PACKER_PAUSE: Duration = Duration::from_secs(1);
pub(crate) const MAX_PACKER_PAUSES: usize = 100;

impl Retention {
    /// Deletes all traces of a deleted experiment, to which no traces can be added. A mark or a
    /// block is deleted after its traces, because until then it is the only reference to them. The
    /// rows that list the days are deleted later, with the experiment's partition. Returns the
    /// number of unreadable blocks. These are kept, because they are the only record of which
    /// traces are left.
    pub(crate) async fn remove_all_traces(&self, experiment: ExperimentId) -> Result<usize> {
        let mut unreadable = 0;
        for (day, shards) in self.trace_days(experiment).await? {
            for shard in 0..shards {
                unreadable += self.remove_partition(TracePartition { experiment, day, shard }).await?;
            }
        }
        Ok(unreadable)
    }

    /// Returns the days on which an experiment has traces, oldest first, each with the number of
    /// its partitions. Sends one request, and one more per MB.
    pub(crate) async fn trace_days(&self, experiment: ExperimentId) -> Result<Vec<(i64, u32)>> {
        let items = self.table.query(Query::of(rows::TraceDay::all(&experiment))).await?;
        let days = items.iter().filter_map(|item| {
            let row = item.key().as_ref().and_then(rows::TraceDay::parse)?;
            let shards = item.get(SHARDS).unwrap_or(1);
            Some((row.day.0, shards))
        });
        Ok(days.collect())
    }

    async fn remove_partition(&self, partition: TracePartition) -> Result<usize> {
        // Without a packing row, the partition has never been packed. It will not be packed later,
        // because the experiment is deleted.
        if self.table.get(&partition.packing_key()).await?.is_none() {
            return self.remove_marked(partition).await.map(|()| 0);
        }
        self.wait_for_packer(partition).await?;
        // Marks are processed before blocks. They refer to traces that have changed since they were
        // packed, or that are in no block yet.
        self.remove_marked(partition).await?;
        if let unreadable @ 1.. = self.remove_packed(partition).await? {
            return Ok(unreadable);
        }
        for spans in partition.spans() {
            self.table.delete_range(spans).await?;
        }
        self.table.write_many(Vec::new(), &[partition.lock_key(), partition.packing_key()]).await?;
        Ok(0)
    }

    /// Waits until no process is packing the partition. A process that takes the lock later sees
    /// that the experiment is deleted, and writes nothing.
    async fn wait_for_packer(&self, partition: TracePartition) -> Result<()> {
        for _ in 0..MAX_PACKER_PAUSES {
            let lock = self.table.get(&partition.lock_key()).await?;
            if lock.and_then(|lock| lock.get(UNTIL)).is_none_or(|until| until < now_ms()) {
                return Ok(());
            }
            runtime::clock::sleep(PACKER_PAUSE).await;
        }
        Err(Error::unavailable("the traces of the experiment are being packed"))
    }

    async fn remove_marked(&self, partition: TracePartition) -> Result<()> {
        let query = Query::of(partition.marks()).limit(MARK_BATCH_SIZE);
        loop {
            let marks: Vec<Key> = self.table.query_page(&query).await?.items.iter().filter_map(Item::key).collect();
            if marks.is_empty() {
                return Ok(());
            }
            let mut traces: Vec<_> = marks.iter().filter_map(TraceKey::of_key).map(|place| place.trace).collect();
            traces.dedup();
            self.remove_traces(partition.experiment, &traces).await?;
            self.table.write_many(Vec::new(), &marks).await?;
        }
    }

    async fn remove_packed(&self, partition: TracePartition) -> Result<usize> {
        let mut unreadable = 0;
        let mut query = Query::of(partition.blocks()).for_removal().limit(BLOCK_BATCH_SIZE);
        loop {
            let page = self.table.query_page(&query).await?;
            for item in page.items {
                let (block, core) = match Block::of(item).and_then(|block| block.core().map(|core| (block, core))) {
                    Ok(read) => read,
                    Err(error) => {
                        tracing::error!(%error, "a block of traces cannot be read, and is not deleted");
                        unreadable += 1;
                        continue;
                    }
                };
                let traces: Vec<_> = core.into_iter().map(|trace| trace.place.trace).collect();
                self.remove_traces(partition.experiment, &traces).await?;
                drop_later(&self.table, objects(block.archived()), &block.key()).await?;
                self.table.write_many(Vec::new(), &[block.key()]).await?;
            }
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => return Ok(unreadable),
            }
        }
    }

    /// Deletes the file of an archived trace, before the trace that refers to it is deleted. A file in a
    /// location that this server cannot access is left in place.
    pub(crate) async fn delete_trace_file(&self, trace: &StoredTrace) -> Result<()> {
        match TraceFile::of(&self.artifacts, trace) {
            Ok(Some(file)) => file.delete().await,
            Ok(None) | Err(_) => Ok(()),
        }
    }

    /// Deletes those of the given traces that belong to the experiment.
    async fn remove_traces(&self, experiment: ExperimentId, traces: &[TraceId]) -> Result<()> {
        let heads = read_traces(&self.table, &traces.iter().collect::<Vec<_>>()).await?;
        for trace in traces {
            // Spans are deleted even if the document is missing or belongs to another experiment,
            // because an export may have been interrupted or rejected.
            self.table.delete_range(rows::TraceSpans::all(&experiment, trace).into()).await?;
            let Some(head) = heads.get(trace).filter(|head| head.experiment() == experiment) else { continue };
            self.delete_trace_file(head).await?;
            let is_same = Condition::Equals(EDITS.into(), number(head.edits()));
            match self.table.delete(&rows::Trace::key(trace), &is_same).await {
                // The document no longer exists, or the trace has been created again in another
                // experiment.
                Ok(()) | Err(Failure::Refused { .. }) => {}
                Err(failure) => return Err(failure.into()),
            }
        }
        Ok(())
    }
}
