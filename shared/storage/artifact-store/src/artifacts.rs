//! From the location of an experiment, a run or a model to the place where its artifacts are.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::bucket::SMALLEST_PART;
use mlflow_api::logged_models::FileInfo;
use mlflow_api::{Error, ErrorCode, Result};
use percent_encoding::percent_decode_str;
use service::{Answer, FileUrl};

use crate::backend::{ArtifactBackend, Chunks, DOWNLOAD, DownloadUrl, SentPart, StartedUpload, UploadUrl, too_large};
use crate::directory::{self, Directory};
use crate::path::ArtifactPath;
use crate::prefix::Prefix;

/// The artifacts of a server. Cheap to clone; the same for all functions.
#[derive(Clone, Debug, Default)]
pub struct Artifacts {
    kept: Option<Kept>,
    is_presigned_only: bool,
}

#[derive(Clone, Debug)]
enum Kept {
    Directory { root: Arc<Path>, place: Directory },
    Bucket(Prefix),
}

impl Artifacts {
    /// Those below an artifact root, if it is a directory of this machine (a path, or a `file:` URI) or an S3 URI. Of any other, the server
    /// can read nothing. A bucket is asked for nothing yet.
    #[must_use]
    pub fn below(root: &str) -> Self {
        if let Some(prefix) = Prefix::of_uri(root) {
            return Self::in_bucket(prefix);
        }
        local_path(root).map_or_else(Self::default, |root| Self::in_directory(&root))
    }

    /// Those of a function: below `ARTIFACTS_DESTINATION` of its environment, or below the artifact root where that is not set.
    /// `ARTIFACTS_PRESIGNED_ONLY=true` asks clients to use presigned URLs only.
    #[must_use]
    pub fn from_environment(artifact_root: &str) -> Self {
        let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let destination = set("ARTIFACTS_DESTINATION");
        let presigned_only = set("ARTIFACTS_PRESIGNED_ONLY");
        let is_presigned_only = presigned_only.as_deref().is_some_and(is_true);
        Self::below(destination.as_deref().unwrap_or(artifact_root)).presigned_only(is_presigned_only)
    }

    /// Those in a directory of this machine. `mlflow-artifacts:/` is this directory.
    #[must_use]
    pub fn in_directory(root: &Path) -> Self {
        let kept = Kept::Directory { root: root.into(), place: Directory::new(root) };
        Self { kept: Some(kept), is_presigned_only: false }
    }

    /// Those below a prefix of a bucket, which is `mlflow-artifacts:/`.
    #[must_use]
    pub fn in_bucket(prefix: Prefix) -> Self {
        Self { kept: Some(Kept::Bucket(prefix)), is_presigned_only: false }
    }

    /// The same artifacts. Clients that know how to are asked to send and read by presigned URLs only.
    #[must_use]
    pub fn presigned_only(self, is_presigned_only: bool) -> Self {
        Self { is_presigned_only, ..self }
    }

    /// The same artifacts, for a server without a bound on a call: a bucket may take this long to join the parts of an upload.
    #[must_use]
    pub fn completing_within(self, completion: Duration) -> Self {
        let kept = self.kept.map(|kept| match kept {
            Kept::Bucket(prefix) => Kept::Bucket(prefix.completing_within(completion)),
            directory @ Kept::Directory { .. } => directory,
        });
        Self { kept, ..self }
    }

    /// Whether clients that know how to are to use presigned URLs only: never where there are none.
    #[must_use]
    pub fn is_presigned_only(&self) -> bool {
        self.is_presigned_only && self.has_urls()
    }

    /// Whether clients may send and read files themselves, by presigned URLs.
    #[must_use]
    pub fn has_urls(&self) -> bool {
        matches!(self.kept, Some(Kept::Bucket(_)))
    }

    /// Whether the server keeps any.
    #[must_use]
    pub fn are_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// The directory, where there is one.
    #[must_use]
    pub fn directory(&self) -> Option<&Directory> {
        match &self.kept {
            Some(Kept::Directory { place, .. }) => Some(place),
            _ => None,
        }
    }

    /// The prefix of a bucket, where the server keeps its artifacts there.
    #[must_use]
    pub fn prefix(&self) -> Option<&Prefix> {
        match &self.kept {
            Some(Kept::Bucket(prefix)) => Some(prefix),
            _ => None,
        }
    }

    /// Whether an S3 URI leads to a file that this server keeps, so that the server reads it with
    /// its own rights.
    #[must_use]
    pub fn keeps_object(&self, uri: &str) -> bool {
        self.prefix().is_some_and(|prefix| prefix.below(uri).is_some())
    }

    /// The location of `mlflow-artifacts:/`.
    ///
    /// # Errors
    /// `NOT_IMPLEMENTED`, where the server keeps no artifacts.
    pub fn root(&self) -> Result<Location> {
        self.at("mlflow-artifacts:/")
    }

    /// The target of a location: `mlflow-artifacts:/…`, a path on this machine, or an S3 URI.
    ///
    /// # Errors
    /// `NOT_IMPLEMENTED` for a target that this server does not keep.
    pub fn at(&self, location: &str) -> Result<Location> {
        let not_here = || not_read(location);
        let kept = self.kept.as_ref().ok_or_else(not_here)?;
        let below = match location.strip_prefix("mlflow-artifacts:") {
            Some(rest) => ArtifactPath::parse(proxied_path(rest).ok_or_else(not_here)?)?,
            None => match kept {
                Kept::Directory { root, .. } => {
                    let path = local_path(location).and_then(|path| directory::below(root, &path));
                    ArtifactPath::parse(path.as_deref().and_then(Path::to_str).ok_or_else(not_here)?)?
                }
                Kept::Bucket(prefix) => prefix.below(location).ok_or_else(not_here)?,
            },
        };
        let place: Arc<dyn ArtifactBackend> = match kept {
            Kept::Directory { place, .. } => Arc::new(place.clone()),
            Kept::Bucket(prefix) => Arc::new(prefix.clone()),
        };
        Ok(Location { place, below })
    }
}

/// A location that this server does not read.
#[must_use]
pub fn not_read(location: &str) -> Error {
    let message = format!(
        "This server cannot read or write artifacts in '{location}'. Clients do it themselves, with rights of their own."
    );
    Error::new(ErrorCode::NotImplemented, message)
}

/// Whether a variable is `true`. Any value but that and `false` is logged, and counts as `false`.
fn is_true(variable: &str) -> bool {
    let is_true = variable.eq_ignore_ascii_case("true");
    if !is_true && !variable.eq_ignore_ascii_case("false") {
        tracing::warn!(variable, "ARTIFACTS_PRESIGNED_ONLY is neither true nor false");
    }
    is_true
}

/// The path after `mlflow-artifacts:`; `None` with a host, which is another server's.
fn proxied_path(rest: &str) -> Option<&str> {
    let path = rest.split(['?', '#']).next().unwrap_or_default();
    let path = match path.strip_prefix("//") {
        Some(rest) => rest.strip_prefix('/')?,
        None => path,
    };
    Some(path.trim_start_matches('/'))
}

/// The absolute path of a location, which is that path or a `file:` URI without a host.
fn local_path(location: &str) -> Option<PathBuf> {
    let path = match location.strip_prefix("file:") {
        Some(rest) => percent_decode_str(rest.strip_prefix("//").unwrap_or(rest)).decode_utf8().ok()?,
        None => location.into(),
    };
    let path = Path::new(path.as_ref());
    let goes_up = path.components().any(|part| matches!(part, Component::ParentDir));
    (path.is_absolute() && !goes_up).then(|| path.to_owned())
}

/// The artifacts below one location. All paths are below it.
#[derive(Clone)]
pub struct Location {
    place: Arc<dyn ArtifactBackend>,
    below: ArtifactPath,
}

impl Location {
    /// Its path below `mlflow-artifacts:/`.
    #[must_use]
    pub fn path(&self) -> &ArtifactPath {
        &self.below
    }

    /// The location of a path below this one.
    #[must_use]
    pub fn below(self, path: &ArtifactPath) -> Self {
        Self { below: self.below.join(path), ..self }
    }

    /// The entries of a directory, each with its path below the location
    /// ([`ArtifactBackend::list`]).
    ///
    /// # Errors
    /// Those of the place.
    pub async fn list(&self, path: &ArtifactPath) -> Result<Vec<FileInfo>> {
        let mut files = self.place.list(self.below.join(path)).await?;
        if !path.parts().is_empty() {
            for file in &mut files {
                file.path = format!("{path}/{}", file.path);
            }
        }
        Ok(files)
    }

    /// A file as an answer ([`ArtifactBackend::send`]).
    ///
    /// # Errors
    /// Those of the place.
    pub async fn send(&self, path: &ArtifactPath) -> Result<Answer> {
        self.place.send(self.below.join(path)).await
    }

    /// A file as an answer, or where the client reads it itself, if that is asked for and can be done
    /// ([`ArtifactBackend::download_url`]).
    ///
    /// # Errors
    /// Those of the place.
    pub async fn answer(&self, path: &ArtifactPath, presigned: bool) -> Result<Answer> {
        if !presigned || !self.place.has_urls() {
            return self.send(path).await;
        }
        let found = self.download_url(path, DOWNLOAD, "Presigned download").await?;
        Answer::json(&FileUrl::new(found.url, found.length))
    }

    /// Writes a file ([`ArtifactBackend::write`]); returns its length in bytes.
    ///
    /// # Errors
    /// Those of the place, and those of the chunks.
    pub async fn write(&self, path: &ArtifactPath, chunks: Chunks) -> Result<u64> {
        self.place.write(self.below.join(path), chunks).await
    }

    /// Deletes a file or a directory ([`ArtifactBackend::delete`]).
    ///
    /// # Errors
    /// Those of the place.
    pub async fn delete(&self, path: &ArtifactPath) -> Result<()> {
        self.place.delete(self.below.join(path)).await
    }

    /// Begins an upload of so many parts ([`ArtifactBackend::start_upload`]).
    ///
    /// # Errors
    /// Those of the place, and `INVALID_PARAMETER_VALUE` for more parts than a file of `longest` bytes has: whether the parts together are
    /// longer is only seen when all of them are there.
    pub async fn start_upload(&self, path: &ArtifactPath, parts: i64, longest: Option<u64>) -> Result<StartedUpload> {
        let most = longest.map(|longest| longest.div_ceil(SMALLEST_PART as u64).max(1));
        let is_too_long = |most: u64| u64::try_from(parts).is_ok_and(|parts| parts > most);
        if let Some(longest) = longest.filter(|_| self.place.has_urls() && most.is_some_and(is_too_long)) {
            return Err(too_large(longest));
        }
        self.place.start_upload(self.below.join(path), parts).await
    }

    /// Makes a file of its parts ([`ArtifactBackend::complete_upload`]).
    ///
    /// # Errors
    /// Those of the place.
    pub async fn complete_upload(
        &self,
        path: &ArtifactPath,
        id: String,
        parts: Vec<SentPart>,
        longest: Option<u64>,
    ) -> Result<()> {
        self.place.complete_upload(self.below.join(path), id, parts, longest).await
    }

    /// Ends an upload ([`ArtifactBackend::abort_upload`]).
    ///
    /// # Errors
    /// Those of the place.
    pub async fn abort_upload(&self, path: &ArtifactPath, id: String) -> Result<()> {
        self.place.abort_upload(self.below.join(path), id).await
    }

    /// Where a client reads a file itself, for so long ([`ArtifactBackend::download_url`]).
    ///
    /// # Errors
    /// Those of the place.
    pub async fn download_url(
        &self,
        path: &ArtifactPath,
        expiration: Duration,
        what: &'static str,
    ) -> Result<DownloadUrl> {
        self.place.download_url(self.below.join(path), expiration, what).await
    }

    /// Where a client writes a file itself, for so long ([`ArtifactBackend::upload_url`]).
    ///
    /// # Errors
    /// Those of the place.
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
            assert_eq!(Artifacts::below(root).at(location).unwrap().below.to_string(), expected, "{root} {location}");
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
            let code = Artifacts::below(root).at(location).map(|_| ()).map_err(|error| error.code);
            assert_eq!(code, Err(ErrorCode::NotImplemented), "{root} {location}");
        }
        assert!(Artifacts::below("/r").at("mlflow-artifacts:/../x").is_err());
    }
}
