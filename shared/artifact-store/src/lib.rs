//! Where artifacts are kept. [`Artifacts`] says which place a location leads to, a [`Place`] lists, sends, takes and deletes what is
//! below an [`ArtifactPath`]. There are two kinds of places, a directory of this machine and what is below a prefix of a bucket; what lies
//! elsewhere is read and written by clients themselves.

mod artifacts;
mod aside;
mod content_type;
mod directory;
mod path;
mod place;
mod prefix;
mod proxied;
mod room;
mod staging;
mod walk;

pub use artifacts::{Artifacts, Location, not_read};
pub use directory::Directory;
pub use path::ArtifactPath;
pub use place::{
    Chunks, DOWNLOAD, DownloadUrl, Place, SentPart, StartedUpload, UploadUrl, at_most, too_large, unsupported,
};
pub use prefix::Prefix;
