//! Tests of the archive in a directory, and of its requests to a bucket.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_types::body::SdkBody;

use super::*;
use crate::bucket::Bucket;
use crate::prefix::BucketPrefix;

/// A simulated bucket that supports ranges.
#[derive(Clone, Debug, Default)]
struct Objects(Arc<Mutex<BTreeMap<String, Vec<u8>>>>);

impl HttpConnector for Objects {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let mut objects = self.0.lock().unwrap();
        let uri = request.uri().trim_start_matches("https://b.s3.r.amazonaws.com/").to_owned();
        let range = request.headers().get("range").and_then(|range| {
            let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
            Some((first.parse::<usize>().ok()?, last.parse::<usize>().ok()?))
        });
        let (status, body) = match (request.method(), range) {
            ("PUT", _) => {
                objects.insert(uri, request.body().bytes().unwrap_or_default().to_vec());
                (200_u16, Vec::new())
            }
            ("DELETE", _) => {
                objects.remove(&uri);
                (204, Vec::new())
            }
            ("GET", None) => {
                let entry = |(key, value): (&String, &Vec<u8>)| {
                    format!("<Contents><Key>{key}</Key><Size>{}</Size></Contents>", value.len())
                };
                let entries: String = objects.iter().map(entry).collect();
                (200, format!("<ListBucketResult>{entries}</ListBucketResult>").into_bytes())
            }
            (method, range) => match (objects.get(&uri), range) {
                (None, _) if method == "HEAD" => (404, Vec::new()),
                (None, _) => (404, b"<Error><Code>NoSuchKey</Code><Message>x</Message></Error>".to_vec()),
                (Some(object), Some((first, last))) if first < object.len() => {
                    (206, object[first..object.len().min(last + 1)].to_vec())
                }
                (Some(_), Some(_)) => (416, b"<Error><Code>InvalidRange</Code><Message>x</Message></Error>".to_vec()),
                (Some(_), None) => (200, Vec::new()),
            },
        };
        let mut response = HttpResponse::new(status.try_into().unwrap(), SdkBody::from(body));
        response.headers_mut().insert("etag", "\"e\"");
        response.headers_mut().insert("content-length", "1");
        HttpConnectorFuture::ready(Ok(response))
    }
}

async fn check(archive: &Archive) {
    let (one, other) = (Archive::new_object(), Archive::new_object());
    assert_ne!(one, other);
    assert_eq!(archive.read(one, 0, 1).await, Err(ArchiveError::Missing(one)));
    archive.delete(one).await.unwrap();
    assert_eq!(archive.list(None).await, Ok(ArchivePage::default()));
    // Content that looks like an error, or like the page of a proxy, is content.
    let content = Bytes::from_static(b"<html><Error><Code>InternalError</Code></Error>\xff\0");
    archive.write(one, content.clone()).await.unwrap();
    archive.write(other, content.clone()).await.unwrap();
    assert_eq!(archive.read(one, 0, content.len()).await, Ok(content.clone()));
    assert_eq!(archive.read(one, 6, 7).await, Ok(content.slice(6..13)));
    assert_eq!(archive.read(one, 6, 0).await, Ok(Bytes::new()));
    for (offset, length) in [(0, content.len() + 1), (6, content.len()), (content.len() as u64, 1), (9_999, 1)] {
        assert_eq!(archive.read(one, offset, length).await, Err(ArchiveError::Incomplete(one)), "{offset} {length}");
    }
    assert!(matches!(archive.read(one, 0, Archive::MAX_READ_BYTES + 1).await, Err(ArchiveError::Failed(_))));
    let mut listed = archive.list(None).await.unwrap().objects;
    listed.sort_by_key(|file| file.object);
    let mut expected = [one, other].map(|object| ArchivedFile { object, length: content.len() as u64 });
    expected.sort_by_key(|file| file.object);
    assert_eq!(listed, expected);
    archive.delete(one).await.unwrap();
    archive.delete(one).await.unwrap();
    assert_eq!(archive.read(one, 0, 1).await, Err(ArchiveError::Missing(one)));
    assert_eq!(archive.read(other, 0, content.len()).await, Ok(content));
}

#[tokio::test]
async fn objects_are_in_the_artifact_directory() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().join("not created yet");
    let archive = Archive::new(ArtifactStore::in_directory(&root));
    check(&archive).await;
    std::fs::write(root.join(".archive/other"), "not an object").unwrap();
    assert_eq!(archive.list(None).await.unwrap().objects.len(), 1);
    let artifacts = ArtifactStore::in_directory(&root).root().unwrap();
    assert_eq!(artifacts.list(&crate::ArtifactPath::default()).await, Ok(Vec::new()));
}

#[tokio::test]
async fn objects_are_in_the_bucket() {
    let objects = Objects::default();
    check(&Archive::new(ArtifactStore::in_bucket(BucketPrefix::whole(Bucket::over(objects.clone()))))).await;
    let keys: Vec<_> = objects.0.lock().unwrap().keys().cloned().collect();
    assert!(keys.len() == 1 && keys[0].starts_with(".archive/"), "{keys:?}");
}

#[tokio::test]
async fn a_server_without_artifacts_has_no_archive() {
    let archive = Archive::default();
    assert!(!archive.exists());
    let object = Archive::new_object();
    assert_eq!(archive.write(object, Bytes::new()).await, Err(ArchiveError::Absent));
    assert_eq!(archive.read(object, 0, 1).await, Err(ArchiveError::Absent));
    assert_eq!(archive.delete(object).await, Err(ArchiveError::Absent));
    assert_eq!(archive.list(None).await, Err(ArchiveError::Absent));
}

#[test]
fn clients_learn_whether_to_retry() {
    let object = Archive::new_object();
    for (error, code) in [
        (ArchiveError::Missing(object), ErrorCode::InternalError),
        (ArchiveError::Incomplete(object), ErrorCode::InternalError),
        (ArchiveError::Unavailable("x".to_owned()), ErrorCode::TemporarilyUnavailable),
        (ArchiveError::Failed("x".to_owned()), ErrorCode::InternalError),
        (ArchiveError::Absent, ErrorCode::InternalError),
    ] {
        assert_eq!(Error::from(error).code, code);
    }
}
