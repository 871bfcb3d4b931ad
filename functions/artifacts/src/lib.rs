//! The artifacts function: the proxy for `mlflow-artifacts:/`, and what the user interface lists,
//! reads and uploads.
//!
//! [`routes`] is its whole API on one page. A handler reads its request and asks the [`store`]
//! where the artifacts of a run or a logged model are. `shared/storage/artifact-store` does the rest.
//! `proxy.rs` serves `mlflow-artifacts:/`, `multipart.rs` uploads in parts and URLs to download
//! there. `shared/http/artifact-access` says what a path needs, and `served_path.rs` resolves it.
//! `run.rs` serves the user interface, `presigned.rs` signs URLs for artifacts in a bucket.
//!
//! # A client uploads to a directory
//!
//! `PUT mlflow-artifacts/artifacts/{path}` → `proxy::Put`, an `Upload` →
//! `artifact_store::Directory::write`.
//!
//! 1. The caller is authenticated before the body is read. `Put::read` checks the path. Its first
//!    part is the experiment that the call needs to update.
//! 2. Only then is the body read, piece by piece, into a file in the staging directory, which this
//!    process has locked.
//! 3. The file is synced, renamed to its path, and that directory is synced. A connection that ends
//!    before leaves nothing. A killed server leaves a file in the staging directory, which the next
//!    start removes.
//!
//! # A client uploads to a bucket
//!
//! `POST mlflow-artifacts/mpu/create/{path}` → `multipart::Create` → `artifact_store::Prefix`. This
//! holds for experiments at `mlflow-artifacts:/`. If an experiment is at `s3://…`
//! (`ArtifactAccess=direct`), clients write to the bucket with rights of their own, or by a URL
//! that `presigned.rs` signs.
//!
//! 1. The upload is begun, and a URL signed per part (`artifact_store::bucket`). The client
//!    sends the parts to the bucket.
//! 2. `mpu/complete` makes a file of them. Nothing is visible before that. The bucket's lifecycle
//!    removes uploads that are neither completed nor aborted.
//! 3. A client that sends a file to `mlflow-artifacts/artifacts/{path}` has the server write it, 5
//!    MB at a time (`proxied.rs`). MLflow's client does so below 500 MB. In AWS a request carries
//!    4.5 MB. `clients/python` has the client send longer files in parts.
//!
//! # A client downloads
//!
//! `GET mlflow-artifacts/artifacts/{path}` → `proxy::Download` →
//! `artifact_store::ArtifactBackend::send`.
//!
//! 1. `Download::read` checks the path (`ArtifactPath`). `artifact_access::needs` says that it needs
//!    to read the experiment that its first part names, all experiments, or a model version.
//! 2. `served_path::read_from` resolves it to a `Location`, a place and a path below it. The path of a
//!    model version leads to the artifacts that the version was made of. `Location::send` asks the
//!    place.
//! 3. For a bucket, `Prefix::send` looks the object up with a `HEAD`. If there is none, it lists
//!    one key, to tell a directory (400) from a missing file (404). It signs a URL for `GET`, valid
//!    for five minutes: an `Answer::Elsewhere`.
//! 4. For a directory, `Directory::send` walks the path name by name (`walk.rs`). The open file is
//!    an `Answer::Attachment`.
//! 5. `shared/http/service` makes of the first a 307 without a body that must not be cached. It sends
//!    the second piece by piece, whole or as the requested range.
//!
//! A client that reads a file in parts asks for its URL: `GET mlflow-artifacts/presigned/{path}` →
//! `multipart::Presigned` → `Prefix::download_url` answers URL and length. A directory answers 501,
//! and the client then asks as above. `get-artifact` and the files of logged models and model
//! versions first read where the artifacts are (`Artifacts::at`). For the last two,
//! `presigned=true` asks for the URL (`Location::answer`), and a directory sends the file anyway.

mod declaration;
mod multipart;
mod presigned;
mod proxy;
mod routes;
mod run;
mod served_path;
pub mod store;

pub use declaration::DOMAIN;
pub use routes::routes;

/// The router of the domain over a store of one's own: for tests.
pub fn router(store: &store::Store, authorizer: std::sync::Arc<dyn access::Authorizer>) -> axum::Router {
    service::router(routes(), &service::Frame::guarded(store.clone(), authorizer))
}
