use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rand::RngExt;
use rand::rngs::StdRng;

/// Number of bytes that a disk writes atomically.
const SECTOR_BYTES: usize = 512;

/// Contents of files, by their names in the directory.
pub(crate) type FileContents = BTreeMap<String, Arc<Vec<u8>>>;

/// The content of a disk after a power cut.
#[derive(Clone, Debug, Default)]
pub struct DiskImage {
    pub(crate) files: FileContents,
}

impl DiskImage {
    /// Writes the files into a directory.
    pub fn write_to(&self, directory: &Path) -> io::Result<()> {
        self.files.iter().try_for_each(|(name, content)| std::fs::write(directory.join(name), content.as_slice()))
    }
}

/// An unsynced operation of SQLite on a file.
#[derive(Clone, Debug)]
pub(crate) enum FileChange {
    Write { offset: usize, bytes: Vec<u8> },
    Truncate(usize),
    Delete,
}

impl FileChange {
    /// Applies the change to a file, which need not exist.
    pub(crate) fn apply(&self, file: &mut Option<Arc<Vec<u8>>>) {
        match self {
            Self::Write { offset, bytes } => {
                let content = Arc::make_mut(file.get_or_insert_default());
                let end = offset + bytes.len();
                content.resize(content.len().max(end), 0);
                content[*offset..end].copy_from_slice(bytes);
            }
            Self::Truncate(length) => Arc::make_mut(file.get_or_insert_default()).resize(*length, 0),
            Self::Delete => *file = None,
        }
    }

    /// Returns what a disk could have written of the change without a sync, chosen at random: all
    /// of it, nothing, or some of its sectors.
    pub(crate) fn in_part(&self, random: &mut StdRng) -> Vec<Self> {
        match (random.random_range(0..3), self) {
            (0, _) => Vec::new(),
            (1, Self::Write { offset, bytes }) => {
                // The first part ends at the first sector boundary, and each further part is a
                // sector.
                let first = (SECTOR_BYTES - offset % SECTOR_BYTES).min(bytes.len());
                let (head, tail) = bytes.split_at(first);
                let sectors = std::iter::once((*offset, head)).chain(
                    tail.chunks(SECTOR_BYTES)
                        .enumerate()
                        .map(|(number, part)| (offset + first + number * SECTOR_BYTES, part)),
                );
                let kept = sectors.filter(|_| random.random_range(0..2) == 0);
                kept.map(|(offset, part)| Self::Write { offset, bytes: part.to_vec() }).collect()
            }
            _ => vec![self.clone()],
        }
    }
}
