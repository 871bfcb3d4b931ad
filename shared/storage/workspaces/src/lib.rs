//! Workspaces: what the table says of each, and deleting one.
//!
//! A **workspace** is a namespace of experiments, registered models and evaluation datasets, with
//! roles of its own. `default` has no prefix and no attribute. Each is an item in a partition of
//! its own, with the rows that list its experiments, registered models, evaluation datasets and
//! scorers. Everything else is found by ids, and says its workspace in an attribute. Only the keys
//! of registered models begin with it.
//!
//! So a workspace is deleted by moving what these rows list. The destination is the default
//! workspace, or one named `.<id>` that no request can name, whose contents are removed later
//! ([`Workspace::for_removal`](mlflow_api::Workspace::for_removal)). Either way nothing is left
//! under the name, and a new workspace of that name has nothing of the old one
//! (`docs/adr/0052-workspaces.md`).
//!
//! `DELETE workspaces/{workspace_name}` → `workspaces::Delete` → `Workspaces::begin_deletion`, then
//! `Workspaces::finish_deletion`:
//!
//! 1. `delete.rs` checks that the mode allows it: nothing is listed, or no name is taken in
//!    `default`.
//! 2. One transaction writes the destination of the contents into the item. From then on, `check`
//!    in `shared/http/access/src/workspaces.rs` refuses writes.
//! 3. The call waits 300 ms, then checks once more.
//! 4. `functions/auth` revokes the roles of the workspace.
//! 5. `moving.rs` moves each experiment, model, dataset and scorer in a transaction of its own.
//!    After `CASCADE` they are in a workspace that no request can name.
//! 6. The rows of usage, the item and its list row are deleted. Then the call is answered.
//!
//! `gc` and `serve` remove the contents of a workspace that no request can name. Experiments go as
//! in the crate `retention`, models and datasets by `removal.rs`, the list row last. `usage.rs`
//! counts a workspace's days and holds it to its quotas.

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
