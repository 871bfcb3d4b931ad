//! From command line options to the artifacts that the server keeps.

use artifact_store::{Artifacts, Prefix};
use clap::Args;
use mlflow_api::location;

use crate::Failure;
use crate::connect::Storage;

/// Where artifacts are.
#[derive(Args)]
pub(crate) struct ArtifactOptions {
    /// Where experiments keep their artifacts unless they say otherwise. By default, clients send and read them through this server. In a
    /// directory that is named here, clients of this machine write them themselves; in a bucket, clients with rights of their own.
    #[arg(long, value_name = "URI", default_value = "mlflow-artifacts:/")]
    artifact_root: String,
    /// Where this server keeps artifacts: a directory, or a bucket (`s3://bucket/path`). For a
    /// bucket, it uses the environment's credentials, and clients send and read files by presigned
    /// URLs [default: the artifact root, if it is such a place, or a directory next to the data].
    #[arg(long, value_name = "URI")]
    artifacts_destination: Option<String>,
}

/// The artifacts that the options choose.
pub(crate) struct Kept {
    /// The working directory.
    pub(crate) directory: String,
    /// Where new experiments keep artifacts.
    pub(crate) root: String,
    /// Those that this server keeps.
    pub(crate) artifacts: Artifacts,
}

impl ArtifactOptions {
    /// The artifacts that this server keeps. They are in the chosen place, or else in its artifact
    /// root, if it is such a place, or else next to the data.
    pub(crate) fn open(&self, storage: &Storage) -> Result<Kept, Failure> {
        let directory = std::env::current_dir()?;
        let directory = directory.to_str().ok_or("the working directory's name is no valid text")?.to_owned();
        let absolute = |uri: &str| location::absolute(uri, Some(&directory)).map_err(|error| error.message);
        let root = absolute(&self.artifact_root)?;
        if root.starts_with("s3:") && Prefix::of_uri(&root).is_none() {
            return Err(format!("{root} names no bucket (s3://bucket/path)").into());
        }
        let destination = absolute(self.artifacts_destination.as_deref().unwrap_or(&root))?;
        let artifacts = Artifacts::below(&destination);
        if self.artifacts_destination.is_some() && !artifacts.are_kept() {
            return Err(format!(
                "{destination} is neither a directory of this machine nor a bucket (s3://bucket/path)"
            )
            .into());
        }
        let artifacts = if artifacts.are_kept() { artifacts } else { Artifacts::in_directory(&storage.artifacts()?) };
        Ok(Kept { directory, root, artifacts })
    }
}
