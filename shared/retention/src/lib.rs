//! Removing for good what was deleted: runs, logged models and experiments, with their artifacts.
//!
//! Each is removed in steps, and the first is a row in the partition `REMOVAL` that says so ([`claim`]). From then on it cannot be
//! restored: restoring checks that there is no such row. What was restored before is seen when it is read behind the row, and stays. Then
//! come the artifacts, the entity's own item, all that hangs on it, and the row last. So a removal may stop anywhere: whoever begins the
//! next one finds the rows and goes on ([`resume`]). What hangs on an entity is cleared up by the indexer's own code, here at once; the
//! stream has the indexer look once more, for what a late write or the indexer itself has put there meanwhile.
//!
//! [`find`] says what is deleted and old enough, [`named`] checks what an operator names, [`remove`] removes it by [`runs`], [`models`] and [`experiment`],
//! [`policy`] is the setting that says how long what was deleted is kept. Traces that are kept no longer go by [`expired`], and files of those that are
//! gone by [`trace_files`].

mod age;
mod artifacts;
mod claim;
mod experiment;
mod expired;
mod expired_day;
mod failures;
mod find;
mod models;
mod named;
mod policy;
mod remove;
mod report;
mod resume;
mod runs;
mod store;
mod trace_files;
mod traces;
mod which;

pub use age::Age;
pub use expired::ExpiredTraces;
pub use find::Found;
pub use named::Named;
pub use policy::Policy;
pub use report::{Entity, Report};
pub use store::Retention;
