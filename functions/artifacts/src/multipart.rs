//! Multipart uploads and downloads by presigned URLs through `mlflow-artifacts:/`. Both require a
//! bucket. If the artifacts are in a directory, the response is that of stock MLflow, after which
//! MLflow's client falls back to the proxy.

use access::{Action, Needs, Scope};
use artifact_access::{check_writable, needs};
use artifact_store::{ArtifactPath, DOWNLOAD_EXPIRATION, SentPart};
use mlflow_api::requests::artifacts as message;
use mlflow_api::tracking::EmptyResponse;
use mlflow_api::{Request, Result};
use serde::Serialize;
use service::{Endpoint, FileUrl};

use crate::proxy_paths::{path_in_workspace, resolve_read};
use crate::store::Store;

/// Returns the path of a file. Its directory is in the request's path, and its name is in the body.
fn file(request: &Request, name: &str) -> Result<ArtifactPath> {
    let directory = ArtifactPath::to_write(request.path_part("artifact_path"))?;
    // Only the last component is used, because clients send the path of the file on their own
    // machine.
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let file = directory.join(&ArtifactPath::of_new_file(name)?);
    check_writable(&file).map(|()| file)
}

/// `POST mpu/create/{artifact_path}`
pub(crate) struct Create {
    file: ArtifactPath,
    parts: i64,
}

/// The URLs to which the parts are sent.
#[derive(Serialize)]
pub(crate) struct Created {
    upload_id: String,
    credentials: Vec<Credential>,
}

#[derive(Serialize)]
struct Credential {
    url: String,
    part_number: usize,
}

impl Endpoint for Create {
    type Store = Store;
    type Answer = Created;

    fn read(request: &Request) -> Result<Self> {
        ArtifactPath::parse(request.path_part("artifact_path"))?;
        let message: message::CreateMultipart = request.read()?;
        Ok(Self { file: file(request, &message.path)?, parts: message.num_parts })
    }

    fn needs(&self) -> Needs {
        needs(Action::Update, &self.file)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<Created> {
        let file = path_in_workspace(scope, store, &self.file).await?;
        let upload = store.artifacts().root()?.start_upload(&file, self.parts, store.max_upload_bytes()).await?;
        let credentials = upload.urls.into_iter().zip(1..).map(|(url, part_number)| Credential { url, part_number });
        Ok(Created { upload_id: upload.id, credentials: credentials.collect() })
    }
}

/// `POST mpu/complete/{artifact_path}`
pub(crate) struct Complete {
    file: ArtifactPath,
    upload: String,
    parts: Vec<SentPart>,
}

impl Endpoint for Complete {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        ArtifactPath::parse(request.path_part("artifact_path"))?;
        let message: message::CompleteMultipart = request.read()?;
        let parts = message.parts.into_iter().map(|part| SentPart { number: part.part_number, etag: part.etag });
        Ok(Self { file: file(request, &message.path)?, upload: message.upload_id, parts: parts.collect() })
    }

    fn needs(&self) -> Needs {
        needs(Action::Update, &self.file)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        let file = path_in_workspace(scope, store, &self.file).await?;
        let root = store.artifacts().root()?;
        root.complete_upload(&file, self.upload, self.parts, store.max_upload_bytes()).await?;
        Ok(EmptyResponse {})
    }
}

/// `POST mpu/abort/{artifact_path}`
pub(crate) struct Abort {
    file: ArtifactPath,
    upload: String,
}

impl Endpoint for Abort {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        ArtifactPath::parse(request.path_part("artifact_path"))?;
        let message: message::AbortMultipart = request.read()?;
        Ok(Self { file: file(request, &message.path)?, upload: message.upload_id })
    }

    fn needs(&self) -> Needs {
        needs(Action::Update, &self.file)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        let file = path_in_workspace(scope, store, &self.file).await?;
        store.artifacts().root()?.abort_upload(&file, self.upload).await?;
        Ok(EmptyResponse {})
    }
}

/// `GET presigned/{artifact_path}`
pub(crate) struct Presigned(ArtifactPath);

impl Endpoint for Presigned {
    type Store = Store;
    type Answer = FileUrl;

    fn read(request: &Request) -> Result<Self> {
        ArtifactPath::parse(request.path_part("artifact_path")).map(Self)
    }

    fn needs(&self) -> Needs {
        needs(Action::Read, &self.0)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<FileUrl> {
        let file = resolve_read(scope, store, &self.0).await?;
        let found = file.download_url(&ArtifactPath::default(), DOWNLOAD_EXPIRATION, "Multipart download").await?;
        Ok(FileUrl::new(found.url, found.length))
    }
}
