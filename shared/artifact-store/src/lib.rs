//! Where artifacts are kept. [`Artifacts`] says which place a location leads to, a [`Place`] lists, sends, takes and deletes what is
//! below an [`ArtifactPath`]. So far there is one kind of place, a directory of this machine; what lies elsewhere is read and written
//! by clients themselves.

mod artifacts;
mod content_type;
mod directory;
mod path;
mod place;
mod staging;
mod walk;

pub use artifacts::{Artifacts, Location};
pub use directory::Directory;
pub use path::ArtifactPath;
pub use place::{Chunks, Place, at_most};
