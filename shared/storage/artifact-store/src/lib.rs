//! Where artifacts are kept. [`Artifacts`] says which place a location leads to. An
//! [`ArtifactBackend`] lists, sends, takes and deletes files below an [`ArtifactPath`].
//!
//! There are two kinds of places: a directory of this machine, walked without following links, and
//! a prefix of a bucket. Clients read and write all other locations themselves. A method that a
//! directory cannot offer has MLflow's refusal as its default, because MLflow's client looks for
//! these words.

mod artifacts;
mod aside;
mod backend;
pub mod bucket;
mod content_type;
mod directory;
mod path;
mod prefix;
mod proxied;
mod room;
mod staging;
mod walk;

pub use artifacts::{Artifacts, Location, not_read};
pub use backend::{
    ArtifactBackend, Chunks, DOWNLOAD, DownloadUrl, SentPart, StartedUpload, UploadUrl, at_most, too_large, unsupported,
};
pub use directory::Directory;
pub use path::ArtifactPath;
pub use prefix::Prefix;
