//! `artifacts/presigned-upload-url` and `artifacts/presigned-download-url`, for artifacts in a
//! bucket. For artifacts in a directory, the responses are those of stock MLflow.

use std::collections::BTreeMap;
use std::time::Duration;

use access::{Needs, Scope, Target};
use artifact_store::{ArtifactPath, DOWNLOAD_EXPIRATION, unsupported};
use mlflow_api::requests::artifacts as message;
use mlflow_api::{Error, ModelId, Request, Result, RunId};
use serde::Serialize;
use service::Endpoint;

use crate::store::Store;

/// Maximum lifetime, in seconds, of a signature in AWS. As in MLflow, requested lifetimes are
/// checked against this maximum, but this server's URLs expire earlier.
const MAX_EXPIRATION_SECONDS: i64 = 604_800;
/// Default time within which an upload may begin, as in MLflow.
const UPLOAD_EXPIRATION: Duration = Duration::from_mins(15);

enum ArtifactOwner {
    Run(RunId),
    LoggedModel(ModelId),
}

/// A presigned URL, and the headers that clients have to send with it.
#[derive(Serialize)]
pub(crate) struct SignedUpload {
    presigned_url: String,
    headers: BTreeMap<&'static str, &'static str>,
}

/// A presigned URL, and the size of the file that it refers to.
#[derive(Serialize)]
pub(crate) struct SignedDownload {
    presigned_url: String,
    file_size: u64,
}

pub(crate) struct UploadUrl {
    owner: ArtifactOwner,
    path: ArtifactPath,
    expiration: Duration,
}

impl Endpoint for UploadUrl {
    type Store = Store;
    type Answer = SignedUpload;

    fn read(request: &Request) -> Result<Self> {
        let message: message::PresignedUpload = request.read()?;
        if message.run_id.is_empty() == message.model_id.is_empty() {
            return Err(Error::invalid("Exactly one of run_id and model_id must be provided."));
        }
        let path = ArtifactPath::to_write(&message.path)?;
        let expiration = expiration(message.expiration, UPLOAD_EXPIRATION)?;
        let owner = if message.model_id.is_empty() {
            ArtifactOwner::Run(RunId::named(&message.run_id)?)
        } else {
            ArtifactOwner::LoggedModel(ModelId::named(&message.model_id)?)
        };
        Ok(Self { owner, path, expiration })
    }

    fn needs(&self) -> Needs {
        Needs::update(match &self.owner {
            ArtifactOwner::Run(run) => Target::Run(run.clone()),
            ArtifactOwner::LoggedModel(model) => Target::LoggedModel(model.clone()),
        })
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<SignedUpload> {
        let location = match &self.owner {
            ArtifactOwner::Run(run) => store.run_artifact_uri(&scope.run(run)?).await?,
            ArtifactOwner::LoggedModel(model) => store.logged_model_artifact_uri(&scope.logged_model(model)?).await?,
        };
        let proxied = "Presigned upload is not supported for proxied artifact storage";
        check_direct(&location, proxied, "a direct cloud storage artifact URI")?;
        // With an upload limit, no upload URLs are signed, because a presigned URL could not
        // enforce the limit.
        if store.max_upload_bytes().is_some() {
            return Err(unsupported("Presigned upload"));
        }
        let signed = store.artifacts().at(&location)?.upload_url(&self.path, self.expiration).await?;
        Ok(SignedUpload { presigned_url: signed.url, headers: [("Content-Type", signed.content_type)].into() })
    }
}

pub(crate) struct DownloadUrl {
    run: RunId,
    path: ArtifactPath,
    expiration: Duration,
}

impl Endpoint for DownloadUrl {
    type Store = Store;
    type Answer = SignedDownload;

    fn read(request: &Request) -> Result<Self> {
        let message: message::PresignedDownload = request.read()?;
        let path = ArtifactPath::parse(&message.path)?;
        let expiration = expiration(message.expiration, DOWNLOAD_EXPIRATION)?;
        Ok(Self { run: RunId::named(&message.run_id)?, path, expiration })
    }

    fn needs(&self) -> Needs {
        Needs::read(Target::Run(self.run.clone()))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<SignedDownload> {
        let location = store.run_artifact_uri(&scope.run(&self.run)?).await?;
        let proxied = "Presigned download is not supported for runs with proxied artifact storage";
        check_direct(&location, proxied, "a run with a direct cloud storage artifact URI")?;
        let location = store.artifacts().at(&location)?;
        let found = location.download_url(&self.path, self.expiration, "Presigned download").await?;
        Ok(SignedDownload { presigned_url: found.url, file_size: found.length })
    }
}

fn expiration(asked: Option<i64>, usual: Duration) -> Result<Duration> {
    let Some(asked) = asked else { return Ok(usual) };
    let seconds = u64::try_from(asked).ok().filter(|_| (1..=MAX_EXPIRATION_SECONDS).contains(&asked));
    let seconds = seconds.ok_or_else(|| {
        Error::invalid(format!("expiration must be between 1 and {MAX_EXPIRATION_SECONDS} seconds (got {asked})."))
    })?;
    Ok(Duration::from_secs(seconds))
}

fn check_direct(location: &str, proxied: &str, required: &str) -> Result<()> {
    let scheme = location.split_once(':').map_or("", |(scheme, _)| scheme);
    if !matches!(scheme, "http" | "https" | "mlflow-artifacts") {
        return Ok(());
    }
    Err(Error::invalid(format!("{proxied} (artifact URI scheme: {scheme}). This endpoint requires {required}.")))
}
