//! Workspaces: their documents, deletion and usage.
//!
//! A **workspace** is a namespace of experiments, registered models and evaluation datasets, with
//! its own roles. Each workspace is an item in its own partition, next to the rows that list its
//! experiments, registered models, evaluation datasets and scorers. All other entities are found by
//! id, and store the name of their workspace in an attribute. Only the keys of registered models
//! begin with the workspace. Entities of the workspace `default` have neither the attribute nor the
//! prefix.
//!
//! A workspace is deleted by moving the entities that these rows list. The destination is the
//! default workspace, or a workspace named `.<id>` that no request can name, whose contents are
//! removed later ([`Workspace::for_removal`](mlflow_api::Workspace::for_removal)). Either way,
//! nothing is left under the name, and a new workspace of that name does not inherit anything
//! (`docs/adr/0052-workspaces.md`).
//!
//! `DELETE workspaces/{workspace_name}` → `workspaces::Delete` → `Workspaces::begin_deletion`, then
//! `Workspaces::finish_deletion`:
//!
//! 1. `deletion.rs` checks that the mode allows it: nothing is listed, or no name is taken in
//!    `default`.
//! 2. One transaction writes the destination of the contents into the item. From then on, `check`
//!    in `shared/http/access/src/workspaces.rs` rejects writes.
//! 3. The call waits 300 ms, and then checks once more.
//! 4. `functions/auth` deletes the roles of the workspace, and revokes grants in it.
//! 5. `contents_move.rs` moves each experiment, model, dataset and scorer in its own transaction.
//!    With `CASCADE`, the destination is a workspace that no request can name.
//! 6. The rows of usage, the item and its list row are deleted. Then the call returns.
//!
//! `gc` and `serve` remove the contents of a workspace that no request can name. Experiments are
//! removed by the crate `retention`, models and datasets by `removal.rs`, and the list row last.
//! `usage.rs` counts a workspace's daily usage and enforces its quotas.

mod contents_move;
mod deletion;
mod document;
mod removal;
mod store;
mod usage;

pub use deletion::WorkspaceDeletionMode;
pub use document::{WorkspaceChange, WorkspaceDocument};
pub use store::Workspaces;
pub use usage::{DailyUsage, WorkspaceQuota};
