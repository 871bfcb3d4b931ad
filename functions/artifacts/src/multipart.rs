//! Uploads in parts and downloads by presigned URLs through `mlflow-artifacts:/`: a directory can do neither. The answer is stock MLflow's
//! for a directory, after which its client sends or reads the file through the proxy.

use access::{Action, Needs, Scope};
use artifact_store::ArtifactPath;
use mlflow_api::requests::artifacts as message;
use mlflow_api::tracking::Empty;
use mlflow_api::{Error, ErrorCode, Request, Result};
use service::Endpoint;

use crate::served_path::needs;
use crate::store::Store;

/// What a place of artifacts cannot do, in MLflow's words: its client looks for them.
pub(crate) fn unsupported(what: &str) -> Error {
    let message = format!("{what} is not supported for the current artifact repository");
    Error::new(ErrorCode::NotImplemented, message)
}

/// The file that a path names a directory of, and a body the name.
fn file(request: &Request, name: &str) -> Result<ArtifactPath> {
    let directory = ArtifactPath::parse(request.path_part("artifact_path"))?;
    // Clients send the path of the file on their own machine.
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    Ok(directory.join(&ArtifactPath::parse(name)?))
}

macro_rules! multipart {
    ($(#[$about:meta] $endpoint:ident($message:ident);)*) => {$(
        #[$about]
        pub(crate) struct $endpoint(ArtifactPath);

        impl Endpoint for $endpoint {
            type Store = Store;
            type Answer = Empty;

            fn read(request: &Request) -> Result<Self> {
                ArtifactPath::parse(request.path_part("artifact_path"))?;
                let message: message::$message = request.read()?;
                file(request, &message.path).map(Self)
            }

            fn needs(&self) -> Needs {
                needs(Action::Update, &self.0)
            }

            async fn act(self, _: &Scope, _: &Store) -> Result<Empty> {
                Err(unsupported("Multipart upload"))
            }
        }
    )*};
}

multipart! {
    /// `POST mpu/create/{artifact_path}`
    Create(CreateMultipart);
    /// `POST mpu/complete/{artifact_path}`
    Complete(CompleteMultipart);
    /// `POST mpu/abort/{artifact_path}`
    Abort(AbortMultipart);
}

/// `GET presigned/{artifact_path}`
pub(crate) struct Presigned(ArtifactPath);

impl Endpoint for Presigned {
    type Store = Store;
    type Answer = Empty;

    fn read(request: &Request) -> Result<Self> {
        ArtifactPath::parse(request.path_part("artifact_path")).map(Self)
    }

    fn needs(&self) -> Needs {
        needs(Action::Read, &self.0)
    }

    async fn act(self, _: &Scope, _: &Store) -> Result<Empty> {
        Err(unsupported("Multipart download"))
    }
}
