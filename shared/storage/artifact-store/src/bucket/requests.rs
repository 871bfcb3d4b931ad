//! Requests for objects.

use std::sync::Arc;
use std::time::Duration;

use aws_smithy_xml::encode::ScopeWriter;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

use crate::bucket::connection::{BucketRequest, Connection, MAX_RANGE_BYTES};
use crate::bucket::failure::{BucketFailure, Result};
use crate::bucket::xml;

/// Metadata header that names the upload by which an object was created. It shows whether an upload
/// that no longer exists was completed before or has never existed.
pub(crate) const UPLOAD_HEADER: &str = "x-amz-meta-mlflow-upload";
/// Maximum number of keys per deletion request.
const MAX_DELETED_KEYS: usize = 1_000;

/// Assumed minimum download speed in bytes per second.
const MIN_DOWNLOAD_SPEED: usize = 1_000_000;

/// Time within which a bucket has to join the parts of an upload. It is shorter than the function's
/// timeout of 29 s.
const COMPLETION_TIMEOUT: Duration = Duration::from_secs(20);

/// A bucket. Cheap to clone. Region, credentials and endpoint are read from the environment on
/// first use.
#[derive(Clone, Debug)]
pub struct Bucket {
    inner: Arc<BucketInner>,
    /// How long the bucket may take to join parts.
    pub(crate) completion: Duration,
}

#[derive(Debug)]
struct BucketInner {
    name: String,
    connection: OnceCell<Connection>,
}

/// The metadata of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectMetadata {
    /// Length in bytes.
    pub length: u64,
    /// Id of the multipart upload that created the object.
    pub(crate) upload: Option<String>,
}

impl Bucket {
    /// Returns the bucket of this name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self::of(BucketInner { name: name.to_owned(), connection: OnceCell::new() })
    }

    /// Sets how long the bucket may take to join the parts of an upload. The default of 20 s may be
    /// too short for servers without a time limit per call.
    #[must_use]
    pub fn completing_within(self, completion: Duration) -> Self {
        Self { completion, ..self }
    }

    fn of(inner: BucketInner) -> Self {
        Self { inner: Arc::new(inner), completion: COMPLETION_TIMEOUT }
    }

    /// Returns the bucket `b` over a connector, for tests.
    #[must_use]
    pub fn over(connector: impl aws_smithy_runtime_api::client::http::HttpConnector + 'static) -> Self {
        Self::of(BucketInner {
            name: "b".to_owned(),
            connection: OnceCell::new_with(Some(Connection::over(connector))),
        })
    }

    /// Returns the name of the bucket.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Returns scheme and host of the bucket's URLs. Sends no request to the bucket, but may
    /// request credentials.
    ///
    /// # Errors
    /// [`BucketFailure::Broken`] if no region or no credentials are configured.
    pub async fn origin(&self) -> Result<String> {
        let connection = self.connection().await?;
        connection.signer().await?;
        Ok(connection.address.origin())
    }

    pub(crate) async fn connection(&self) -> Result<&Connection> {
        self.inner.connection.get_or_try_init(|| Connection::from_environment(&self.inner.name)).await
    }

    /// Returns the metadata of an object, or `None` if it does not exist. Takes one request.
    ///
    /// # Errors
    /// Any [`BucketFailure`], as for all methods that send requests.
    pub async fn head(&self, key: &str) -> Result<Option<ObjectMetadata>> {
        let reply = match self.connection().await?.send(BucketRequest::new("HEAD", key)).await {
            // A response to a HEAD request has no body, so a missing object and a missing bucket
            // look alike. If the bucket is missing, the next write fails with a clear error.
            Err(failure) if failure.is_missing() => return Ok(None),
            outcome => outcome?,
        };
        // The ETag is required, because the HTML page of a proxy also has a length but no ETag.
        reply.header("etag").ok_or_else(|| BucketFailure::broken("the bucket returned an object without an ETag"))?;
        let length = reply.header("content-length").and_then(|length| length.parse().ok());
        let length =
            length.ok_or_else(|| BucketFailure::broken("the bucket did not return the length of an object"))?;
        Ok(Some(ObjectMetadata { length, upload: reply.header(UPLOAD_HEADER).map(str::to_owned) }))
    }

    /// Writes or replaces an object. Takes one request.
    pub async fn put(&self, key: &str, content: Bytes) -> Result<()> {
        let request = BucketRequest { body: content, ..BucketRequest::new("PUT", key) };
        let reply = self.connection().await?.send(request).await?;
        reply
            .header("etag")
            .ok_or_else(|| BucketFailure::broken("the bucket returned no ETag for a written object"))?;
        Ok(())
    }

    /// Reads a range of an object, of at most [`MAX_RANGE_BYTES`] bytes. The result is shorter than
    /// `length` if the object ends before. Returns `None` if the object does not exist, or ends
    /// before the range begins. Takes one request.
    pub async fn get_range(&self, key: &str, offset: u64, length: usize) -> Result<Option<Bytes>> {
        if length == 0 || length > MAX_RANGE_BYTES {
            return Err(BucketFailure::broken(format!("{length} bytes of an object cannot be read at once")));
        }
        let last = offset.saturating_add(length as u64 - 1);
        let headers = [("range", format!("bytes={offset}-{last}"))];
        let for_content = Duration::from_secs((length / MIN_DOWNLOAD_SPEED) as u64);
        let request = BucketRequest { headers: &headers, ..BucketRequest::new("GET", key) };
        let request = BucketRequest { attempt: request.attempt + for_content, ..request };
        match self.connection().await?.send(request).await {
            Err(failure) if failure.is_missing() || failure.is_of_range() => Ok(None),
            Err(failure) => Err(failure),
            Ok(reply) if reply.is_range() && reply.content.len() <= length => Ok(Some(reply.content)),
            Ok(_) => Err(BucketFailure::broken("the bucket did not return the requested range of an object")),
        }
    }

    /// Deletes an object. Deleting one that does not exist is a no-op. Takes one request.
    pub async fn delete(&self, key: &str) -> Result<()> {
        match self.connection().await?.send(BucketRequest::new("DELETE", key)).await {
            Err(failure) if failure.is_missing() => Ok(()),
            outcome => outcome.map(|_| ()),
        }
    }

    /// Deletes objects. Takes one request per thousand keys, and one for each key that XML cannot
    /// represent.
    pub async fn delete_all(&self, keys: &[String]) -> Result<()> {
        let (plain, strange): (Vec<_>, Vec<_>) = keys.iter().partition(|key| !key.contains(char::is_control));
        for key in strange {
            self.delete(key).await?;
        }
        for keys in plain.chunks(MAX_DELETED_KEYS) {
            let body = xml::write("Delete", |scope| deletions(scope, keys));
            let digest = BASE64_STANDARD.encode(Sha256::digest(&body));
            let headers = [("content-type", "application/xml".to_owned()), ("x-amz-checksum-sha256", digest)];
            let request = BucketRequest {
                query: &[("delete", "")],
                headers: &headers,
                body: body.into(),
                ..BucketRequest::new("POST", "")
            };
            let reply = self.connection().await?.send(request).await?;
            xml::read(&reply.body, "DeleteResult", |name, element| {
                if name != "Error" {
                    return Ok(());
                }
                let (mut code, mut message) = (String::new(), String::new());
                xml::children(element, &mut |name, element| {
                    match name {
                        "Code" => code = xml::text(element)?,
                        "Message" => message = xml::text(element)?,
                        _ => {}
                    }
                    Ok(())
                })?;
                Err(BucketFailure::of_code(200, code, message))
            })?;
        }
        Ok(())
    }
}

/// Writes the body of a `DeleteObjects` request. It sets `Quiet`, so S3 reports only the keys that it
/// could not delete.
fn deletions(scope: &mut ScopeWriter<'_, '_>, keys: &[&String]) {
    for key in keys {
        let mut object = scope.start_el("Object").finish();
        xml::element(&mut object, "Key", key);
        object.finish();
    }
    xml::element(scope, "Quiet", "true");
}
