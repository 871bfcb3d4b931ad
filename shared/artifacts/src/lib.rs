//! Artifacts in a directory of this machine, where `serve` keeps them. What lies elsewhere is read by clients themselves.
//!
//! A location has to be below the server's own artifact root, and what is read has to be below the location, symbolic links
//! followed: neither a path nor a link leads out. Only files and directories are there: a pipe, a socket or a device would hold
//! up the thread that opens it.

mod content_type;

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use futures::stream;
use mlflow_api::logged_models::FileInfo;
use mlflow_api::{Error, ErrorCode, Result};
use service::{Answer, Attachment};

use crate::content_type::content_type;

/// Bytes read at a time.
const CHUNK: usize = 256 << 10;
/// Bytes of one list in JSON. There are no pages: MLflow's client asks for a directory as a whole.
const LONGEST_LIST: usize = 4 << 20;
/// Bytes of an entry of a list beside its path, at most.
const ENTRY: usize = 64;
/// Beginning of the names of files that a client is still writing.
const UNFINISHED: &str = ".artifact.uploading.";
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
            let mut length = 0;
            for entry in fs::read_dir(&directory).map_err(Error::internal)? {
                let entry = entry.map_err(Error::internal)?;
                // What leads elsewhere or nowhere, or has a name that is no text, cannot be read either.
                let (Ok(real), Ok(name)) = (entry.path().canonicalize(), entry.file_name().into_string()) else {
                    continue;
                };
                let Ok(metadata) = fs::metadata(&real) else { continue };
                let is_listed = metadata.is_file() || metadata.is_dir();
                if !is_listed || !real.starts_with(&location) || name.starts_with(UNFINISHED) {
                    continue;
                }
                let path = mlflow_api::limits::normalized_path(format!("{path}/{name}").trim_start_matches('/'));
                let file_size = metadata.is_file().then_some(metadata.len());
                length += path.len() + ENTRY;
                if length > LONGEST_LIST {
                    return Err(too_long(&self.location));
                }
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
            open_file(&real).map_err(Error::internal)?.ok_or_else(not_there)
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

/// A file and its length in bytes, if it is one. The path leads through no links; if it does by now, nothing is opened.
fn open_file(path: &Path) -> io::Result<Option<(File, u64)>> {
    // What opening alone would do to a device is left undone.
    if !fs::symlink_metadata(path)?.is_file() {
        return Ok(None);
    }
    // Something else may have taken the file's place meanwhile: a pipe would wait for a writer.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ELOOP | libc::ENXIO)) => return Ok(None),
        opened => opened?,
    };
    let metadata = file.metadata()?;
    Ok(metadata.is_file().then_some((file, metadata.len())))
}

fn too_long(location: &Path) -> Error {
    let location = location.display();
    Error::invalid(format!(
        "The directory holds more files than one answer can list. List it where it is: '{location}'."
    ))
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::process::Command;
    use std::time::Duration;

    use super::*;

    /// A directory of artifacts with a file, and with what is neither file nor directory.
    fn directory() -> (tempfile::TempDir, Directory) {
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().to_str().unwrap().to_owned();
        fs::write(parent.path().join("file"), "text").unwrap();
        fs::create_dir(parent.path().join("inner")).unwrap();
        assert!(Command::new("mkfifo").arg(parent.path().join("pipe")).status().unwrap().success());
        drop(UnixListener::bind(parent.path().join("socket")).unwrap());
        symlink("/dev/zero", parent.path().join("device")).unwrap();
        symlink("pipe", parent.path().join("link")).unwrap();
        (parent, Directory::below(&root, &root).unwrap())
    }

    #[tokio::test]
    async fn pipes_sockets_and_devices_are_not_there() {
        let (_parent, directory) = directory();
        let listed = directory.clone().list(String::new()).await.unwrap();
        assert_eq!(listed.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["file", "inner"]);
        assert!(directory.clone().file("file".to_owned()).await.is_ok());
        for (name, expected) in [
            ("pipe", ErrorCode::ResourceDoesNotExist),
            ("link", ErrorCode::ResourceDoesNotExist),
            ("socket", ErrorCode::ResourceDoesNotExist),
            ("device", ErrorCode::InvalidParameterValue),
        ] {
            let answer = tokio::time::timeout(Duration::from_mins(1), directory.clone().file(name.to_owned())).await;
            let code =
                answer.unwrap_or_else(|_| panic!("{name} is waited for")).map(|_| ()).map_err(|error| error.code);
            assert_eq!(code, Err(expected), "{name}");
        }
    }

    /// As if something had taken the file's place after it was looked at.
    #[test]
    fn a_link_is_not_followed_when_it_is_opened() {
        let (parent, _) = directory();
        let link = parent.path().join("another");
        symlink("file", &link).unwrap();
        assert!(open_file(&parent.path().join("file")).unwrap().is_some());
        assert!(open_file(&link).unwrap().is_none());
        assert!(open_file(&parent.path().join("pipe")).unwrap().is_none());
    }

    #[tokio::test]
    async fn a_list_that_is_too_long_is_refused() {
        let (parent, directory) = directory();
        let name = "n".repeat(200);
        let most = LONGEST_LIST / (name.len() + 6 + ENTRY);
        for number in 0..=most {
            fs::write(parent.path().join(format!("{name}{number:06}")), "").unwrap();
            if number == 0 {
                assert_eq!(directory.clone().list(String::new()).await.unwrap().len(), 3);
            }
        }
        let refused = directory.list(String::new()).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidParameterValue);
        assert!(refused.message.contains("List it where it is"), "{}", refused.message);
    }

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
}
