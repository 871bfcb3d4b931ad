//! Endpoints that register versions.

use access::{Action, Needs, Resource, Scope, Target};
use mlflow_api::skills::{
    BulkRegisterResponse, BulkRegistration, ContentLimits, MAX_ARCHIVE_SLACK, MAX_METADATA_BYTES, MULTIPART_OVERHEAD,
    SkillRegistration, SkillSource, SkillStatus, SkillVersion,
};
use mlflow_api::{Error, ErrorCode, Request, Result};
use service::Endpoint;
use tokio::sync::Semaphore;

use crate::content::{digest, unpack};
use crate::multipart;
use crate::request_targets::SkillTarget;
use crate::store::{NewSkillVersion, Store, caller_name, skill_not_found};

/// The content of the version to register.
enum Registered {
    /// Content in a git repository, an OCI registry or a zip archive.
    Remote(SkillSource),
    /// An uploaded archive, which has not been unpacked yet.
    Archive(Vec<u8>),
}

pub(crate) struct Create {
    skill: SkillTarget,
    registered: Registered,
    digest: Option<String>,
    status: SkillStatus,
}

impl Endpoint for Create {
    type Store = Store;
    type Answer = SkillVersion;

    fn read(request: &Request) -> Result<Self> {
        SkillTarget::check_format(request)?;
        let path = (request.path_part("organization"), request.path_part("name"));
        let content_type = request.content_type.as_deref().unwrap_or_default();
        let (registration, archive) = match content_type.split(';').next().unwrap_or_default().to_lowercase().as_str() {
            "application/json" => {
                let no_json = "The request body must contain a valid JSON object.";
                (SkillRegistration::of_metadata(&request.body, path, no_json)?, None)
            }
            "multipart/form-data" => {
                let (metadata, content) = form(content_type, &request.body)?;
                let no_json = "The 'metadata' part must contain a valid JSON object.";
                (SkillRegistration::of_metadata(metadata, path, no_json)?, Some(content))
            }
            _ => {
                return Err(Error::invalid(
                    "Skill registration requires an application/json or multipart/form-data request.",
                ));
            }
        };
        let skill = SkillTarget::named(request)?;
        let status = registration.check()?;
        let registered = match (&registration.source, archive) {
            (None, None) => {
                return Err(Error::invalid(
                    "A registration without a 'source' uploads the skill content and requires a multipart/form-data body \
                     with a 'content' part. To register a remote skill, set 'source' to its git, oci, or zip location.",
                ));
            }
            (None, Some(archive)) => {
                registration.check_upload()?;
                Registered::Archive(archive.to_vec())
            }
            (Some(_), Some(_)) => {
                return Err(Error::invalid(
                    "A registration with a remote 'source' must use an application/json body; it cannot also carry uploaded \
                     content. Omit 'source' to upload content instead.",
                ));
            }
            (Some(_), None) => {
                let source = registration.remote_source()?;
                Registered::Remote(source.ok_or_else(|| Error::internal("a registration has lost its source"))?)
            }
        };
        Ok(Self { skill, registered, digest: registration.digest, status })
    }

    fn needs(&self) -> Needs {
        Needs::create_in(self.skill.target(), Resource::SkillVersion)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<SkillVersion> {
        let (name, user) = (self.skill.granted(scope)?, caller_name(scope));
        match self.registered {
            Registered::Remote(source) => {
                let new = NewSkillVersion { source, digest: self.digest, status: self.status };
                Box::pin(store.version_create(&name, &new, user)).await
            }
            Registered::Archive(archive) => {
                store.check_serves_artifacts()?;
                let _permit = UPLOADS.acquire().await.map_err(Error::internal)?;
                let content = unpacked(archive, store.limits(), self.digest).await?;
                Box::pin(store.version_upload(&name, content, self.status, user)).await
            }
        }
    }
}

/// Limits the number of uploads that are unpacked and stored at a time, because the content of each of
/// them is in memory meanwhile. Other uploads wait.
static UPLOADS: Semaphore = Semaphore::const_new(2);

/// Returns the metadata and the archive that a form contains.
fn form<'a>(content_type: &str, body: &'a [u8]) -> Result<(&'a [u8], &'a [u8])> {
    let most = ContentLimits::MLFLOW.bytes + MAX_ARCHIVE_SLACK + MULTIPART_OVERHEAD;
    if body.len() > most {
        let message = format!("The multipart request body exceeds the maximum allowed size of {most} bytes.");
        return Err(Error::new(ErrorCode::RequestTooLarge, message));
    }
    let parts = multipart::parts(content_type, body)?;
    let part = |name: &str| parts.iter().find(|part| part.name == name);
    let (Some(metadata), Some(content), 2) = (part("metadata"), part("content"), parts.len()) else {
        return Err(Error::invalid(
            "Multipart registration requires exactly one 'metadata' part and one 'content' part.",
        ));
    };
    if metadata.content.len() > MAX_METADATA_BYTES {
        let message =
            format!("The registration metadata exceeds the maximum allowed size of {MAX_METADATA_BYTES} bytes.");
        return Err(Error::new(ErrorCode::RequestTooLarge, message));
    }
    if !content.is_file {
        return Err(Error::invalid("Multipart registration requires a 'content' file part."));
    }
    Ok((metadata.content, content.content))
}

/// Unpacks an archive on another thread. Returns its files and their digest. Fails if the client
/// sent a different digest (`expected`).
async fn unpacked(
    archive: Vec<u8>,
    limits: ContentLimits,
    expected: Option<String>,
) -> Result<(Vec<crate::content::ContentFile>, String)> {
    let most = limits.bytes + MAX_ARCHIVE_SLACK;
    if archive.len() > most {
        let message = format!("The uploaded skill content exceeds the size limit of {most} bytes.");
        let code =
            if limits == ContentLimits::LAMBDA { ErrorCode::RequestTooLarge } else { ErrorCode::InvalidParameterValue };
        return Err(Error::new(code, message));
    }
    let unpack = move || {
        let files = unpack(&archive, limits)?;
        let digest = digest(&files);
        match expected.filter(|expected| *expected != digest) {
            None => Ok((files, digest)),
            Some(sent) => Err(Error::invalid(format!(
                "'digest' does not match the uploaded content: expected {digest}, got {sent}."
            ))),
        }
    };
    runtime::clock::aside(unpack).await.map_err(Error::internal)?
}

pub(crate) struct Bulk(BulkRegistration);

impl Endpoint for Bulk {
    type Store = Store;
    type Answer = BulkRegisterResponse;

    fn read(request: &Request) -> Result<Self> {
        BulkRegistration::read(request).map(Self)
    }

    fn needs(&self) -> Needs {
        let skills = self.0.skills.iter().map(|(name, ..)| Target::Skill(name.clone()));
        Needs::nothing().and_in(Action::Create, Resource::SkillVersion, skills)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<BulkRegisterResponse> {
        let granted = |name: &_| scope.known_skill(name)?.ok_or_else(|| skill_not_found(name));
        let skill_versions = Box::pin(store.version_register_many(granted, &self.0, caller_name(scope))).await?;
        Ok(BulkRegisterResponse { skill_versions })
    }
}
