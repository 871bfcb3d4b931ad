//! Maps the location of an experiment, a run or a model to the backend that stores its artifacts.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::bucket::MIN_PART_BYTES;
use bytes::Bytes;
use mlflow_api::logged_models::FileInfo;
use mlflow_api::{Error, ErrorCode, Result};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use crate::backend::{ArtifactBackend, Chunks, DownloadUrl, SentPart, StartedUpload, UploadUrl, too_large};
use crate::directory::{self, ArtifactDirectory};
use crate::download::Download;
use crate::path::ArtifactPath;
use crate::prefix::BucketPrefix;

/// The characters of a path that are percent-encoded in a URI.
const PATH_CHARACTERS: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'<').add(b'>').add(b'?').add(b'`');

/// The artifacts of a server: the backend that stores them. Cheap to clone; clones share the
/// backend.
#[derive(Clone, Debug, Default)]
pub struct ArtifactStore {
    kept: Option<Backend>,
    is_presigned_only: bool,
}

#[derive(Clone, Debug)]
enum Backend {
    Directory { root: Arc<Path>, place: ArtifactDirectory },
    Bucket(BucketPrefix),
}

impl ArtifactStore {
    /// Returns the artifacts below an artifact root that is a local directory (a path, or a `file:`
    /// URI) or an S3 URI. For any other root, the server cannot access artifacts. Sends no requests
    /// to the bucket.
    #[must_use]
    pub fn below(root: &str) -> Self {
        if let Some(prefix) = BucketPrefix::of_uri(root) {
            return Self::in_bucket(prefix);
        }
        local_path(root).map_or_else(Self::default, |root| Self::in_directory(&root))
    }

    /// Returns the artifacts of a function: below `ARTIFACTS_DESTINATION` of its environment, or
    /// below the artifact root if this variable is not set. With `ARTIFACTS_PRESIGNED_ONLY=true`,
    /// clients that support presigned URLs are instructed to use nothing else.
    #[must_use]
    pub fn from_environment(artifact_root: &str) -> Self {
        let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let destination = set("ARTIFACTS_DESTINATION");
        let presigned_only = set("ARTIFACTS_PRESIGNED_ONLY");
        let is_presigned_only = presigned_only.as_deref().is_some_and(is_true);
        Self::below(destination.as_deref().unwrap_or(artifact_root)).presigned_only(is_presigned_only)
    }

    /// Returns the artifacts in a local directory. `mlflow-artifacts:/` is this directory.
    #[must_use]
    pub fn in_directory(root: &Path) -> Self {
        let kept = Backend::Directory { root: root.into(), place: ArtifactDirectory::new(root) };
        Self { kept: Some(kept), is_presigned_only: false }
    }

    /// Returns the artifacts below a prefix of a bucket. `mlflow-artifacts:/` is this prefix.
    #[must_use]
    pub fn in_bucket(prefix: BucketPrefix) -> Self {
        Self { kept: Some(Backend::Bucket(prefix)), is_presigned_only: false }
    }

    /// Sets whether clients that support presigned URLs are instructed to use nothing else.
    #[must_use]
    pub fn presigned_only(self, is_presigned_only: bool) -> Self {
        Self { is_presigned_only, ..self }
    }

    /// Sets how long a bucket may take to join the parts of an upload. Meant for a server without a
    /// time limit per call.
    #[must_use]
    pub fn completing_within(self, completion: Duration) -> Self {
        let kept = self.kept.map(|kept| match kept {
            Backend::Bucket(prefix) => Backend::Bucket(prefix.completing_within(completion)),
            directory @ Backend::Directory { .. } => directory,
        });
        Self { kept, ..self }
    }

    /// Returns whether clients that support it must use only presigned URLs. Always `false` if the
    /// backend has no presigned URLs.
    #[must_use]
    pub fn is_presigned_only(&self) -> bool {
        self.is_presigned_only && self.has_urls()
    }

    /// Returns whether clients may transfer files directly to and from the backend by presigned
    /// URLs.
    #[must_use]
    pub fn has_urls(&self) -> bool {
        matches!(self.kept, Some(Backend::Bucket(_)))
    }

    /// Returns whether the server stores artifacts.
    #[must_use]
    pub fn are_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// Returns the artifact directory, if the artifacts are in a local directory.
    #[must_use]
    pub fn directory(&self) -> Option<&ArtifactDirectory> {
        match &self.kept {
            Some(Backend::Directory { place, .. }) => Some(place),
            _ => None,
        }
    }

    /// Returns the prefix of the bucket that the artifacts are in, if they are in a bucket.
    #[must_use]
    pub fn prefix(&self) -> Option<&BucketPrefix> {
        match &self.kept {
            Some(Backend::Bucket(prefix)) => Some(prefix),
            _ => None,
        }
    }

    /// Returns the URI of the artifacts, which other programs understand: `s3://bucket/prefix`, or
    /// `file:///path`. `None` if the server stores no artifacts, or in a relative directory.
    #[must_use]
    pub fn uri(&self) -> Option<String> {
        match self.kept.as_ref()? {
            Backend::Directory { root, .. } => {
                let path = root.to_str().filter(|_| root.is_absolute())?;
                let path = utf8_percent_encode(path, PATH_CHARACTERS).to_string();
                Some(format!("file://{}", path.trim_end_matches('/')))
            }
            Backend::Bucket(prefix) => Some(prefix.uri()),
        }
    }

    /// Checks whether an S3 URI is below the server's artifacts. If so, the server reads it with
    /// its own credentials.
    #[must_use]
    pub fn keeps_object(&self, uri: &str) -> bool {
        self.prefix().is_some_and(|prefix| prefix.below(uri).is_some())
    }

    /// Returns the location of `mlflow-artifacts:/`.
    ///
    /// # Errors
    /// `NOT_IMPLEMENTED` if the server stores no artifacts.
    pub fn root(&self) -> Result<Location> {
        self.at("mlflow-artifacts:/")
    }

    /// Resolves a location: `mlflow-artifacts:/…`, a local path, or an S3 URI.
    ///
    /// # Errors
    /// `NOT_IMPLEMENTED` if this server does not store artifacts there.
    pub fn at(&self, location: &str) -> Result<Location> {
        let not_here = || not_read(location);
        let kept = self.kept.as_ref().ok_or_else(not_here)?;
        let below = match location.strip_prefix("mlflow-artifacts:") {
            Some(rest) => ArtifactPath::parse(proxied_path(rest).ok_or_else(not_here)?)?,
            None => match kept {
                Backend::Directory { root, .. } => {
                    let path = local_path(location).and_then(|path| directory::below(root, &path));
                    ArtifactPath::parse(path.as_deref().and_then(Path::to_str).ok_or_else(not_here)?)?
                }
                Backend::Bucket(prefix) => prefix.below(location).ok_or_else(not_here)?,
            },
        };
        let place: Arc<dyn ArtifactBackend> = match kept {
            Backend::Directory { place, .. } => Arc::new(place.clone()),
            Backend::Bucket(prefix) => Arc::new(prefix.clone()),
        };
        Ok(Location { place, below })
    }
}

/// Returns the error for an artifact location that this server cannot access.
#[must_use]
pub fn not_read(location: &str) -> Error {
    let message = format!(
        "This server cannot read or write artifacts in '{location}'. Clients access it themselves, with their own credentials."
    );
    Error::new(ErrorCode::NotImplemented, message)
}

/// Parses a boolean environment variable. Values other than `true` and `false` are logged and count
/// as `false`.
fn is_true(variable: &str) -> bool {
    let is_true = variable.eq_ignore_ascii_case("true");
    if !is_true && !variable.eq_ignore_ascii_case("false") {
        tracing::warn!(variable, "ARTIFACTS_PRESIGNED_ONLY is neither true nor false");
    }
    is_true
}

/// Returns the path after `mlflow-artifacts:`. Returns `None` if the URI has a host, because it
/// then refers to another server.
fn proxied_path(rest: &str) -> Option<&str> {
    let path = rest.split(['?', '#']).next().unwrap_or_default();
    let path = match path.strip_prefix("//") {
        Some(rest) => rest.strip_prefix('/')?,
        None => path,
    };
    Some(path.trim_start_matches('/'))
}

/// Returns the absolute path of a location that is a path or a `file:` URI without a host.
fn local_path(location: &str) -> Option<PathBuf> {
    let path = match location.strip_prefix("file:") {
        Some(rest) => percent_decode_str(rest.strip_prefix("//").unwrap_or(rest)).decode_utf8().ok()?,
        None => location.into(),
    };
    let path = Path::new(path.as_ref());
    let goes_up = path.components().any(|part| matches!(part, Component::ParentDir));
    (path.is_absolute() && !goes_up).then(|| path.to_owned())
}

/// The artifacts below one location. All paths are relative to it.
#[derive(Clone)]
pub struct Location {
    place: Arc<dyn ArtifactBackend>,
    below: ArtifactPath,
}

impl Location {
    /// Returns the location's path below `mlflow-artifacts:/`.
    #[must_use]
    pub fn path(&self) -> &ArtifactPath {
        &self.below
    }

    /// Returns the location of a path below this one.
    #[must_use]
    pub fn below(self, path: &ArtifactPath) -> Self {
        Self { below: self.below.join(path), ..self }
    }

    /// Lists a directory, with paths relative to the location ([`ArtifactBackend::list`]).
    ///
    /// # Errors
    /// The errors of the backend.
    pub async fn list(&self, path: &ArtifactPath) -> Result<Vec<FileInfo>> {
        let mut files = self.place.list(self.below.join(path)).await?;
        if !path.parts().is_empty() {
            for file in &mut files {
                file.path = format!("{path}/{}", file.path);
            }
        }
        Ok(files)
    }

    /// Opens a file for a client, or returns its URL ([`ArtifactBackend::download`]).
    ///
    /// # Errors
    /// The errors of the backend.
    pub async fn download(&self, path: &ArtifactPath) -> Result<Download> {
        self.place.download(self.below.join(path)).await
    }

    /// Reads a whole file of at most `most` bytes for the server itself, or returns `None` if there is
    /// no such file ([`ArtifactBackend::read`]).
    ///
    /// # Errors
    /// The errors of the backend.
    pub async fn read(&self, path: &ArtifactPath, most: usize) -> Result<Option<Bytes>> {
        self.place.read(self.below.join(path), most).await
    }

    /// Returns whether clients may read files by presigned URLs.
    #[must_use]
    pub fn has_urls(&self) -> bool {
        self.place.has_urls()
    }

    /// Writes a file and returns its length in bytes ([`ArtifactBackend::write`]).
    ///
    /// # Errors
    /// The errors of the backend, and of the chunks.
    pub async fn write(&self, path: &ArtifactPath, chunks: Chunks) -> Result<u64> {
        self.place.write(self.below.join(path), chunks).await
    }

    /// Deletes a file or a directory ([`ArtifactBackend::delete`]).
    ///
    /// # Errors
    /// The errors of the backend.
    pub async fn delete(&self, path: &ArtifactPath) -> Result<()> {
        self.place.delete(self.below.join(path)).await
    }

    /// Starts a multipart upload ([`ArtifactBackend::start_upload`]).
    ///
    /// # Errors
    /// The errors of the backend, and `INVALID_PARAMETER_VALUE` if there are more parts than a file
    /// of `longest` bytes can have. The total size of the parts can only be checked on completion.
    pub async fn start_upload(&self, path: &ArtifactPath, parts: i64, longest: Option<u64>) -> Result<StartedUpload> {
        let most = longest.map(|longest| longest.div_ceil(MIN_PART_BYTES as u64).max(1));
        let is_too_long = |most: u64| u64::try_from(parts).is_ok_and(|parts| parts > most);
        if let Some(longest) = longest.filter(|_| self.place.has_urls() && most.is_some_and(is_too_long)) {
            return Err(too_large(longest));
        }
        self.place.start_upload(self.below.join(path), parts).await
    }

    /// Completes a multipart upload ([`ArtifactBackend::complete_upload`]).
    ///
    /// # Errors
    /// The errors of the backend.
    pub async fn complete_upload(
        &self,
        path: &ArtifactPath,
        id: String,
        parts: Vec<SentPart>,
        longest: Option<u64>,
    ) -> Result<()> {
        self.place.complete_upload(self.below.join(path), id, parts, longest).await
    }

    /// Aborts a multipart upload ([`ArtifactBackend::abort_upload`]).
    ///
    /// # Errors
    /// The errors of the backend.
    pub async fn abort_upload(&self, path: &ArtifactPath, id: String) -> Result<()> {
        self.place.abort_upload(self.below.join(path), id).await
    }

    /// Returns a URL from which a client reads a file directly, valid for `expiration`
    /// ([`ArtifactBackend::download_url`]).
    ///
    /// # Errors
    /// The errors of the backend.
    pub async fn download_url(
        &self,
        path: &ArtifactPath,
        expiration: Duration,
        what: &'static str,
    ) -> Result<DownloadUrl> {
        self.place.download_url(self.below.join(path), expiration, what).await
    }

    /// Returns a URL to which a client writes a file directly, valid for `expiration`
    /// ([`ArtifactBackend::upload_url`]).
    ///
    /// # Errors
    /// The errors of the backend.
    pub async fn upload_url(&self, path: &ArtifactPath, expiration: Duration) -> Result<UploadUrl> {
        self.place.upload_url(self.below.join(path), expiration).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_lead_below_the_root_or_nowhere() {
        for (root, location, expected) in [
            ("/r", "/r/1/models", "1/models"),
            ("/r", "file:///r/1", "1"),
            ("/r r", "file:///r%20r/1", "1"),
            ("file:/r", "/r/x", "x"),
            ("/r/", "/r", ""),
            ("/r", "mlflow-artifacts:/1/r/artifacts", "1/r/artifacts"),
            ("/r", "mlflow-artifacts:///1?x=y", "1"),
            ("/r", "mlflow-artifacts:/", ""),
            ("s3://bucket/r", "s3://bucket/r/1", "1"),
            ("s3://bucket/r/", "mlflow-artifacts:/1", "1"),
        ] {
            assert_eq!(
                ArtifactStore::below(root).at(location).unwrap().below.to_string(),
                expected,
                "{root} {location}"
            );
        }
        for (root, location) in [
            ("/r", "/root/1"),
            ("/r", "/"),
            ("/r", "/r/../etc"),
            ("/r", "file:///r/%2e%2e/etc"),
            ("/r", "r/1"),
            ("/r", "s3://bucket/r"),
            ("s3://bucket/r", "s3://other/r/1"),
            ("s3://bucket/r", "/r/1"),
            ("gs://bucket/r", "gs://bucket/r/1"),
            ("gs://bucket/r", "mlflow-artifacts:/1"),
            ("/r", "file://host/r/1"),
            ("/r", "mlflow-artifacts://host/r/1"),
        ] {
            if let Some(uri) = ArtifactStore::below(root).uri() {
                assert_eq!(ArtifactStore::below(root).at(&uri).unwrap().below.to_string(), "", "{uri}");
            }
            let code = ArtifactStore::below(root).at(location).map(|_| ()).map_err(|error| error.code);
            assert_eq!(code, Err(ErrorCode::NotImplemented), "{root} {location}");
        }
        assert!(ArtifactStore::below("/r").at("mlflow-artifacts:/../x").is_err());
    }
}
