//! Lookup, change and deletion of versions, and changes of their tags.

use access::Granted;
use entities::now_ms;
use mlflow_api::skills::{SetSkillTag, SkillStatus, SkillVersion};
use mlflow_api::{Error, Result, SkillName};
use table::{ChangePlan, Failure};

use super::errors::version_not_found;
use super::skill_document::StoredSkill;
use super::store::Store;
use super::version_row::StoredVersion;

impl Store {
    /// Reads the row of a version, which may be deleted. Takes one request.
    pub(super) async fn version_row(&self, skill: u64, version: u32) -> Result<Option<StoredVersion>> {
        self.table.get(&StoredVersion::key(skill, version)).await?.map(StoredVersion::of).transpose()
    }

    /// Reads a skill and one of its versions. A deleted version counts as missing. Takes two
    /// requests.
    async fn version_find(&self, name: &SkillName, version: u32) -> Result<(StoredSkill, StoredVersion)> {
        let not_found = || version_not_found(name, version);
        let skill = self.skill_find(name).await?.ok_or_else(not_found)?;
        let found = self.version_row(skill.id, version).await?;
        let found = found.filter(|found| found.status != SkillStatus::Deleted).ok_or_else(not_found)?;
        Ok((skill, found))
    }

    /// Reads a version. Takes two requests.
    pub async fn version_get(&self, name: &Granted<SkillName>, version: u32) -> Result<SkillVersion> {
        let (skill, version) = self.version_find(name, version).await?;
        Ok(version.answer(&skill))
    }

    /// Changes the status of a version, or only reads the version if the request sets no status.
    /// Takes three requests. If the version is the latest one and its new status is not active,
    /// takes one more per MB of versions.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if MLflow does not allow the change from the current
    /// status.
    pub async fn version_update(
        &self,
        name: &Granted<SkillName>,
        version: u32,
        status: impl Fn() -> Result<Option<SkillStatus>>,
        user: Option<&str>,
    ) -> Result<SkillVersion> {
        let mut attempts = self.table.attempts("a version of a skill");
        loop {
            attempts.next().await?;
            let (mut skill, mut found) = self.version_find(name, version).await?;
            let Some(status) = status()? else { return Ok(found.answer(&skill)) };
            self.version_set_status(&mut skill, &mut found, status, user).await?;
            match self.table.transact(&[found.write(), skill.write()?]).await {
                Ok(()) => return Ok(found.answer(&skill)),
                Err(Failure::Cancelled(_)) => {}
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    /// Changes the status of a version, and updates the aliases and the latest version of its skill
    /// accordingly. The caller has to write both.
    async fn version_set_status(
        &self,
        skill: &mut StoredSkill,
        version: &mut StoredVersion,
        status: SkillStatus,
        user: Option<&str>,
    ) -> Result<()> {
        version.status.check_change(status)?;
        version.status = status;
        version.updated = now_ms();
        version.updated_by = user.map(str::to_owned);
        if status == SkillStatus::Deleted {
            skill.aliases.retain(|_, other| *other != version.version);
        }
        self.update_latest(skill, version).await
    }

    /// Deletes a version and the aliases that refer to it. The row and the content of the version
    /// remain until the skill is deleted. Takes three requests. If the version is the latest one,
    /// takes one more per MB of versions.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if the version is active.
    pub async fn version_delete(&self, name: &Granted<SkillName>, version: u32, user: Option<&str>) -> Result<()> {
        let change = self.table.change("a version of a skill", async |_| {
            let (mut skill, mut found) = self.version_find(name, version).await?;
            self.version_set_status(&mut skill, &mut found, SkillStatus::Deleted, user).await?;
            Ok::<_, Error>(ChangePlan::Write(vec![found.write(), skill.write()?], ()))
        });
        Box::pin(change).await
    }

    /// Sets a tag of a version. Takes three requests.
    pub async fn version_set_tag(&self, name: &Granted<SkillName>, version: u32, tag: &SetSkillTag) -> Result<()> {
        self.version_change(
            || self.version_find(name, version),
            |stored| {
                stored.tags.insert(tag.key.clone(), tag.value.clone());
                stored.check_tags()
            },
        )
        .await
    }

    /// Deletes a tag of a version, even if the version is deleted. Takes three requests.
    ///
    /// # Errors
    /// Fails with `RESOURCE_DOES_NOT_EXIST` if the version has no such tag.
    pub async fn version_delete_tag(&self, name: &Granted<SkillName>, version: u32, key: &str) -> Result<()> {
        let not_found = || {
            Error::not_found(format!(
                "Tag '{key}' not found on Skill version '{}' version '{version}'",
                SkillName::name(name)
            ))
        };
        let find = || async move {
            let skill = self.skill_find(name).await?.ok_or_else(not_found)?;
            let found = self.version_row(skill.id, version).await?.ok_or_else(not_found)?;
            Ok((skill, found))
        };
        self.version_change(find, |stored| stored.tags.remove(key).map(drop).ok_or_else(not_found)).await
    }

    async fn version_change<F: Future<Output = Result<(StoredSkill, StoredVersion)>>>(
        &self,
        find: impl Fn() -> F,
        mut change: impl FnMut(&mut StoredVersion) -> Result<()>,
    ) -> Result<()> {
        let mut attempts = self.table.attempts("a version of a skill");
        loop {
            attempts.next().await?;
            let (_, mut stored) = find().await?;
            change(&mut stored)?;
            match self.table.transact(&[stored.write()]).await {
                Ok(()) => return Ok(()),
                Err(Failure::Cancelled(_)) => {}
                Err(failure) => return Err(failure.into()),
            }
        }
    }
}
