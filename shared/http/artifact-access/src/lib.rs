//! Access to paths below `mlflow-artifacts:/`, including the directories of model versions.
//!
//! Most paths begin with an experiment, whose grants apply ([`needs`]). Paths below
//! `model-versions/` are virtual: they name a version of a registered model, whose grants apply
//! instead ([`VersionDirectory`]). The server resolves such a path to the location of the version's
//! artifacts ([`StoredVersion::artifacts`], `docs/adr/0067-artifacts-of-model-versions.md`).

mod file_response;
mod path_needs;
mod stored_version;
mod version_directory;

pub use file_response::{path_argument, send_file, send_file_or_url};
pub use path_needs::{
    check_deletable, check_writable, experiment_of, in_workspace, is_run, needs, needs_to_share, skill_of,
};
pub use stored_version::{StoredVersion, read_version};
pub use version_directory::VersionDirectory;
