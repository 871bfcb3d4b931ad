//! Artifact files, as clients download them.

use std::fmt;
use std::io;
use std::ops::Range;

use bytes::Bytes;
use futures::stream::BoxStream;

/// Reads a byte range of a file as a stream.
pub type ReadRange = Box<dyn FnOnce(Range<u64>) -> BoxStream<'static, io::Result<Bytes>> + Send>;

/// How a client reads a file.
#[derive(Debug)]
pub enum Download {
    /// The server sends the content.
    File(StoredFile),
    /// The client reads the content from this presigned URL.
    Url(String),
}

/// An open file.
pub struct StoredFile {
    /// Name, without directories.
    pub name: String,
    /// Content type.
    pub content_type: &'static str,
    /// Length in bytes.
    pub length: u64,
    /// Quoted entity tag, which changes with every change of the file.
    pub tag: String,
    /// Reads a range of the content.
    pub read: ReadRange,
}

impl fmt::Debug for StoredFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("StoredFile").field("name", &self.name).finish_non_exhaustive()
    }
}
