//! Command line options that select the server's artifact storage.

use artifact_store::{ArtifactStore, BucketPrefix};
use clap::Args;
use mlflow_api::location;

use crate::Failure;
use crate::table_options::StorageOptions;

/// Options for the location of artifacts.
#[derive(Args)]
pub(crate) struct ArtifactOptions {
    /// Default artifact location of new experiments. By default, clients upload and download
    /// artifacts through this server. If it is a directory, clients on this machine access it
    /// directly; if it is a bucket, clients access it with credentials of their own.
    #[arg(long, value_name = "URI", default_value = "mlflow-artifacts:/")]
    artifact_root: String,
    /// Where this server stores artifacts: a directory, or a bucket (`s3://bucket/path`). For a
    /// bucket, the server uses the credentials of its environment, and clients upload and download
    /// files by presigned URLs [default: the artifact root if it is a directory or a bucket,
    /// otherwise a directory next to the data].
    #[arg(long, value_name = "URI")]
    artifacts_destination: Option<String>,
}

/// Artifact storage that the options select.
pub(crate) struct ArtifactStorage {
    /// The current working directory, against which relative locations are resolved.
    pub(crate) directory: String,
    /// Artifact location of new experiments.
    pub(crate) root: String,
    /// Artifacts that this server stores.
    pub(crate) artifacts: ArtifactStore,
}

impl ArtifactOptions {
    /// Opens the server's artifact storage: the selected destination, otherwise the artifact root
    /// if the server can store files there, otherwise a directory next to the data.
    pub(crate) fn open(&self, storage: &StorageOptions) -> Result<ArtifactStorage, Failure> {
        let directory = std::env::current_dir()?;
        let directory = directory.to_str().ok_or("the path of the working directory is not valid UTF-8")?.to_owned();
        let absolute = |uri: &str| location::absolute(uri, Some(&directory)).map_err(|error| error.message);
        let root = absolute(&self.artifact_root)?;
        if root.starts_with("s3:") && BucketPrefix::of_uri(&root).is_none() {
            return Err(format!("{root} does not name a bucket (s3://bucket/path)").into());
        }
        let destination = absolute(self.artifacts_destination.as_deref().unwrap_or(&root))?;
        let artifacts = ArtifactStore::below(&destination);
        if self.artifacts_destination.is_some() && !artifacts.are_kept() {
            return Err(format!("{destination} is neither a local directory nor a bucket (s3://bucket/path)").into());
        }
        let artifacts =
            if artifacts.are_kept() { artifacts } else { ArtifactStore::in_directory(&storage.artifacts()?) };
        Ok(ArtifactStorage { directory, root, artifacts })
    }
}
