//! Artifacts in a directory of this machine, where `serve` keeps them. What lies elsewhere is read by clients themselves.
//!
//! A location has to be below the server's own artifact root, and what is read has to be below the location, symbolic links
//! followed: neither a path nor a link leads out.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use futures::stream;
use mlflow_api::logged_models::FileInfo;
use mlflow_api::{Error, ErrorCode, Result};
use service::{Answer, Attachment};

/// Bytes read at a time.
const CHUNK: usize = 256 << 10;
/// Beginning of the names of files that a client is still writing.
const UNFINISHED: &str = ".artifact.uploading.";
/// What MLflow shows as text (`get_text_extensions`), files without an extension by their whole name.
const TEXTS: [&str; 26] = [
    "txt",
    "log",
    "err",
    "cfg",
    "conf",
    "cnf",
    "cf",
    "ini",
    "properties",
    "prop",
    "hocon",
    "toml",
    "yaml",
    "yml",
    "xml",
    "json",
    "js",
    "py",
    "py3",
    "csv",
    "tsv",
    "md",
    "rst",
    "ipynb",
    "MLmodel",
    "MLproject",
];
/// Other types that the user interface shows.
const TYPES: [(&str, &str); 10] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("bmp", "image/bmp"),
    ("svg", "image/svg+xml"),
    ("webp", "image/webp"),
    ("html", "text/html"),
    ("htm", "text/html"),
    ("pdf", "application/pdf"),
];

/// A directory of artifacts.
#[derive(Clone, Debug)]
pub struct Directory {
    root: PathBuf,
    location: PathBuf,
}

impl Directory {
    /// The directory of a location, if it is below the server's artifact root and both are on this machine.
    pub fn below(root: &str, location: &str) -> Result<Self> {
        let not_here = || {
            let message = format!("This server cannot read artifacts in '{location}'. Read them from there.");
            Error::new(ErrorCode::NotImplemented, message)
        };
        let root = local_path(root).ok_or_else(not_here)?;
        let location = local_path(location).filter(|location| location.starts_with(&root)).ok_or_else(not_here)?;
        Ok(Self { root, location })
    }

    /// What is in a directory below this one, by path; nothing if it is a file, or not there. The path is one that was checked.
    pub async fn list(self, path: String) -> Result<Vec<FileInfo>> {
        blocking(move || {
            let Some((location, directory)) = self.find(&path)? else { return Ok(Vec::new()) };
            if !directory.is_dir() {
                return Ok(Vec::new());
            }
            let mut files = Vec::new();
            for entry in fs::read_dir(&directory).map_err(Error::internal)? {
                let entry = entry.map_err(Error::internal)?;
                // What leads elsewhere or nowhere, or has a name that is no text, cannot be read either.
                let (Ok(real), Ok(name)) = (entry.path().canonicalize(), entry.file_name().into_string()) else {
                    continue;
                };
                let Ok(metadata) = fs::metadata(&real) else { continue };
                if !real.starts_with(&location) || name.starts_with(UNFINISHED) {
                    continue;
                }
                let path = mlflow_api::limits::normalized_path(format!("{path}/{name}").trim_start_matches('/'));
                let file_size = metadata.is_file().then_some(metadata.len());
                files.push(FileInfo { path, is_dir: metadata.is_dir(), file_size });
            }
            files.sort_unstable();
            Ok(files)
        })
        .await
    }

    /// A file below this directory, as an answer that is read piece by piece. The path is one that was checked.
    pub async fn file(self, path: String) -> Result<Answer> {
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        let (file, length) = blocking(move || {
            let not_there = || Error::not_found(format!("No such artifact: '{path}'"));
            let (_, real) = self.find(&path)?.ok_or_else(not_there)?;
            if real.is_dir() {
                return Err(Error::invalid(format!("Artifact path refers to a directory, not a file: '{path}'")));
            }
            let file = File::open(real).map_err(Error::internal)?;
            let length = file.metadata().map_err(Error::internal)?.len();
            Ok((file, length))
        })
        .await?;
        let chunks = stream::try_unfold(file, |file| async move { tokio::task::spawn_blocking(|| chunk(file)).await? });
        Ok(Answer::Attachment(Attachment::new(&name, content_type(&name), length, chunks)))
    }

    /// The location and what the path names in it, links followed; `None` if it is not there.
    fn find(&self, path: &str) -> Result<Option<(PathBuf, PathBuf)>> {
        let mut real = Vec::with_capacity(3);
        for place in [self.root.clone(), self.location.clone(), self.location.join(path)] {
            match place.canonicalize() {
                Ok(place) => real.push(place),
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                    return Ok(None);
                }
                // A name that no file system takes: too long.
                Err(error) if matches!(error.kind(), ErrorKind::InvalidFilename | ErrorKind::InvalidInput) => {
                    return Ok(None);
                }
                Err(error) => return Err(Error::internal(error)),
            }
        }
        match <[PathBuf; 3]>::try_from(real) {
            Ok([root, location, found]) if location.starts_with(&root) && found.starts_with(&location) => {
                Ok(Some((location, found)))
            }
            _ => Err(Error::invalid("Invalid path")),
        }
    }
}

/// The next piece of a file, and the file; `None` at its end.
fn chunk(mut file: File) -> std::io::Result<Option<(Vec<u8>, File)>> {
    let mut bytes = vec![0; CHUNK];
    let length = file.read(&mut bytes)?;
    bytes.truncate(length);
    Ok((length > 0).then_some((bytes, file)))
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(Error::internal)?
}

/// The absolute path that a location stands for: one as it is, or a `file:` URI without a host.
fn local_path(location: &str) -> Option<PathBuf> {
    let path = match location.strip_prefix("file:") {
        Some(rest) => rest.strip_prefix("//").unwrap_or(rest),
        None => location,
    };
    let path = Path::new(path);
    let goes_up = path.components().any(|part| matches!(part, std::path::Component::ParentDir));
    (path.is_absolute() && !goes_up).then(|| path.to_owned())
}

/// The type of a file by its name (`_guess_mime_type`).
fn content_type(name: &str) -> &'static str {
    let extension = match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => extension,
        _ => name,
    };
    if TEXTS.contains(&extension) {
        return "text/plain";
    }
    let lower = extension.to_lowercase();
    TYPES.iter().find(|(known, _)| *known == lower).map_or("application/octet-stream", |(_, content_type)| content_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_below_the_root_is_read() {
        for (root, location) in [("/r", "/r/1/models"), ("/r", "file:///r/1"), ("file:/r", "/r/x"), ("/r/", "/r")] {
            assert!(Directory::below(root, location).is_ok(), "{root} {location}");
        }
        for (root, location) in [
            ("/r", "/root/1"),
            ("/r", "/"),
            ("/r", "/r/../etc"),
            ("/r", "r/1"),
            ("/r", "s3://bucket/r"),
            ("s3://bucket/r", "s3://bucket/r/1"),
            ("/r", "file://host/r/1"),
            ("/r", "mlflow-artifacts:/r/1"),
        ] {
            let code = Directory::below(root, location).map(|_| ()).map_err(|error| error.code);
            assert_eq!(code, Err(ErrorCode::NotImplemented), "{root} {location}");
        }
    }

    #[test]
    fn types_are_those_of_mlflow() {
        for (name, expected) in [
            ("MLmodel", "text/plain"),
            ("a.json", "text/plain"),
            ("a.b.PNG", "image/png"),
            ("model.pkl", "application/octet-stream"),
            ("a.html", "text/html"),
            ("noextension", "application/octet-stream"),
            (".log", "application/octet-stream"),
        ] {
            assert_eq!(content_type(name), expected, "{name}");
        }
    }
}
