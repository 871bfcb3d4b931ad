//! Access to the data of the skill registry in the table, and to uploaded content in the artifact
//! store. The names of methods start with the resource: `skill`, `version`, `alias`, `content`.

mod aliases;
mod concurrent_writes;
mod errors;
mod latest_version;
mod registration;
mod skill_document;
mod skill_search;
mod skills;
#[expect(clippy::module_inception, reason = "the store itself, which the other files use")]
mod store;
mod uploaded_content;
mod version_change;
mod version_row;
mod version_search;

pub(crate) use aliases::is_latest;
pub(crate) use errors::skill_not_found;
pub use registration::NewSkillVersion;
pub use skill_document::{LatestVersion, StoredSkill};
pub use store::Store;
pub(crate) use store::caller_name;
pub use version_row::StoredVersion;
