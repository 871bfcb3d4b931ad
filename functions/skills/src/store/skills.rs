//! Creation, lookup, change and deletion of skills, and changes of their tags.

use access::{Granted, Guard, Resource};
use entities::{if_closed, now_ms};
use key_schema::{Digest, rows};
use mlflow_api::skills::{NewSkill, SetSkillTag, Skill, UpdatedSkill};
use mlflow_api::{Error, ErrorCode, Json, Result, SkillName};
use rand::RngExt;
use retention::skill_content::ContentRemoval;
use table::{ChangePlan, Condition, Failure, Item, Write, WriteRefusal};

use super::errors::{entity_not_found, skill_not_found, tag_not_found};
use super::skill_document::StoredSkill;
use super::store::Store;

impl Store {
    /// Reads a skill, if it exists and is the one that the request was authorized for. Takes one
    /// request.
    pub(super) async fn skill_find(&self, name: &SkillName) -> Result<Option<StoredSkill>> {
        let key = StoredSkill::key(&self.authorizer_writes.workspace(), name);
        let skill = self.table.get(&key).await?.map(StoredSkill::of).transpose()?;
        // Since the request was authorized, the skill may have been deleted, and another one
        // created with the same name.
        Ok(skill.filter(|skill| self.authorizer_writes.is_authorized_skill(name, &skill.id_text())))
    }

    /// Changes the document of a skill. Takes two requests, and two more each time the write is
    /// refused because of a concurrent change of the document.
    pub(super) async fn skill_change<T>(
        &self,
        name: &SkillName,
        not_found: impl Fn() -> Error,
        mut change: impl FnMut(&mut StoredSkill) -> Result<T>,
    ) -> Result<(StoredSkill, T)> {
        let mut attempts = self.table.attempts("a skill");
        loop {
            attempts.next().await?;
            let mut skill = self.skill_find(name).await?.ok_or_else(&not_found)?;
            let answer = change(&mut skill)?;
            match self.table.transact(&[skill.write()?]).await {
                Ok(()) => return Ok((skill, answer)),
                Err(Failure::Cancelled(_)) => {}
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    /// Returns the writes of a skill's creation in addition to its document: the check that the
    /// workspace is not being deleted, and the creator's grant.
    pub(super) fn skill_creation_writes(&self, skill: &StoredSkill) -> (Option<Write>, Vec<Write>) {
        let writes = &self.authorizer_writes;
        let guard = Guard::Skill(skill.name.clone());
        let grant = writes.writes_of_creation(Resource::Skill, &guard, &skill.id_text(), &skill.name.to_string());
        (writes.workspace_open_condition(&skill.workspace), grant)
    }

    /// Returns a new skill in the request's workspace. Does not write it.
    pub(super) fn new_skill(&self, name: &SkillName, user: Option<&str>) -> StoredSkill {
        StoredSkill::new(self.authorizer_writes.workspace(), name.clone(), rand::rng().random(), now_ms(), user)
    }

    /// Creates a skill. Takes one request.
    ///
    /// # Errors
    /// Fails with `RESOURCE_ALREADY_EXISTS` if there is a skill with this name.
    pub async fn skill_create(&self, new: &NewSkill, user: Option<&str>) -> Result<Skill> {
        let mut skill = self.new_skill(&new.name, user);
        skill.description.clone_from(&new.description);
        skill.icons = new.icons.as_ref().map(Json::print_unicode);
        let (check, grant) = self.skill_creation_writes(&skill);
        let has_check = check.is_some();
        let others = check.into_iter().chain(grant).collect();
        match self.table.create(skill.to_item()?, others).await {
            Ok(()) => skill.answer(),
            Err(Failure::Cancelled(reasons)) => {
                if matches!(reasons.first(), Some(WriteRefusal::Refused(_))) {
                    return Err(Error::new(
                        ErrorCode::ResourceAlreadyExists,
                        format!(
                            "Skill '{}' already exists in organization '{}'",
                            new.name.name(),
                            new.name.organization()
                        ),
                    ));
                }
                let closed = if_closed(&skill.workspace, reasons.get(1).filter(|_| has_check));
                Err(closed.unwrap_or_else(|| Failure::Cancelled(reasons).into()))
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// Reads a skill. Takes one request.
    pub async fn skill_get(&self, name: &Granted<SkillName>) -> Result<Skill> {
        self.skill_find(name).await?.ok_or_else(|| skill_not_found(name))?.answer()
    }

    /// Changes the description and the icons of a skill. Takes two requests.
    pub async fn skill_update(
        &self,
        name: &Granted<SkillName>,
        update: &UpdatedSkill,
        user: Option<&str>,
    ) -> Result<Skill> {
        let change = |skill: &mut StoredSkill| {
            if let Some(description) = &update.description {
                skill.description.clone_from(description);
            }
            if let Some(icons) = &update.icons {
                skill.icons = icons.as_ref().map(Json::print_unicode);
            }
            skill.updated = now_ms();
            skill.updated_by = user.map(str::to_owned);
            Ok(())
        };
        let (skill, ()) = self.skill_change(name, || skill_not_found(name), change).await?;
        skill.answer()
    }

    /// Deletes a skill with its versions and their uploaded content. Takes two requests to delete
    /// the skill, one per MB of versions, one per 25 versions, one to delete the row that lists the
    /// deleted skill, and those that delete the files.
    pub async fn skill_delete(&self, name: &Granted<SkillName>) -> Result<()> {
        let deleted = self
            .table
            .change("a skill", async |_| {
                let skill = self.skill_find(name).await?.ok_or_else(|| skill_not_found(name))?;
                let id = Digest(skill.id);
                let removal = Item::new(rows::SkillRemoval::key(&id));
                let mut writes = vec![
                    Write::Delete(StoredSkill::key(&skill.workspace, &skill.name), skill.is_unchanged()),
                    Write::Put(removal, Condition::Always),
                ];
                writes.extend(self.authorizer_writes.writes_of_deletion(&Guard::Skill(skill.name.clone())));
                Ok::<_, Error>(ChangePlan::Write(writes, id))
            })
            .await?;
        // The skill is already deleted, so the request must not fail if the removal of its versions
        // does. The housekeeper completes the removal.
        if let Err(error) = ContentRemoval::new(&self.table, &self.artifacts).finish_skill(deleted).await {
            tracing::warn!(%error, "versions of a deleted skill remain");
        }
        Ok(())
    }

    /// Sets a tag. Takes two requests.
    pub async fn skill_set_tag(&self, name: &Granted<SkillName>, tag: &SetSkillTag) -> Result<()> {
        let change = |skill: &mut StoredSkill| {
            skill.tags.insert(tag.key.clone(), tag.value.clone());
            Ok(())
        };
        self.skill_change(name, || entity_not_found(name), change).await.map(drop)
    }

    /// Deletes a tag. Takes two requests.
    ///
    /// # Errors
    /// Fails with `RESOURCE_DOES_NOT_EXIST` if the skill has no such tag.
    pub async fn skill_delete_tag(&self, name: &Granted<SkillName>, key: &str) -> Result<()> {
        let not_found = || tag_not_found(name, key);
        let change = |skill: &mut StoredSkill| skill.tags.remove(key).map(drop).ok_or_else(not_found);
        self.skill_change(name, not_found, change).await.map(drop)
    }
}
