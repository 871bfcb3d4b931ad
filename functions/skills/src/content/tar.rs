//! A reader of tar archives.

use mlflow_api::Result;
use mlflow_api::skills::ContentLimits;

use super::errors::{malformed, too_large_metadata};

/// Number of bytes per entry that an archive may have in addition to its content and the padding of
/// that.
pub(super) const HEADER_BYTES: usize = 1_024;
/// Size of a block, in bytes.
const BLOCK: usize = 512;

/// The type of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Directory,
    /// A link, a device, or anything else that archives of skills must not have.
    Other,
}

/// The header of an entry.
pub(super) struct Entry {
    /// Name, as written.
    pub(super) name: Vec<u8>,
    /// Type.
    pub(super) kind: Kind,
    /// Size of the content in bytes, or `None` if it is negative.
    pub(super) size: Option<usize>,
}

/// A reader of the entries of an archive, one after another.
pub(super) struct Entries<'a> {
    archive: &'a [u8],
    rest: &'a [u8],
    limits: ContentLimits,
    is_cut: bool,
    content_bytes: usize,
}

impl<'a> Entries<'a> {
    /// Reads an archive. With `is_cut`, `archive` is only the beginning of it.
    pub(super) fn of(archive: &'a [u8], is_cut: bool, limits: ContentLimits) -> Self {
        Self { archive, rest: archive, limits, is_cut, content_bytes: 0 }
    }

    /// Reads the header of the next entry. Returns `None` at the end of the archive.
    ///
    /// # Errors
    /// Fails if the archive is malformed, or has too many bytes that are no content.
    pub(super) fn next(&mut self) -> Result<Option<Entry>> {
        let (mut long_name, mut extended) = (None, Extended::default());
        loop {
            let Some(header) = self.header()? else {
                return if long_name.is_none() && extended.is_empty() { Ok(None) } else { Err(malformed()) };
            };
            let kind = byte_at(header, 156);
            let is_extension = b"LKxXg".contains(&kind);
            let is_negative = byte_at(header, 124) == 255;
            let size = match extended.size.filter(|_| !is_extension) {
                Some(size) => Some(size),
                None if is_negative && !is_extension => None,
                None => Some(number(field(header, 124, 12)).ok_or_else(malformed)?),
            };
            if is_extension {
                let content = self.bytes(size.unwrap_or_default())?;
                match kind {
                    b'L' => long_name = Some(until_zero(content).to_vec()),
                    b'x' | b'X' => extended.read(content)?,
                    // The target of a link, which is refused, and defaults for all entries, of
                    // which none is used.
                    _ => {}
                }
                continue;
            }
            let name = extended.path.take().or_else(|| long_name.take()).unwrap_or_else(|| name(header));
            let kind = match kind {
                0 if !name.ends_with(b"/") => Kind::File,
                b'0' | b'7' => Kind::File,
                0 | b'5' => Kind::Directory,
                _ => Kind::Other,
            };
            return Ok(Some(Entry { name, kind, size }));
        }
    }

    /// Reads the content of the file whose header has been read.
    pub(super) fn content(&mut self, size: usize) -> Result<&'a [u8]> {
        self.content_bytes += size.checked_next_multiple_of(BLOCK).ok_or_else(malformed)?;
        self.bytes(size)
    }

    /// Checks the bytes after the last entry.
    ///
    /// # Errors
    /// Fails if the whole archive has too many bytes that are no content.
    pub(super) fn finish(&self) -> Result<()> {
        self.check_metadata(self.archive.len())
    }

    /// Checks how many of the first bytes of the archive are no content.
    fn check_metadata(&self, bytes: usize) -> Result<()> {
        let most = self.limits.files * HEADER_BYTES + self.content_bytes;
        if bytes > most { Err(too_large_metadata(self.limits, most)) } else { Ok(()) }
    }

    /// Reads a header. Returns `None` at the end of the archive.
    fn header(&mut self) -> Result<Option<&'a [u8]>> {
        if self.rest.is_empty() && !self.is_cut {
            return Ok(None);
        }
        let header = self.take(BLOCK)?;
        if header.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let sum = |sign: fn(u8) -> i64| {
            let of = |(place, byte): (usize, &u8)| if (148..156).contains(&place) { 32 } else { sign(*byte) };
            header.iter().enumerate().map(of).sum::<i64>()
        };
        let stored = number(field(header, 148, 8)).and_then(|stored| i64::try_from(stored).ok());
        let sums = [sum(i64::from), sum(|byte| i64::from(byte.cast_signed()))];
        if stored.is_none_or(|stored| !sums.contains(&stored)) {
            return Err(malformed());
        }
        Ok(Some(header))
    }

    /// Reads bytes, and their padding.
    fn bytes(&mut self, size: usize) -> Result<&'a [u8]> {
        let padded = self.take(size.checked_next_multiple_of(BLOCK).ok_or_else(malformed)?)?;
        padded.get(..size).ok_or_else(malformed)
    }

    fn take(&mut self, size: usize) -> Result<&'a [u8]> {
        let Some((taken, rest)) = self.rest.split_at_checked(size) else {
            // A cut archive is larger than its content may be together with all headers.
            self.finish()?;
            return Err(malformed());
        };
        self.rest = rest;
        self.check_metadata(self.archive.len() - rest.len())?;
        Ok(taken)
    }
}

/// The name and the size of the next entry, if an extended header (`x`) contains them. They replace
/// those of the entry's own header.
#[derive(Default)]
struct Extended {
    path: Option<Vec<u8>>,
    size: Option<usize>,
}

impl Extended {
    fn is_empty(&self) -> bool {
        self.path.is_none() && self.size.is_none()
    }

    /// Reads records of the form `<length> <key>=<value>\n`.
    fn read(&mut self, mut records: &[u8]) -> Result<()> {
        while !records.is_empty() && records.first() != Some(&0) {
            let end = records.iter().position(|byte| *byte == b' ').ok_or_else(malformed)?;
            let length = decimal(records.get(..end).unwrap_or_default()).ok_or_else(malformed)?;
            let (record, rest) = records.split_at_checked(length).ok_or_else(malformed)?;
            let record = record.get(end + 1..).and_then(|record| record.strip_suffix(b"\n")).ok_or_else(malformed)?;
            let equals = record.iter().position(|byte| *byte == b'=').ok_or_else(malformed)?;
            let (key, value) = (record.get(..equals).unwrap_or_default(), record.get(equals + 1..).unwrap_or_default());
            match key {
                b"path" => self.path = Some(value.to_vec()),
                b"size" => self.size = Some(decimal(value).ok_or_else(malformed)?),
                key if key.starts_with(b"GNU.sparse.") => return Err(malformed()),
                _ => {}
            }
            records = rest;
        }
        Ok(())
    }
}

/// Returns the name of an entry in its header, after the prefix that the header may contain.
fn name(header: &[u8]) -> Vec<u8> {
    let (name, prefix) = (until_zero(field(header, 0, 100)), until_zero(field(header, 345, 155)));
    let is_posix = field(header, 257, 6) == b"ustar\0";
    if is_posix && !prefix.is_empty() { [prefix, b"/", name].concat() } else { name.to_vec() }
}

fn field(header: &[u8], start: usize, length: usize) -> &[u8] {
    header.get(start..start + length).unwrap_or_default()
}

fn byte_at(header: &[u8], place: usize) -> u8 {
    header.get(place).copied().unwrap_or_default()
}

fn until_zero(text: &[u8]) -> &[u8] {
    text.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Parses a number in a header: octal digits or, if the first byte is 128, a big-endian integer.
fn number(field: &[u8]) -> Option<usize> {
    if let [128, rest @ ..] = field {
        return rest.iter().try_fold(0_usize, |number, byte| number.checked_mul(256)?.checked_add(usize::from(*byte)));
    }
    let text = std::str::from_utf8(until_zero(field)).ok()?.trim();
    if text.is_empty() { Some(0) } else { usize::from_str_radix(text, 8).ok() }
}

fn decimal(digits: &[u8]) -> Option<usize> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}
