//! MLflow's errors for entities that do not exist.

use mlflow_api::{Error, SkillName, python};

/// Returns the error for a missing skill, in requests that read, change or delete the skill.
pub(crate) fn skill_not_found(name: &SkillName) -> Error {
    Error::not_found(format!("Skill '{}' not found in organization '{}'", name.name(), name.organization()))
}

/// Returns the error for a missing skill, in requests that set a tag of the skill or read its
/// latest version by the alias `latest`.
pub(super) fn entity_not_found(name: &SkillName) -> Error {
    Error::not_found(format!(
        "Skill not found (name={}, organization={})",
        python::repr(name.name()),
        python::repr(name.organization())
    ))
}

/// Returns the error for a missing version.
pub(super) fn version_not_found(name: &SkillName, version: u32) -> Error {
    Error::not_found(format!("Skill version '{}' version '{version}' not found", name.name()))
}

/// Returns the error for a missing alias. `of` is the preposition between the alias and the skill,
/// which differs between MLflow's messages.
pub(super) fn alias_not_found(alias: &str, of: &str, name: &SkillName) -> Error {
    Error::not_found(format!("Alias '{alias}' not found {of} skill '{}'", name.name()))
}

/// Returns the error for a missing tag of a skill.
pub(super) fn tag_not_found(name: &SkillName, key: &str) -> Error {
    Error::not_found(format!("Tag '{key}' not found on Skill '{}'", name.name()))
}
