//! The proxy for `mlflow-artifacts:/`: the endpoints below `mlflow-artifacts/artifacts`.

use access::{Action, Needs, Scope};
use artifact_access::send_file;
use artifact_access::{check_deletable, check_writable, needs};
use artifact_store::ArtifactPath;
use mlflow_api::logged_models::FileInfo;
use mlflow_api::requests::artifacts as message;
use mlflow_api::tracking::EmptyResponse;
use mlflow_api::{Request, Result};
use serde::Serialize;
use service::{BodyStream, Endpoint, EndpointResponse, Upload};

use crate::proxy_paths::{may_list, path_in_workspace, resolve_read, with_runs};
use crate::store::Store;

/// The response to `GET mlflow-artifacts/artifacts`: the files in a directory. The path of each
/// file is its name without the directory.
#[derive(Serialize)]
pub(crate) struct Files {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<FileInfo>,
}

pub(crate) struct List(ArtifactPath);

impl Endpoint for List {
    type Store = Store;
    type Answer = Files;

    fn read(request: &Request) -> Result<Self> {
        let message: message::ListServed = request.read()?;
        ArtifactPath::parse(&message.path).map(Self)
    }

    fn needs(&self) -> Needs {
        with_runs(needs(Action::Read, &self.0), &self.0)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<Files> {
        let mut files = resolve_read(scope, store, &self.0).await?.list(&ArtifactPath::default()).await?;
        files.retain(|file| may_list(scope, &self.0, &file.path));
        Ok(Files { files })
    }
}

pub(crate) struct Download(ArtifactPath);

impl Endpoint for Download {
    type Store = Store;
    type Answer = EndpointResponse;

    fn read(request: &Request) -> Result<Self> {
        path_in_request(request).map(Self)
    }

    fn needs(&self) -> Needs {
        needs(Action::Read, &self.0)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EndpointResponse> {
        send_file(&resolve_read(scope, store, &self.0).await?, &ArtifactPath::default()).await
    }
}

pub(crate) struct Put(ArtifactPath);

impl Upload for Put {
    type Store = Store;
    type Answer = EndpointResponse;

    fn read(request: &Request) -> Result<Self> {
        let path = ArtifactPath::of_new_file(request.path_part("artifact_path"))?;
        check_writable(&path).map(|()| Self(path))
    }

    fn needs(&self) -> Needs {
        needs(Action::Update, &self.0)
    }

    async fn act(self, scope: &Scope, store: &Store, body: BodyStream) -> Result<EndpointResponse> {
        let path = path_in_workspace(scope, store, &self.0).await?;
        store.artifacts().root()?.write(&path, store.upload_body(body)?).await?;
        Ok(EndpointResponse::Empty)
    }
}

pub(crate) struct Delete(ArtifactPath);

impl Endpoint for Delete {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        let path = path_in_request(request)?;
        check_deletable(&path).map(|()| Self(path))
    }

    fn needs(&self) -> Needs {
        needs(Action::Delete, &self.0)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        let path = path_in_workspace(scope, store, &self.0).await?;
        store.artifacts().root()?.delete(&path).await?;
        Ok(EmptyResponse {})
    }
}

fn path_in_request(request: &Request) -> Result<ArtifactPath> {
    ArtifactPath::parse(request.path_part("artifact_path"))
}
