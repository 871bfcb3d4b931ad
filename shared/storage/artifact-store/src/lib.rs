//! Storage of artifacts. [`ArtifactStore`] maps a location to its backend. An [`ArtifactBackend`]
//! lists, reads, writes and deletes files by [`ArtifactPath`].
//!
//! There are two kinds of backends: a local directory, which is traversed without following links,
//! and a prefix of a bucket. Clients access all other locations themselves. Methods that a
//! directory does not support return MLflow's error by default, because MLflow's client depends on
//! its wording.

mod archive;
mod artifacts;
mod backend;
pub mod bucket;
mod content_type;
mod directory;
mod directory_traversal;
mod download;
mod offloaded_response;
mod path;
mod prefix;
mod proxied_upload;
mod staging;
mod upload_limits;

pub use archive::{Archive, ArchiveBackend, ArchiveError, ArchivePage, ArchivedFile};
pub use artifacts::{ArtifactStore, Location, not_read};
pub use backend::{
    ArtifactBackend, Chunks, DOWNLOAD_EXPIRATION, DownloadUrl, SentPart, StartedUpload, UploadUrl, at_most, too_large,
    unsupported,
};
pub use directory::ArtifactDirectory;
pub use download::{Download, ReadRange, StoredFile};
pub use offloaded_response::OffloadedResponse;
pub use path::ArtifactPath;
pub use prefix::BucketPrefix;
