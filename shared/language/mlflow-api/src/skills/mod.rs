//! Messages of the registry of skills (`mlflow/server/skill_registry_api.py`).

mod bodies;
mod content_path;
mod image_reference;
mod limits;
mod registration;
mod responses;
mod search_parameters;
mod source;

pub use bodies::{NewSkill, SetSkillAlias, SetSkillTag, UpdatedSkill, UpdatedSkillVersion, version_in_path};
pub use content_path::{canonical_path, composed_path, display_path};
pub use limits::{
    ContentLimits, MAX_ARCHIVE_SLACK, MAX_DOCUMENT_BYTES, MAX_METADATA_BYTES, MAX_PAGE, MULTIPART_OVERHEAD,
    check_alias, check_tag,
};
pub use registration::BulkRegistration;
pub use responses::{BulkRegisterResponse, Skill, SkillAlias, SkillVersion, SkillVersionsResponse, SkillsResponse};
pub use search_parameters::{SkillSearchParameters, selected_names};
pub use source::{SkillRegistration, SkillSource, SourceType};

pub use crate::mcp_servers::{AllowedAction, McpStatus as SkillStatus};
