//! Indexes runs.
//!
//! The index contains a copy of each run. The entries that a run currently has in the index are
//! derived from this copy, and the entries that it should have are derived from its documents.
//! Indexing may be interrupted anywhere and repeated, because its steps have this order:
//!
//! 1. The run's journal is packed (the crate `metric-packing`).
//! 2. The new copy is written, with a list of stale entries. From then on it is known what the
//!    index may contain.
//! 3. Missing entries are written, and then stale entries are deleted.
//! 4. The mark is removed from the run's document, if the document has not changed since it was
//!    read. The document gets the name of this indexing, if the index was updated.
//!
//! If a document has the same indexing name as its copy, step 3 was completed. Otherwise, every
//! entry is written again.
//!
//! A run whose copy another indexer has just written is postponed
//! ([`run_ownership`](crate::run_ownership)).
//!
//! While calls add to a run's journal, the run's mark is kept
//! ([`MarkOutcome`](entities::MarkOutcome)), because these calls rely on the mark and write nothing
//! to the document. Searches read a run with a mark from its documents, so as long as it is kept,
//! steps 2 and 3 are omitted unless `reindex` has requested them.

mod index_writer;
mod indexing_plan;
mod journal_packing;
mod run_reader;

use entities::indexed_fields_setting::IndexedFieldsSetting;
use entities::{Moment, RunLocation};
use table::Result;

use crate::Indexer;

impl Indexer {
    /// Indexes runs, except those that are not due. Returns the runs that were postponed or that
    /// keep their mark, and when these runs have to be checked.
    ///
    /// Reading the runs and their copies takes three requests per 100 runs. For each run, there is
    /// one request to read its journal, those for packing it, one to write the new copy unless the run
    /// keeps its mark, and one to update its document. Entries take one request per 25. The first run of an experiment in a
    /// process takes one request for the experiment's directory of lists.
    pub(crate) async fn index_runs(
        &self,
        runs: &[RunLocation],
        setting: &IndexedFieldsSetting,
    ) -> Result<Vec<(RunLocation, i64)>> {
        let batch = self.read_batch(runs).await?;
        let mut checks = self.postponed(&batch.runs);
        let due: Vec<_> = batch.runs.iter().filter(|run| !checks.contains_key(&run.at)).collect();
        let mut packed = self.pack_runs(&due).await?;
        let planned_at = Moment::now();
        let mut plans = Vec::new();
        for run in due {
            let (plan, check) = self.plan_run(run, packed.remove(&run.at), batch.read_at, setting);
            plans.extend(plan);
            checks.extend(check.map(|time| (run.at.clone(), time)));
        }
        for at in &batch.deleted {
            // The run was deleted in the meantime. Its copy and its entries cannot be found without
            // its start time, so they are deleted when the stream delivers the record of the
            // deletion.
            self.index.clear_up_run(at, None).await?;
        }
        let mut plans = self.write_copies(plans).await?;
        self.write_entries(&mut plans, planned_at).await?;
        for (at, check) in self.conclude_runs(plans).await? {
            match check {
                Some(time) => checks.insert(at, time),
                None => checks.remove(&at),
            };
        }
        Ok(checks.into_iter().collect())
    }
}
