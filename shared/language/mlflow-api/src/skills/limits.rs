//! Limits on skills, and the checks of aliases and tags.

use crate::{Error, Result, limits_registry};

/// Maximum size of a skill's document, in bytes. It mainly consists of the description, icons, tags
/// and aliases.
pub const MAX_DOCUMENT_BYTES: usize = 256 << 10;
/// Maximum number of skills or versions on a page (`SEARCH_SKILL_REGISTRY_MAX_RESULTS_THRESHOLD`).
pub const MAX_PAGE: i64 = 1_000;
/// Maximum size of the metadata in an upload, in bytes (`_MAX_REGISTRATION_METADATA_SIZE`).
pub const MAX_METADATA_BYTES: usize = 1 << 20;
/// Number of bytes by which a compressed archive may exceed the maximum size of its content
/// (`_UPLOAD_SIZE_SLACK`).
pub const MAX_ARCHIVE_SLACK: usize = 1 << 20;
/// Number of bytes that the body of an upload may have in addition to the archive
/// (`_MULTIPART_REQUEST_OVERHEAD`).
pub const MULTIPART_OVERHEAD: usize = 2 << 20;

/// Limits on the content of a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentLimits {
    /// Maximum size of all files together, in bytes.
    pub bytes: usize,
    /// Maximum number of files and directories together.
    pub files: usize,
}

impl ContentLimits {
    /// The limits of MLflow (`MLFLOW_SKILL_CONTENT_MAX_DECOMPRESSED_SIZE`, `MAX_ARCHIVE_ENTRIES`).
    pub const MLFLOW: Self = Self { bytes: 25 << 20, files: 10_000 };
    /// The limits of a Lambda, which receives at most 6 MB and has to store the files within the
    /// timeout of the gateway.
    pub const LAMBDA: Self = Self { bytes: 4 << 20, files: 1_000 };
}

/// Checks an alias (`_validate_alias_name`, `_validate_alias_name_reserved`). `latest` is reserved
/// for the latest version, and clients cannot set it.
///
/// # Errors
/// Fails with `INVALID_PARAMETER_VALUE` if MLflow refuses the alias.
pub fn check_alias(alias: &str) -> Result<()> {
    if alias.is_empty() {
        return Err(Error::invalid("Skill alias name cannot be empty."));
    }
    limits_registry::new_alias(alias).map_err(|error| {
        let message = error.message.replacen("'Registered model alias name'", "'Skill alias name'", 1);
        Error { message, ..error }
    })
}

/// Checks a tag (`_validate_skill_tag`).
///
/// # Errors
/// Fails with `INVALID_PARAMETER_VALUE` if MLflow refuses the key or the value.
pub fn check_tag(key: &str, value: &str) -> Result<()> {
    limits_registry::model_tag(key, value)
}
