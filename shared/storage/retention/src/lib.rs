//! Permanent deletion of deleted runs, logged models and experiments, with their artifacts, and of
//! expired traces and metric histories.
//!
//! A **removal** is a row in the partition `REMOVAL`, and the steps that follow it ([`removal_claims`]).
//! While the row exists, the entity cannot be restored, because restoring checks that there is no
//! such row. The **policy** is the setting for how long deleted entities are kept ([`policy`]).
//!
//! `mlflow-serverless gc` → `Retention::deleted`, then `Retention::remove`:
//!
//! 1. [`deleted_entities`] lists the deleted experiments of each workspace. For every other experiment, it
//!    lists the runs that were individually deleted (LSI1) and the deleted logged models. If there
//!    is an age, it reads when they were deleted. [`named_entities`] checks IDs that an operator gives
//!    instead.
//! 2. [`unfinished_removals`] continues with rows in `REMOVAL` that an earlier removal left.
//! 3. [`runs`] puts 25 rows into `REMOVAL`, and then reads the runs and their experiment. A run
//!    that was restored before its row was written is kept.
//! 4. It deletes their artifacts. If the artifacts of a run cannot be deleted, its document is
//!    kept, and its row is deleted again.
//! 5. One transaction deletes the documents, on condition that they and the experiment's stage
//!    version have not changed since they were read.
//! 6. The crate `run-index` deletes the copy, entries, rows and history of each run
//!    (`RunIndex::clear_up_run`). The rows in `REMOVAL` are deleted last. The stream makes the
//!    indexer check once more, in case of late writes.
//!
//! A removal may therefore stop anywhere: the next one finds the rows and continues. [`slice`]
//! relies on that: `serve` and `functions/housekeeper` run removals for some minutes at a time.
//!
//! [`models`] does the same for logged models. [`experiment`] does it for all runs, logged models
//! and traces of an experiment, before the experiment itself. [`expired_traces`] deletes expired traces,
//! and [`trace_files`] the files of deleted traces (`docs/design/traces-at-rest.md`). [`histories`]
//! deletes metric histories (`docs/design/run-metrics.md`).

mod age;
mod artifacts;
mod deleted_entities;
mod deletion_condition;
mod experiment;
mod expired_day;
mod expired_traces;
mod failures;
mod histories;
mod history_scan;
mod models;
mod named_entities;
mod policy;
mod removal;
mod removal_claims;
mod report;
mod runs;
mod store;
mod timed_removal;
mod trace_files;
mod traces;
mod unfinished_removals;

pub use age::DeletionAge;
pub use deleted_entities::EntitiesToDelete;
pub use expired_traces::ExpiredTraces;
pub use history_scan::HistoryScans;
pub use named_entities::NamedEntities;
pub use policy::RetentionPolicy;
pub use report::{LogReport, RemovalReport, RemovedEntity};
pub use store::Retention;
