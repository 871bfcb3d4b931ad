//! Names of attributes of the registry's items, beside those that other domains have as well.

pub(super) use entities::attributes::{CREATED, NAME, STAGE, TAG_ROWS, TAGS, UPDATED};

/// Of a model and its home: tells it from every other model, whatever their names were.
pub(super) const ID: &str = "id";
/// Of a model: the name of its home, where that is not its own. Of a version of a run: likewise.
pub(super) const HOME: &str = "home";
/// Of a model: counts the writes to its document.
pub(super) const EDITS: &str = "edits";
/// Of a model: how many versions it has had.
pub(super) const COUNT: &str = "versions";
/// Of a model: the greatest version of each stage, a map.
pub(super) const LATEST: &str = "latest";
/// Of a model: the version each alias stands for, a map.
pub(super) const ALIASES: &str = "aliases";
/// Of a model and its home: when the model was last renamed, in ms. To MLflow, this changes all its versions.
pub(super) const RENAMED: &str = "renamed";
/// Of a model or a version: its description.
pub(super) const DESCRIPTION: &str = "description";
/// Of a version: where it is, as the client says.
pub(super) const SOURCE: &str = "source";
/// Of a version: where its artifacts are, if that is not its source.
pub(super) const STORAGE: &str = "storage";
/// Of a version: its run.
pub(super) const RUN: &str = "run";
/// Of a version: a link to its run.
pub(super) const RUN_LINK: &str = "run_link";
/// Of a version: how many tags were set without a look at how much it holds already.
pub(super) const UNSEEN: &str = "unseen";
