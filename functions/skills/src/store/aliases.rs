//! Aliases of versions.

use access::Granted;
use mlflow_api::skills::{SetSkillAlias, SkillStatus, SkillVersion};
use mlflow_api::{Error, Result, SkillName};
use table::Failure;

use super::errors::{alias_not_found, entity_not_found};
use super::skill_document::LATEST_ALIAS;
use super::store::Store;

/// Checks whether an alias is the reserved alias `latest`, regardless of case.
pub(crate) fn is_latest(alias: &str) -> bool {
    alias.to_lowercase() == LATEST_ALIAS
}

impl Store {
    /// Sets an alias. Takes three requests.
    ///
    /// # Errors
    /// Fails with `RESOURCE_DOES_NOT_EXIST` if the skill or the version does not exist, or if the
    /// version is deleted.
    pub async fn alias_set(&self, name: &Granted<SkillName>, alias: &SetSkillAlias) -> Result<()> {
        let SetSkillAlias { alias, version } = alias;
        let not_found = || {
            Error::not_found(format!(
                "Skill version '{}' version '{version}' not found or is deleted",
                SkillName::name(name)
            ))
        };
        let mut attempts = self.table.attempts("a skill");
        loop {
            attempts.next().await?;
            let mut skill = self.skill_find(name).await?.ok_or_else(not_found)?;
            let found = self.version_row(skill.id, *version).await?;
            found.filter(|found| found.status != SkillStatus::Deleted).ok_or_else(not_found)?;
            skill.aliases.insert(alias.clone(), *version);
            // Deleting a version also writes the document. If this version has been deleted in the
            // meantime, the write is refused, so the transaction does not check the version's row.
            match self.table.transact(&[skill.write()?]).await {
                Ok(()) => return Ok(()),
                Err(Failure::Cancelled(_)) => {}
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    /// Reads the version that an alias refers to. Takes two requests.
    pub async fn alias_get(&self, name: &Granted<SkillName>, alias: &str) -> Result<SkillVersion> {
        let found = self.skill_find(name).await?;
        let of = SkillName::name(name);
        let (skill, version) = if is_latest(alias) {
            let skill = found.ok_or_else(|| entity_not_found(name))?;
            let none = || Error::not_found(format!("No resolved latest version found for skill '{of}'"));
            let latest = skill.latest.ok_or_else(none)?;
            (skill, latest.version)
        } else {
            let not_found = || alias_not_found(alias, "for", name);
            let skill = found.ok_or_else(not_found)?;
            let version = skill.aliases.get(alias).copied().ok_or_else(not_found)?;
            (skill, version)
        };
        let stored = self.version_row(skill.id, version).await?;
        let stored = stored.filter(|stored| stored.status != SkillStatus::Deleted).ok_or_else(|| {
            Error::not_found(format!("Alias '{alias}' for skill '{of}' points to a missing or deleted version"))
        })?;
        Ok(stored.answer(&skill))
    }

    /// Deletes an alias. Takes two requests.
    ///
    /// # Errors
    /// Fails with `RESOURCE_DOES_NOT_EXIST` if the skill has no such alias.
    pub async fn alias_delete(&self, name: &Granted<SkillName>, alias: &str) -> Result<()> {
        let not_found = || alias_not_found(alias, "on", name);
        let change = |skill: &mut super::skill_document::StoredSkill| {
            skill.aliases.remove(alias).map(drop).ok_or_else(not_found)
        };
        self.skill_change(name, not_found, change).await.map(drop)
    }
}
