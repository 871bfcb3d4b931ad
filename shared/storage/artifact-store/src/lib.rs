//! Storage of artifacts. [`Artifacts`] maps a location to its backend. An [`ArtifactBackend`]
//! lists, reads, writes and deletes files by [`ArtifactPath`].
//!
//! There are two kinds of backends: a local directory, which is traversed without following links,
//! and a prefix of a bucket. Clients access all other locations themselves. Methods that a
//! directory does not support return MLflow's error by default, because MLflow's client depends on
//! its wording.

mod artifacts;
mod aside;
mod backend;
pub mod bucket;
mod content_type;
mod directory;
mod download;
mod path;
mod prefix;
mod proxied;
mod room;
mod staging;
mod walk;

pub use artifacts::{Artifacts, Location, not_read};
pub use aside::OffloadedResponse;
pub use backend::{
    ArtifactBackend, Chunks, DOWNLOAD, DownloadUrl, SentPart, StartedUpload, UploadUrl, at_most, too_large, unsupported,
};
pub use directory::Directory;
pub use download::{Download, ReadRange, StoredFile};
pub use path::ArtifactPath;
pub use prefix::Prefix;
