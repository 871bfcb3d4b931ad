//! The archive in a bucket. Aborted writes leave nothing, because an object is written by one
//! request.

use bytes::Bytes;
use futures::future::BoxFuture;
use mlflow_api::ArchiveObject;

use super::{ArchiveBackend, ArchiveError, ArchivePage, ArchivedFile};
use crate::bucket::BucketFailure;
use crate::path::ARCHIVE_DIRECTORY;
use crate::prefix::BucketPrefix;

/// Number of objects per page of a list.
const PAGE_SIZE: u32 = 1_000;

impl BucketPrefix {
    fn archive_key(&self, object: ArchiveObject) -> String {
        self.key_of(&format!("{ARCHIVE_DIRECTORY}/{object}"))
    }
}

fn failed(failure: BucketFailure) -> ArchiveError {
    match failure {
        BucketFailure::Unavailable(cause) => ArchiveError::Unavailable(cause),
        other => ArchiveError::Failed(other.to_string()),
    }
}

impl ArchiveBackend for BucketPrefix {
    fn write(&self, object: ArchiveObject, content: Bytes) -> BoxFuture<'_, Result<(), ArchiveError>> {
        Box::pin(async move { self.bucket().put(&self.archive_key(object), content).await.map_err(failed) })
    }

    fn read(&self, object: ArchiveObject, offset: u64, length: usize) -> BoxFuture<'_, Result<Bytes, ArchiveError>> {
        Box::pin(async move {
            let key = self.archive_key(object);
            match self.bucket().get_range(&key, offset, length).await.map_err(failed)? {
                Some(content) if content.len() == length => Ok(content),
                Some(_) => Err(ArchiveError::Incomplete(object)),
                // The response for a range after the end of an object is the same as for a missing
                // object.
                None => match self.bucket().head(&key).await.map_err(failed)? {
                    Some(_) => Err(ArchiveError::Incomplete(object)),
                    None => Err(ArchiveError::Missing(object)),
                },
            }
        })
    }

    fn delete(&self, object: ArchiveObject) -> BoxFuture<'_, Result<(), ArchiveError>> {
        Box::pin(async move { self.bucket().delete(&self.archive_key(object)).await.map_err(failed) })
    }

    fn list(&self, from: Option<String>) -> BoxFuture<'_, Result<ArchivePage, ArchiveError>> {
        Box::pin(async move {
            let prefix = self.key_of(&format!("{ARCHIVE_DIRECTORY}/"));
            let page = self.bucket().list(&prefix, false, from.as_deref(), PAGE_SIZE).await.map_err(failed)?;
            let archived = |key: &str| key.strip_prefix(&prefix).and_then(ArchiveObject::parse);
            let objects = page.objects.iter().filter_map(|listed| {
                archived(&listed.key).map(|object| ArchivedFile { object, length: listed.length })
            });
            Ok(ArchivePage { objects: objects.collect(), next: page.next })
        })
    }
}
