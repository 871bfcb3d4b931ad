//! Removing for good what was deleted: runs, logged models and experiments, with their artifacts.
//! Also traces that are kept no longer.
//!
//! A **removal** is a row in the partition `REMOVAL`, and the steps that follow it ([`claim`]).
//! While it is there, the entity cannot be restored: restoring checks that there is no such row.
//! The **policy** is the setting that says how long deleted entities are kept ([`policy`]).
//!
//! `mlflow-serverless gc` → `Retention::deleted`, then `Retention::remove`:
//!
//! 1. [`find`] lists, in each workspace, the deleted experiments. Of each other experiment it lists
//!    the runs that were deleted on their own (LSI1) and the logged models. With an age, it reads
//!    when. [`named`] checks ids that an operator names instead.
//! 2. [`resume`] continues with rows in `REMOVAL` that an earlier removal left.
//! 3. [`runs`] puts 25 rows into `REMOVAL`. Then it reads the runs and their experiment: a run that
//!    was restored before its row stays.
//! 4. It deletes their artifacts. A run whose artifacts stay keeps its document, and its row is
//!    taken back.
//! 5. One transaction deletes the documents, if they and the experiment's stage version are still
//!    what was read.
//! 6. The crate `run-index` removes copy, entries, rows and history of each run
//!    (`RunIndex::clear_up_run`). The rows in `REMOVAL` go last. The stream has the indexer look
//!    once more, for late writes.
//!
//! So a removal may stop anywhere: the next one finds the rows and continues. [`slice`] relies on
//! that: `serve` and `functions/housekeeper` remove for some minutes at a time.
//!
//! [`models`] does the same for logged models. [`experiment`] does it with all runs, logged models
//! and traces of an experiment, before the experiment itself. [`expired`] removes traces that are
//! kept no longer, [`trace_files`] files of traces that are gone (`docs/traces-at-rest.md`).
//! [`histories`] removes histories of metrics (`docs/run-metrics.md`).

mod age;
mod artifacts;
mod claim;
mod experiment;
mod expired;
mod expired_day;
mod failures;
mod find;
mod histories;
mod looks;
mod models;
mod named;
mod policy;
mod remove;
mod report;
mod resume;
mod runs;
mod slice;
mod store;
mod trace_files;
mod traces;
mod which;

pub use age::Age;
pub use expired::ExpiredTraces;
pub use find::Found;
pub use looks::Looks;
pub use named::Named;
pub use policy::Policy;
pub use report::{Entity, Report, ToLog};
pub use store::Retention;
