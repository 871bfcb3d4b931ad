//! Artifacts of a run for the user interface: `artifacts/list`, `get-artifact` and
//! `upload-artifact`.

use access::{Needs, Scope, Target};
use artifact_access::send_file;
use artifact_store::{ArtifactPath, too_large};
use futures::StreamExt;
use mlflow_api::logged_models::ModelArtifactsResponse;
use mlflow_api::requests::artifacts as message;
use mlflow_api::requests::runs::new_or_old;
use mlflow_api::{Error, Request, Result, RunId};
use service::{BodyStream, Endpoint, EndpointResponse, Upload};

use crate::store::{Store, limit_body};

/// Maximum size in bytes of an upload from the user interface (`upload_artifact_handler`), unless
/// the server's limit is lower.
const MAX_UPLOAD_BYTES: u64 = 10 << 20;

pub(crate) struct List {
    run: RunId,
    path: ArtifactPath,
}

impl Endpoint for List {
    type Store = Store;
    type Answer = ModelArtifactsResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::ListArtifacts = request.read()?;
        let path = ArtifactPath::parse(&message.path)?;
        Ok(Self { run: RunId::named(new_or_old(&message.run_id, &message.run_uuid))?, path })
    }

    fn needs(&self) -> Needs {
        Needs::read(Target::Run(self.run.clone()))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<ModelArtifactsResponse> {
        let root_uri = store.run_artifact_uri(&scope.run(&self.run)?).await?;
        let files = store.artifacts().at(&root_uri)?.list(&self.path).await?;
        Ok(ModelArtifactsResponse { root_uri, files })
    }
}

/// `get-artifact`. As in MLflow, the request has no message, and its arguments are read directly.
pub(crate) struct Get {
    run: RunId,
    path: ArtifactPath,
}

impl Endpoint for Get {
    type Store = Store;
    type Answer = EndpointResponse;

    fn read(request: &Request) -> Result<Self> {
        let path = artifact_access::path_argument(request)?;
        let named = |name| request.argument(name).filter(|run| !run.is_empty());
        Ok(Self { run: RunId::named(named("run_id").or(named("run_uuid")).unwrap_or("None"))?, path })
    }

    fn needs(&self) -> Needs {
        Needs::read(Target::Run(self.run.clone()))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EndpointResponse> {
        let location = store.run_artifact_uri(&scope.run(&self.run)?).await?;
        send_file(&store.artifacts().at(&location)?, &self.path).await
    }
}

pub(crate) struct Put {
    run: RunId,
    path: ArtifactPath,
}

impl Upload for Put {
    type Store = Store;
    type Answer = EndpointResponse;

    fn read(request: &Request) -> Result<Self> {
        let argument = |name: &str| {
            let value = request.argument(name).filter(|value| !value.is_empty());
            value.ok_or_else(|| Error::invalid(format!("Request must specify {name}.")))
        };
        let run = argument("run_uuid")?;
        let path = ArtifactPath::of_new_file(argument("path")?)?;
        Ok(Self { run: RunId::named(run)?, path })
    }

    fn needs(&self) -> Needs {
        Needs::update(Target::Run(self.run.clone()))
    }

    async fn act(self, scope: &Scope, store: &Store, body: BodyStream) -> Result<EndpointResponse> {
        let (longest, too_long) = match store.max_upload_bytes() {
            Some(longest) if longest < MAX_UPLOAD_BYTES => (longest, too_large(longest)),
            _ => (MAX_UPLOAD_BYTES, Error::invalid("Artifact size is too large. Max size is 10MB.")),
        };
        let mut chunks = limit_body(body, longest, too_long)?;
        // A form whose file field is empty is sent as a file without content, so a file without
        // content is rejected.
        let first = chunks.next().await.unwrap_or_else(|| Err(Error::invalid("Request must specify data.")))?;
        let chunks = futures::stream::once(async { Ok(first) }).chain(chunks).boxed();
        let location = store.run_artifact_uri(&scope.run(&self.run)?).await?;
        store.artifacts().at(&location)?.write(&self.path, chunks).await?;
        Ok(EndpointResponse::Empty)
    }
}
