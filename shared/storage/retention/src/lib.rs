//! Permanent deletion of deleted runs, logged models and experiments, with their artifacts, and of
//! expired traces and metric histories. Also archives traces to files.
//!
//! A **removal** consists of a row in the partition `REMOVAL` and the steps that follow it
//! ([`removal_claims`]). While the row exists, the entity cannot be restored, because restoring
//! checks that there is no such row. The **policy** is the setting for how long deleted entities
//! are kept ([`policy`]).
//!
//! `mlflow-serverless gc` calls `Retention::deleted` and then `Retention::remove`. The steps are:
//!
//! 1. [`deleted_entities`] lists the deleted experiments of each workspace. For every other
//!    experiment, it lists the runs that were individually deleted (with the local index LSI1) and
//!    the deleted logged models. If there is a minimum age, it also reads when they were deleted.
//!    If an operator names entities instead, [`named_entities`] checks their IDs.
//! 2. [`unfinished_removals`] continues with rows in `REMOVAL` that an earlier removal left.
//! 3. [`runs`] writes rows for 25 runs into `REMOVAL`, and then reads the runs and their
//!    experiment. A run that was restored before its row was written is kept.
//! 4. [`runs`] deletes the artifacts of the other runs. If the artifacts of a run cannot be
//!    deleted, its document is kept, and its row in `REMOVAL` is deleted again.
//! 5. One transaction deletes the documents of the runs, on condition that they and the
//!    experiment's stage version have not changed since they were read.
//! 6. The crate `run-index` deletes the copy, index entries, rows and history of each run
//!    (`RunIndex::clear_up_run`). The rows in `REMOVAL` are deleted last. The deletions also appear
//!    in the stream, where the indexer checks once more for late writes.
//!
//! A removal may stop at any point, because the next one finds the rows in `REMOVAL` and continues.
//! [`timed_removal`] relies on this: `serve` and `functions/housekeeper` run removals for some
//! minutes at a time.
//!
//! [`models`] deletes logged models in the same way. [`experiment`] deletes all runs, logged models
//! and traces of an experiment before the experiment itself. [`expired_traces`] deletes expired
//! traces, and [`trace_files`] the files of deleted traces (`docs/design/traces-at-rest.md`).
//! [`histories`] deletes metric histories, [`archived_histories`] moves long ones to the archive
//! (`docs/design/run-metrics.md`), and [`registry_removals`] what
//! is left of deleted MCP servers and skills, and of uploads that were not completed.
//! [`trace_archive`] archives the spans of old traces, and deletes unused objects of the archive.
//! [`mlflow_archival`] archives traces to files, as MLflow does it.
//! [`skill_content`] is also used by the function `skills`, which writes and deletes this content.

mod age;
mod archive_age;
mod archived_histories;
mod artifacts;
mod deleted_entities;
mod deletion_condition;
mod experiment;
mod expired_day;
mod expired_traces;
mod failures;
mod histories;
mod history_scan;
mod mlflow_archival;
mod models;
mod named_entities;
mod policy;
mod registry_removals;
mod removal;
mod removal_claims;
mod report;
mod run_scan;
mod runs;
pub mod skill_content;
mod store;
mod timed_removal;
mod trace_archive;
mod trace_files;
mod traces;
mod unfinished_removals;

pub use age::DeletionAge;
pub use archive_age::HistoryArchiveAge;
pub use deleted_entities::EntitiesToDelete;
pub use expired_traces::ExpiredTraces;
pub use history_scan::HistoryScans;
pub use named_entities::NamedEntities;
pub use policy::RetentionPolicy;
pub use report::{LogReport, RemovalReport, RemovedEntity};
pub use store::Retention;
pub use trace_archive::ArchiveDifferences;
