//! `artifacts/presigned-upload-url` and `artifacts/presigned-download-url`: for artifacts in a bucket, which this server cannot reach yet.
//! The answers are stock MLflow's for artifacts that are in no bucket.

use access::{Needs, Scope, Target};
use artifact_store::ArtifactPath;
use mlflow_api::requests::artifacts as message;
use mlflow_api::tracking::Empty;
use mlflow_api::{Error, ModelId, Request, Result, RunId};
use service::Endpoint;

use crate::multipart::unsupported;
use crate::store::Store;

/// Seconds for which the store of a bucket signs, at most.
const LONGEST_EXPIRATION: i64 = 604_800;

enum Owner {
    Run(RunId),
    LoggedModel(ModelId),
}

pub(crate) struct UploadUrl {
    owner: Owner,
}

impl Endpoint for UploadUrl {
    type Store = Store;
    type Answer = Empty;

    fn read(request: &Request) -> Result<Self> {
        let message: message::PresignedUpload = request.read()?;
        if message.run_id.is_empty() == message.model_id.is_empty() {
            return Err(Error::invalid("Exactly one of run_id and model_id must be provided."));
        }
        ArtifactPath::parse(&message.path)?;
        let owner = if message.model_id.is_empty() {
            Owner::Run(RunId::named(&message.run_id)?)
        } else {
            Owner::LoggedModel(ModelId::named(&message.model_id)?)
        };
        Ok(Self { owner })
    }

    fn needs(&self) -> Needs {
        Needs::update(match &self.owner {
            Owner::Run(run) => Target::Run(run.clone()),
            Owner::LoggedModel(model) => Target::LoggedModel(model.clone()),
        })
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<Empty> {
        let location = match &self.owner {
            Owner::Run(run) => store.run_artifact_uri(&scope.run(run)?).await?,
            Owner::LoggedModel(model) => store.logged_model_artifact_uri(&scope.logged_model(model)?).await?,
        };
        let proxied = "Presigned upload is not supported for proxied artifact storage";
        Err(refused(&location, proxied, "a direct cloud storage artifact URI", "Presigned upload"))
    }
}

pub(crate) struct DownloadUrl {
    run: RunId,
}

impl Endpoint for DownloadUrl {
    type Store = Store;
    type Answer = Empty;

    fn read(request: &Request) -> Result<Self> {
        let message: message::PresignedDownload = request.read()?;
        ArtifactPath::parse(&message.path)?;
        let expiration = message.expiration.unwrap_or(1);
        if !(1..=LONGEST_EXPIRATION).contains(&expiration) {
            return Err(Error::invalid(format!(
                "expiration must be between 1 and {LONGEST_EXPIRATION} seconds (got {expiration})."
            )));
        }
        Ok(Self { run: RunId::named(&message.run_id)? })
    }

    fn needs(&self) -> Needs {
        Needs::read(Target::Run(self.run.clone()))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<Empty> {
        let location = store.run_artifact_uri(&scope.run(&self.run)?).await?;
        let proxied = "Presigned download is not supported for runs with proxied artifact storage";
        Err(refused(&location, proxied, "a run with a direct cloud storage artifact URI", "Presigned download"))
    }
}

fn refused(location: &str, proxied: &str, required: &str, what: &str) -> Error {
    let scheme = location.split_once(':').map_or("", |(scheme, _)| scheme);
    if matches!(scheme, "http" | "https" | "mlflow-artifacts") {
        return Error::invalid(format!(
            "{proxied} (artifact URI scheme: {scheme}). This endpoint requires {required}."
        ));
    }
    unsupported(what)
}
