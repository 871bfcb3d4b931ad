//! The content of a skill: archives, which are unpacked in memory, and the digest of their files.

mod archive;
mod digest;
mod errors;
mod tar;
mod tree;

pub(crate) use archive::unpack;
pub(crate) use digest::digest;
pub(crate) use tree::ContentFile;
