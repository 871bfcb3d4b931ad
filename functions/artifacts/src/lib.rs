//! The artifacts function: the proxy for `mlflow-artifacts:/`, and the lists, downloads and uploads
//! of the user interface.
//!
//! [`routes`] is its whole API on one page. A handler parses its request and looks up the artifact
//! location of a run or a logged model in the [`store`]. The crate `shared/storage/artifact-store`
//! accesses the files. `proxy.rs` serves `mlflow-artifacts:/`, and `multipart.rs` its multipart
//! uploads and download URLs. `shared/http/artifact-access` returns the permissions that a path
//! requires, and `proxy_paths.rs` resolves the path. `run_artifacts.rs` serves the user interface,
//! and `presigned_urls.rs` signs URLs for artifacts in a bucket.
//!
//! # A client uploads to a directory
//!
//! `PUT mlflow-artifacts/artifacts/{path}` → `proxy::Put`, an `Upload` →
//! `artifact_store::ArtifactDirectory::write`.
//!
//! 1. The caller is authenticated before the body is read. `Put::read` checks the path. The call
//!    needs the right to update the experiment in the first part of the path.
//! 2. Only then is the body streamed into a file in the staging directory, which this process has
//!    locked.
//! 3. The file is synced and renamed to its path, and the directory of that path is synced. A
//!    connection that ends early leaves nothing behind. A server that is killed leaves a file in
//!    the staging directory, which is removed at the next start.
//!
//! # A client uploads to a bucket
//!
//! `POST mlflow-artifacts/mpu/create/{path}` → `multipart::Create` →
//! `artifact_store::BucketPrefix`. This applies to experiments whose artifact location is
//! `mlflow-artifacts:/`. If the location is `s3://…` (`ArtifactAccess=direct`), clients write to
//! the bucket with their own credentials, or by a URL that `presigned_urls.rs` signs.
//!
//! 1. The upload is started, and a URL is signed for each part (`artifact_store::bucket`). The
//!    client sends the parts to the bucket.
//! 2. `mpu/complete` joins the parts into a file. Nothing is visible before that. The bucket's
//!    lifecycle rules remove uploads that are neither completed nor aborted.
//! 3. If a client sends a file to `mlflow-artifacts/artifacts/{path}` instead, the server writes it
//!    to the bucket, 5 MB at a time (`proxied_upload.rs`). MLflow's client does so for files below
//!    500 MB. In AWS, a request is limited to 4.5 MB, so `clients/python` makes the client upload
//!    larger files in parts.
//!
//! # A client downloads
//!
//! `GET mlflow-artifacts/artifacts/{path}` → `proxy::Download` →
//! `artifact_store::ArtifactBackend::download`.
//!
//! 1. `Download::read` checks the path (`ArtifactPath`). `artifact_access::needs` returns the
//!    required permission: to read the experiment in the first part of the path, all experiments,
//!    or a model version.
//! 2. `proxy_paths` resolves the path to a `Location`, which is a backend and a path in it. The
//!    path of a model version is resolved to the artifacts that the version was created from.
//!    `Location::download` calls the backend.
//! 3. For a bucket, `BucketPrefix::download` looks up the object with a `HEAD`. If the object does
//!    not exist, one key is listed, to distinguish a directory (400) from a missing file (404). If
//!    it exists, a URL for `GET` is signed, which is valid for five minutes. The result is a
//!    `Download::Url`.
//! 4. For a directory, `ArtifactDirectory::download` opens the path one name at a time
//!    (`directory_traversal.rs`). The result is a `Download::File` with the open file.
//! 5. `artifact_access::send_file` converts the result into a response. `shared/http/service` turns
//!    a URL into a 307 without a body, which must not be cached. It streams a file, either as a
//!    whole or in the requested range.
//!
//! A client that reads a file in parts first requests a URL: `GET
//! mlflow-artifacts/presigned/{path}` → `multipart::Presigned` → `BucketPrefix::download_url`
//! returns URL and length. For a directory, the response is 501, and the client falls back to the
//! download through the proxy.
//!
//! `get-artifact`, and the endpoints for files of logged models and model versions, first look up
//! the artifact location (`ArtifactStore::at`). The endpoints for logged models and model versions
//! return a URL if the request has `presigned=true` (`artifact_access::send_file_or_url`). If the
//! artifacts are in a directory, they send the file anyway.

mod declaration;
mod multipart;
mod presigned_urls;
mod proxy;
mod proxy_paths;
mod routes;
mod run_artifacts;
pub mod store;

pub use declaration::DOMAIN;
pub use routes::routes;

/// Returns the router of the domain over the given store. For tests.
pub fn router(store: &store::Store, authorizer: std::sync::Arc<dyn access::Authorizer>) -> axum::Router {
    service::router(routes(), &service::FunctionContext::new(store.clone(), authorizer))
}
