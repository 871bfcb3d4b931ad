//! Creation of versions: single versions, uploads, and bulk registrations.

use access::Granted;
use entities::{if_closed, now_ms};
use futures::stream::TryStreamExt;
use key_schema::{Digest, rows};
use mlflow_api::skills::{BulkRegistration, SkillSource, SkillStatus, SkillVersion, SourceType};
use mlflow_api::{Error, ErrorCode, Result, SkillName};
use retention::skill_content::SkillUpload;
use table::{Failure, Query, WriteRefusal};

use super::skill_document::StoredSkill;
use super::store::Store;
use super::version_row::StoredVersion;
use crate::content::ContentFile;

/// A version to create.
#[derive(Clone, Debug)]
pub struct NewSkillVersion {
    /// Location of the content.
    pub source: SkillSource,
    /// Digest of the content, if the client sent one or the content was uploaded.
    pub digest: Option<String>,
    /// Status.
    pub status: SkillStatus,
}

/// How a version is registered.
enum VersionOrigin<'a> {
    /// A request registers a single version whose content is stored elsewhere.
    Remote,
    /// A request uploads the content of a single version.
    Upload(&'a SkillUpload),
    /// A request registers versions of several skills, and reuses equal versions.
    Bulk,
}

impl<'a> VersionOrigin<'a> {
    fn upload(&self) -> Option<&'a SkillUpload> {
        match self {
            Self::Upload(upload) => Some(upload),
            Self::Remote | Self::Bulk => None,
        }
    }
}

impl Store {
    /// Creates a version. If its skill does not exist, creates the skill in the same transaction.
    /// Takes two requests.
    pub async fn version_create(
        &self,
        name: &Granted<SkillName>,
        new: &NewSkillVersion,
        user: Option<&str>,
    ) -> Result<SkillVersion> {
        self.version_register(name, new, VersionOrigin::Remote, user).await
    }

    /// Stores the files of a version, and creates the version. Takes the two requests of
    /// [`version_create`](Self::version_create), one to record the upload, and those that store the
    /// files.
    pub(crate) async fn version_upload(
        &self,
        name: &Granted<SkillName>,
        (files, digest): (Vec<ContentFile>, String),
        status: SkillStatus,
        user: Option<&str>,
    ) -> Result<SkillVersion> {
        let upload = self.content_write(name, files).await?;
        let location = upload.directory().uri().to_owned();
        let source = SkillSource { kind: SourceType::Mlflow, location, reference: None, subpath: None };
        let new = NewSkillVersion { source, digest: Some(digest), status };
        let created = self.version_register(name, &new, VersionOrigin::Upload(&upload), user).await;
        if created.is_err() {
            self.content_abandon(&upload).await;
        }
        created
    }

    /// Registers versions, each in a transaction of its own, in the order of the names of their
    /// skills. If a skill already has a version with the same source and digest, returns that
    /// version and creates none. Takes two requests per skill, or three to add a version to an
    /// existing skill, assuming that its versions have less than 1 MB.
    ///
    /// # Errors
    /// Returns the first error, and does not register the skills after it. Repeating the request
    /// registers the rest.
    pub async fn version_register_many(
        &self,
        granted: impl Fn(&SkillName) -> Result<Granted<SkillName>>,
        bulk: &BulkRegistration,
        user: Option<&str>,
    ) -> Result<Vec<SkillVersion>> {
        let mut places: Vec<_> = (0..bulk.skills.len()).collect();
        places.sort_by_key(|place| bulk.skills.get(*place).map(|(name, ..)| name));
        let mut versions = vec![None; bulk.skills.len()];
        for place in places {
            let Some((name, source, digest)) = bulk.skills.get(place) else { continue };
            let name = granted(name)?;
            let new = NewSkillVersion { source: source.clone(), digest: Some(digest.clone()), status: bulk.status };
            let version = self.version_register(&name, &new, VersionOrigin::Bulk, user).await?;
            if let Some(slot) = versions.get_mut(place) {
                *slot = Some(version);
            }
        }
        Ok(versions.into_iter().flatten().collect())
    }

    /// Finds a version with the same source and digest that is not deleted. If there are several,
    /// returns the greatest one. Takes one request per MB of versions.
    async fn version_same(&self, skill: &StoredSkill, new: &NewSkillVersion) -> Result<Option<SkillVersion>> {
        let query = Query::of(rows::SkillVersion::all(&Digest(skill.id))).backwards();
        let mut pages = std::pin::pin!(entities::listing::pages(&self.table, query));
        while let Some(items) = pages.try_next().await? {
            for item in items {
                let version = StoredVersion::of(item)?;
                if version.status != SkillStatus::Deleted
                    && version.source == new.source
                    && version.digest == new.digest
                {
                    return Ok(Some(version.answer(skill)));
                }
            }
        }
        Ok(None)
    }

    async fn version_register(
        &self,
        name: &SkillName,
        new: &NewSkillVersion,
        origin: VersionOrigin<'_>,
        user: Option<&str>,
    ) -> Result<SkillVersion> {
        let mut attempts = self.table.attempts("a skill");
        loop {
            attempts.next().await?;
            let found = self.table.get(&StoredSkill::key(&self.authorizer_writes.workspace(), name)).await?;
            let mut skill = match found.map(StoredSkill::of).transpose()? {
                Some(skill) if self.authorizer_writes.is_authorized_skill(name, &skill.id_text()) => skill,
                None if !self.authorizer_writes.had_skill(name) => self.new_skill(name, user),
                // The request was authorized to create the skill and another one has created it, or
                // it was authorized to change a skill that has been deleted.
                _ => return Err(Error::new(ErrorCode::PermissionDenied, "Permission denied")),
            };
            let is_new = skill.item.is_none();
            // The transaction fails if the skill has changed since it was read, so that concurrent
            // registrations do not create the same version twice.
            if !is_new
                && matches!(origin, VersionOrigin::Bulk)
                && let Some(version) = self.version_same(&skill, new).await?
            {
                return Ok(version);
            }
            let created = now_ms();
            let number = skill.last_number.checked_add(1).filter(|number| i32::try_from(*number).is_ok());
            let number = number.ok_or_else(|| Error::invalid("The skill has too many versions."))?;
            let mut version = StoredVersion::new(skill.id, number, new.status, new.source.clone(), created);
            version.digest.clone_from(&new.digest);
            version.content_path = origin.upload().map(|upload| upload.directory().path().to_string());
            version.created_by = user.map(str::to_owned);
            version.updated_by = user.map(str::to_owned);
            skill.last_number = version.version;
            self.update_latest(&mut skill, &version).await?;
            let mut others = vec![skill.write()?];
            let mut has_check = false;
            if is_new {
                let (check, grant) = self.skill_creation_writes(&skill);
                has_check = check.is_some();
                others.extend(check.into_iter().chain(grant));
            }
            // The first write is that of the version.
            let completion = others.len() + 1;
            others.extend(origin.upload().map(SkillUpload::completion));
            match self.table.create(version.to_item(), others).await {
                Ok(()) => return Ok(version.answer(&skill)),
                Err(Failure::Cancelled(reasons)) => {
                    if let Some(closed) = if_closed(&skill.workspace, reasons.get(2).filter(|_| has_check)) {
                        return Err(closed);
                    }
                    if matches!(reasons.get(completion), Some(WriteRefusal::Refused(_))) {
                        return Err(Error::unavailable(
                            "the content has been deleted, because its upload took too long",
                        ));
                    }
                }
                Err(failure) => return Err(failure.into()),
            }
        }
    }
}
