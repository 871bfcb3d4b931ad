//! A reader of tar archives that accepts regular files and directories only.

use mlflow_api::skills::display_path;
use mlflow_api::{Error, Result};

/// Size of a block, in bytes.
const BLOCK: usize = 512;
/// Maximum size of the metadata that precedes an entry, in bytes: a long name, or an extended
/// header.
const MAX_EXTENSION: usize = 64 << 10;

/// An entry of an archive.
pub(super) struct Entry<'a> {
    /// Name, as the archive contains it.
    pub(super) name: Vec<u8>,
    /// Whether it is a directory.
    pub(super) is_directory: bool,
    /// Content.
    pub(super) content: &'a [u8],
}

/// A reader of the entries of an archive, one after another.
pub(super) struct Entries<'a> {
    rest: &'a [u8],
}

impl<'a> Entries<'a> {
    pub(super) fn of(archive: &'a [u8]) -> Self {
        Self { rest: archive }
    }

    /// Reads the next entry. Returns `None` at the end of the archive.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if the archive is malformed, or has an entry that is
    /// neither a file nor a directory.
    pub(super) fn next(&mut self) -> Result<Option<Entry<'a>>> {
        let (mut long_name, mut extended) = (None, Extended::default());
        loop {
            let Some(header) = self.header()? else {
                return if long_name.is_none() && extended.is_empty() { Ok(None) } else { Err(malformed()) };
            };
            let kind = byte_at(header, 156);
            let size = extended.size.filter(|_| !b"LKxg".contains(&kind));
            let size = match size {
                Some(size) => size,
                None => number(field(header, 124, 12)).ok_or_else(malformed)?,
            };
            match kind {
                b'L' | b'K' | b'x' | b'X' | b'g' => {
                    let content = self.content(size.min(MAX_EXTENSION + 1))?;
                    if size > MAX_EXTENSION {
                        return Err(Error::invalid("Archive metadata is larger than the allowance for tar headers."));
                    }
                    match kind {
                        b'L' => long_name = Some(until_zero(content).to_vec()),
                        b'x' | b'X' => extended.read(content)?,
                        // `K` contains the target of a link, and links are refused below. `g`
                        // contains defaults for all entries, which are ignored.
                        _ => {}
                    }
                }
                _ => {
                    let name = extended.path.take().or_else(|| long_name.take()).unwrap_or_else(|| name(header));
                    let ends_in_slash = name.ends_with(b"/");
                    let is_directory = kind == b'5' || (kind == 0 && ends_in_slash);
                    if !is_directory && !matches!(kind, 0 | b'0' | b'7') {
                        return Err(Error::invalid(format!(
                            "Archive entry '{}' is not a regular file or directory.",
                            display_path(&name)
                        )));
                    }
                    let content = if is_directory { &[] } else { self.content(size)? };
                    return Ok(Some(Entry { name, is_directory, content }));
                }
            }
        }
    }

    /// Reads a header. Returns `None` at the end of the archive, which is a block of zeros or the
    /// end of the data.
    fn header(&mut self) -> Result<Option<&'a [u8]>> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (header, rest) = self.rest.split_at_checked(BLOCK).ok_or_else(malformed)?;
        self.rest = rest;
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

    /// Reads the content of an entry, and skips the padding after it.
    fn content(&mut self, size: usize) -> Result<&'a [u8]> {
        let padded = size.checked_next_multiple_of(BLOCK).ok_or_else(malformed)?;
        let (padded, rest) = self.rest.split_at_checked(padded).ok_or_else(malformed)?;
        self.rest = rest;
        padded.get(..size).ok_or_else(malformed)
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

fn malformed() -> Error {
    Error::invalid("'content.tar.gz' is not a readable tar archive.")
}
