//! Unpacking of uploaded archives (`extract_skill_archive`). Everything happens in memory, within the
//! limits on content.

use std::io::Read;

use flate2::read::GzDecoder;
use mlflow_api::skills::{ContentLimits, canonical_path, display_path};
use mlflow_api::{Error, ErrorCode, Result};

use super::tar::Entries;
use super::tree::{ContentFile, Tree};

/// Number of bytes per permitted entry that a decompressed archive may have in addition to the
/// content of its files. An archive needs them for headers and padding.
const HEADER_BYTES: usize = 1_024;
/// Characters in names of files that MLflow's artifact API cannot download
/// (`_UNDOWNLOADABLE_CHARACTERS`).
const UNDOWNLOADABLE: [char; 3] = ['%', '?', '#'];

/// Unpacks a tar archive that is compressed by gzip, and returns its files, sorted by path.
///
/// # Errors
/// Fails with `INVALID_PARAMETER_VALUE` if the archive is malformed or too large, or has an entry
/// that MLflow refuses. In a Lambda, whose limits are lower than MLflow's, an archive that is too
/// large is refused with status 413 instead.
pub(crate) fn unpack(archive: &[u8], limits: ContentLimits) -> Result<Vec<ContentFile>> {
    if archive.is_empty() {
        return Err(Error::invalid("The 'content' part is empty."));
    }
    let unpacked = decompress(archive, limits)?;
    let (mut entries, mut tree) = (Entries::of(&unpacked), Tree::default());
    let (mut files, mut count, mut bytes) = (Vec::new(), 0, 0_usize);
    while let Some(entry) = entries.next()? {
        count += 1;
        if count > limits.files {
            return Err(too_large(limits, &format!("Archive contains more than {} entries.", limits.files)));
        }
        let Some(path) = path_of(&entry.name)? else {
            if entry.is_directory {
                continue;
            }
            return Err(Error::invalid("Archive root entry must be a directory."));
        };
        let composed = tree.add(&path, entry.is_directory)?;
        if entry.is_directory {
            continue;
        }
        bytes = bytes.saturating_add(entry.content.len());
        if bytes > limits.bytes {
            return Err(too_large_content(limits));
        }
        files.push((path, ContentFile { path: composed, content: entry.content.to_vec() }));
    }
    if files.is_empty() {
        return Err(Error::invalid("The uploaded skill content contains no files."));
    }
    for (path, file) in &files {
        // Files are stored under the composed form of their names, which is also the form in
        // MLflow's digest. MLflow checks the names as written, so both forms are checked.
        let is_undownloadable = |path: &str| path.contains(UNDOWNLOADABLE);
        if is_undownloadable(path) || is_undownloadable(&file.path) {
            return Err(Error::invalid(format!(
                "Uploaded skill content contains a name that cannot be downloaded back through the artifact API: '{path}'. \
                 Names must not contain '%', '?', '#'."
            )));
        }
    }
    let mut files: Vec<_> = files.into_iter().map(|(_, file)| file).collect();
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

/// Decompresses an archive. Stops and refuses it as soon as it exceeds the maximum size of the
/// content and of the headers together.
fn decompress(archive: &[u8], limits: ContentLimits) -> Result<Vec<u8>> {
    let most = limits.bytes + limits.files * HEADER_BYTES;
    let mut unpacked = Vec::new();
    let mut decoder = GzDecoder::new(archive).take(u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1));
    decoder
        .read_to_end(&mut unpacked)
        .map_err(|error| Error::invalid(format!("'content.tar.gz' is not a readable tar archive: {error}")))?;
    if unpacked.len() > most {
        return Err(too_large_content(limits));
    }
    Ok(unpacked)
}

/// Returns the canonical path of an entry with this name, or `None` for the root directory.
fn path_of(name: &[u8]) -> Result<Option<String>> {
    let shown = || display_path(name);
    let unsafe_path =
        |message: &str| Error::invalid(format!("Archive entry '{}' has an unsafe path: {message}", shown()));
    let text =
        std::str::from_utf8(name).map_err(|_| unsafe_path(&format!("Path '{}' is not valid UTF-8.", shown())))?;
    let text = text.strip_prefix("./").unwrap_or(text);
    if matches!(text, "" | "." | "./") {
        return Ok(None);
    }
    canonical_path(text).map_err(|error| unsafe_path(&error.message))
}

fn too_large_content(limits: ContentLimits) -> Error {
    let message = format!("Archive content exceeds the skill content size limit of {} bytes.", limits.bytes);
    too_large(limits, &message)
}

/// Returns the error for an archive that exceeds a limit. Its code is MLflow's, except in a Lambda,
/// whose limits MLflow does not have.
fn too_large(limits: ContentLimits, message: &str) -> Error {
    let code =
        if limits == ContentLimits::LAMBDA { ErrorCode::RequestTooLarge } else { ErrorCode::InvalidParameterValue };
    Error::new(code, message)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    const SMALL: ContentLimits = ContentLimits { bytes: 10_000, files: 10 };

    /// Returns the tar header of an entry whose type flag is `kind`.
    fn header(name: &str, kind: u8, size: usize) -> Vec<u8> {
        let mut header = vec![0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
        header[156] = kind;
        header[257..263].copy_from_slice(b"ustar\0");
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        header
    }

    fn archive(entries: &[(&str, u8, &[u8])]) -> Vec<u8> {
        let mut tar = Vec::new();
        for (name, kind, content) in entries {
            tar.extend(header(name, *kind, content.len()));
            tar.extend_from_slice(content);
            tar.resize(tar.len().next_multiple_of(512), 0);
        }
        tar.resize(tar.len() + 1_024, 0);
        compressed(&tar)
    }

    fn compressed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn names(archive: &[u8]) -> Result<Vec<String>> {
        Ok(unpack(archive, SMALL)?.into_iter().map(|file| file.path).collect())
    }

    #[test]
    fn files_are_returned_in_the_order_of_their_paths() {
        let long = format!("27 path={}\n", "deep/of-an-entry.x");
        let sent = archive(&[
            ("./", b'5', b""),
            ("./b", b'5', b""),
            ("./b/a.md", b'0', b"x"),
            ("SKILL.md", 0, b"---\n"),
            ("ignored", b'x', long.as_bytes()),
            ("short", b'0', b"y"),
        ]);
        assert_eq!(names(&sent).unwrap(), ["SKILL.md", "b/a.md", "deep/of-an-entry.x"]);
    }

    #[test]
    fn everything_else_is_refused() {
        for (name, kind) in [
            ("a", b'1'),
            ("a", b'2'),
            ("a", b'3'),
            ("a", b'4'),
            ("a", b'6'),
            ("a", b'S'),
            ("../a", b'0'),
            ("/a", b'0'),
            ("a/../../b", b'0'),
            ("a\\b", b'0'),
            ("c:a", b'0'),
            ("a%20b", b'0'),
            ("a#b", b'0'),
            ("", b'0'),
            ("a", b'5'),
        ] {
            assert!(names(&archive(&[(name, kind, b"")])).is_err(), "{name} {kind}");
        }
        for sent in [&b""[..], b"x", &compressed(b"x"), &compressed(&[1; 512])] {
            assert!(names(sent).is_err());
        }
        let mut cut = archive(&[("a", b'0', b"x")]);
        cut.truncate(cut.len() - 4);
        assert!(names(&cut).is_err());
        // The content of this entry is shorter than its header says.
        assert!(names(&compressed(&header("a", b'0', 1_000))).is_err());
    }

    #[test]
    fn what_exceeds_the_limits_is_refused() {
        fn entry<'a>(name: &'a str, content: &'a [u8]) -> (&'a str, u8, &'a [u8]) {
            (name, b'0', content)
        }
        assert!(names(&archive(&[entry("a", &[0; 5_000]), entry("b", &[0; 5_000])])).is_ok());
        assert!(names(&archive(&[entry("a", &[0; 5_000]), entry("b", &[0; 5_001])])).is_err());
        let many: Vec<_> = ('a'..='k').map(String::from).collect();
        let many: Vec<_> = many.iter().map(|name| entry(name, b"")).collect();
        assert!(names(&archive(&many[..10])).is_ok());
        assert!(names(&archive(&many)).is_err());
        // A small archive that would decompress to 100 MB.
        assert!(names(&compressed(&vec![0; 100 << 20])).is_err());
        let error = unpack(&archive(&[entry("a", &vec![0; 5 << 20])]), ContentLimits::LAMBDA).unwrap_err();
        assert_eq!((error.code.http_status(), error.message.contains("4194304 bytes")), (413, true));
    }
}
