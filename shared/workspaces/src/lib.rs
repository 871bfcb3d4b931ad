//! Workspaces: what the table says of each, and deleting one.
//!
//! A workspace is an item in a partition of its own, beside the rows that list its experiments, registered models, evaluation datasets and
//! scorers. Everything else is found by ids, and says its workspace in an attribute; only the keys of registered models begin with it.
//!
//! So a workspace is deleted by moving what these rows list: to the default workspace, or to one that no request can name, whose contents are
//! removed later ([`Workspace::for_removal`](mlflow_api::Workspace::for_removal)). Either way nothing is left under the name, and a workspace
//! that gets it anew has nothing of the one before (`docs/adr/0052-workspaces.md`).

mod delete;
mod document;
mod moving;
mod removal;
mod store;
mod usage;

pub use delete::Mode;
pub use document::{Change, Document};
pub use store::Workspaces;
pub use usage::{Day, Quota};
