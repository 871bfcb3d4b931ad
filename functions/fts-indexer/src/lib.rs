//! The indexer: consumes the table's stream and keeps what searches read, beside the entities, up to date.
//!
//! A record of the stream only says *which* entity has changed. The indexer reads the entity as it is now, makes its copy,
//! and puts and deletes what the lists of the index have too little and too much of. So several changes of one entity in a
//! batch are one, the order of records does not matter, and a batch that comes twice finds nothing left to do.
//!
//! [`batch`] sorts the records by entity, [`run`] indexes runs, [`removal`] clears up after entities that are gone,
//! [`entries`] says in which lists of the index a run stands, [`rebuild`] has everything indexed anew.

mod batch;
mod entries;
mod rebuild;
mod removal;
mod run;

use std::collections::BTreeSet;

use aws_lambda_events::event::streams::{DynamoDbBatchItemFailure, DynamoDbEventResponse};
pub use batch::Batch;
use entities::RunLocation;
use entities::fields::Setting;
pub use entries::run_entries;
use table::Table;

use batch::{Subject, Work};

/// Runs that are indexed together: so many share their requests, and if one of them fails, they are tried one by one.
const RUNS_AT_ONCE: usize = 50;

/// The indexer of one table. Cheap to clone.
///
/// The stream feeds one indexer at a time with the changes of an experiment, and nobody else writes what it writes.
#[derive(Clone, Debug)]
pub struct Indexer {
    table: Table,
}

impl Indexer {
    /// An indexer of the table whose stream it is fed.
    #[must_use]
    pub fn new(table: Table) -> Self {
        Self { table: table.in_background() }
    }

    /// Carries a batch of the stream over to the index. The answer names the records that have to come again: Lambda sends
    /// the batch again from the first of them.
    pub async fn handle(&self, batch: Batch) -> DynamoDbEventResponse {
        let work = Work::of(batch);
        let mut failed: Vec<_> = self.index_changed(&work).await;
        for removed in work.removed() {
            if let Err(failure) = self.clear_up(removed).await {
                tracing::error!(?failure, ?removed, "what an entity left behind could not be removed");
                failed.push(removed.clone());
            }
        }
        let failed = failed.iter().filter_map(|subject| work.first_record(subject)).chain(work.unreadable.clone());
        let failed: BTreeSet<String> = failed.collect();
        let failures = failed.into_iter().map(|record| {
            let mut failure = DynamoDbBatchItemFailure::default();
            failure.item_identifier = Some(record);
            failure
        });
        let mut response = DynamoDbEventResponse::default();
        response.batch_item_failures = failures.collect();
        response
    }

    /// Indexes the runs that have changed; returns those that failed.
    async fn index_changed(&self, work: &Work) -> Vec<Subject> {
        let changed: Vec<_> = work.changed_runs().cloned().collect();
        let mut failed = Vec::new();
        for runs in changed.chunks(RUNS_AT_ONCE) {
            // For each portion anew: a batch may take minutes, and a rebuild counts on what was set before it began.
            match Setting::read(&self.table).await {
                Ok(setting) => failed.extend(self.runs_index(runs, &setting.indexed).await),
                Err(failure) => {
                    tracing::error!(?failure, "the indexed fields could not be read");
                    failed.extend(runs.iter().cloned());
                }
            }
        }
        failed.into_iter().map(Subject::Run).collect()
    }

    /// Indexes runs; returns those that failed.
    async fn runs_index(&self, runs: &[RunLocation], fields: &search::IndexedFields) -> Vec<RunLocation> {
        let Err(failure) = self.index_runs(runs, fields).await else { return Vec::new() };
        if let [run] = runs {
            tracing::error!(?failure, ?run, "a run could not be indexed");
            return vec![run.clone()];
        }
        tracing::warn!(?failure, "runs could not be indexed together");
        let mut failed = Vec::new();
        for run in runs {
            failed.extend(Box::pin(self.runs_index(std::slice::from_ref(run), fields)).await);
        }
        failed
    }
}
