//! From the location of an experiment, a run or a model to the place where its artifacts are.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use mlflow_api::logged_models::FileInfo;
use mlflow_api::{Error, ErrorCode, Result};
use percent_encoding::percent_decode_str;
use service::Answer;

use crate::directory::{self, Directory};
use crate::path::ArtifactPath;
use crate::place::{Chunks, Place};

/// The artifacts of a server. Cheap to clone; the same for all functions.
#[derive(Clone, Debug, Default)]
pub struct Artifacts(Option<Kept>);

#[derive(Clone, Debug)]
struct Kept {
    root: Arc<Path>,
    place: Directory,
}

impl Artifacts {
    /// Those below an artifact root, if it is a directory of this machine: a path, or a `file:` URI. Of any other, the server can read
    /// nothing.
    #[must_use]
    pub fn below(root: &str) -> Self {
        local_path(root).map_or_else(Self::default, |root| Self::in_directory(&root))
    }

    /// Those in a directory of this machine. `mlflow-artifacts:/` is this directory.
    #[must_use]
    pub fn in_directory(root: &Path) -> Self {
        Self(Some(Kept { root: root.into(), place: Directory::new(root) }))
    }

    /// The directory, where there is one.
    #[must_use]
    pub fn directory(&self) -> Option<&Directory> {
        self.0.as_ref().map(|kept| &kept.place)
    }

    /// What `mlflow-artifacts:/` is.
    ///
    /// # Errors
    /// `NOT_IMPLEMENTED`, where the server keeps no artifacts.
    pub fn root(&self) -> Result<Location> {
        self.at("mlflow-artifacts:/")
    }

    /// What a location leads to: `mlflow-artifacts:/…`, or a path on this machine.
    ///
    /// # Errors
    /// `NOT_IMPLEMENTED` for what is not kept by this server.
    pub fn at(&self, location: &str) -> Result<Location> {
        let not_here = || {
            let message = format!(
                "This server cannot read or write artifacts in '{location}'. Clients do it themselves, with rights of their own."
            );
            Error::new(ErrorCode::NotImplemented, message)
        };
        let kept = self.0.as_ref().ok_or_else(not_here)?;
        let below = if let Some(rest) = location.strip_prefix("mlflow-artifacts:") {
            let path = rest.split(['?', '#']).next().unwrap_or_default();
            // With a host, it is another server's.
            let path = match path.strip_prefix("//") {
                Some(rest) => rest.strip_prefix('/').ok_or_else(not_here)?,
                None => path,
            };
            ArtifactPath::parse(path.trim_start_matches('/'))?
        } else {
            let path = local_path(location).and_then(|path| directory::below(&kept.root, &path));
            ArtifactPath::parse(path.as_deref().and_then(Path::to_str).ok_or_else(not_here)?)?
        };
        Ok(Location { place: Arc::new(kept.place.clone()), below })
    }
}

/// The absolute path that a location stands for: one as it is, or a `file:` URI without a host.
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
    place: Arc<dyn Place>,
    below: ArtifactPath,
}

impl Location {
    /// What is in a directory, each with its path below the location ([`Place::list`]).
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

    /// A file as an answer ([`Place::send`]).
    ///
    /// # Errors
    /// Those of the place.
    pub async fn send(&self, path: &ArtifactPath) -> Result<Answer> {
        self.place.send(self.below.join(path)).await
    }

    /// Writes a file ([`Place::write`]); returns its length in bytes.
    ///
    /// # Errors
    /// Those of the place, and those of the chunks.
    pub async fn write(&self, path: &ArtifactPath, chunks: Chunks) -> Result<u64> {
        self.place.write(self.below.join(path), chunks).await
    }

    /// Deletes a file or a directory ([`Place::delete`]).
    ///
    /// # Errors
    /// Those of the place.
    pub async fn delete(&self, path: &ArtifactPath) -> Result<()> {
        self.place.delete(self.below.join(path)).await
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
            ("s3://bucket/r", "s3://bucket/r/1"),
            ("s3://bucket/r", "mlflow-artifacts:/1"),
            ("/r", "file://host/r/1"),
            ("/r", "mlflow-artifacts://host/r/1"),
        ] {
            let code = Artifacts::below(root).at(location).map(|_| ()).map_err(|error| error.code);
            assert_eq!(code, Err(ErrorCode::NotImplemented), "{root} {location}");
        }
        assert!(Artifacts::below("/r").at("mlflow-artifacts:/../x").is_err());
    }
}
