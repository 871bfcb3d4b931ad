//! Objects.

use std::sync::Arc;
use std::time::Duration;

use aws_smithy_xml::encode::ScopeWriter;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

use crate::bucket::connection::{Connection, Request};
use crate::bucket::failure::{Failure, Result};
use crate::bucket::xml;

/// Names the upload that an object was made by. So a second completion can be told from that of a
/// missing upload.
pub(crate) const UPLOAD_HEADER: &str = "x-amz-meta-mlflow-upload";
/// Keys that one request deletes.
const MOST_DELETED: usize = 1_000;

/// For how long a bucket may join the parts of an upload: a function has 29 s for a call.
const COMPLETION: Duration = Duration::from_secs(20);

/// A bucket. Cheap to clone. Region, credentials and endpoint are the environment's, and are looked for when they are first needed.
#[derive(Clone, Debug)]
pub struct Bucket {
    inner: Arc<Inner>,
    /// For how long it may join parts.
    pub(crate) completion: Duration,
}

#[derive(Debug)]
struct Inner {
    name: String,
    connection: OnceCell<Connection>,
}

/// The metadata of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// In bytes.
    pub length: u64,
    /// The id of the upload in parts that it was made by.
    pub(crate) upload: Option<String>,
}

impl Bucket {
    /// The bucket of this name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self::of(Inner { name: name.to_owned(), connection: OnceCell::new() })
    }

    /// The same bucket with more time to join the parts of an upload. The usual 20 s may be too
    /// short where nobody bounds a call.
    #[must_use]
    pub fn completing_within(self, completion: Duration) -> Self {
        Self { completion, ..self }
    }

    fn of(inner: Inner) -> Self {
        Self { inner: Arc::new(inner), completion: COMPLETION }
    }

    /// The bucket `b` over anything that answers, for tests.
    #[must_use]
    pub fn over(connector: impl aws_smithy_runtime_api::client::http::HttpConnector + 'static) -> Self {
        Self::of(Inner { name: "b".to_owned(), connection: OnceCell::new_with(Some(Connection::over(connector))) })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Scheme and host of its URLs. No request, but credentials are looked for.
    ///
    /// # Errors
    /// [`Failure::Broken`], where no region or no credentials are configured.
    pub async fn origin(&self) -> Result<String> {
        let connection = self.connection().await?;
        connection.signer().await?;
        Ok(connection.address.origin())
    }

    pub(crate) async fn connection(&self) -> Result<&Connection> {
        self.inner.connection.get_or_try_init(|| Connection::from_environment(&self.inner.name)).await
    }

    /// The metadata of an object; `None` if it is not there. One request.
    ///
    /// # Errors
    /// Any [`Failure`]; here and below.
    pub async fn head(&self, key: &str) -> Result<Option<Object>> {
        let reply = match self.connection().await?.send(Request::new("HEAD", key)).await {
            // An answer to HEAD has no body that would name the missing part. If the bucket is
            // missing, writing fails and names it.
            Err(failure) if failure.is_missing() => return Ok(None),
            outcome => outcome?,
        };
        // A page that something else answered with has a length, too.
        reply.header("etag").ok_or_else(|| Failure::broken("an object without a tag"))?;
        let length = reply.header("content-length").and_then(|length| length.parse().ok());
        let length = length.ok_or_else(|| Failure::broken("the bucket did not say how long an object is"))?;
        Ok(Some(Object { length, upload: reply.header(UPLOAD_HEADER).map(str::to_owned) }))
    }

    /// Writes an object, in the place of one that was there before. One request.
    pub async fn put(&self, key: &str, content: Bytes) -> Result<()> {
        let request = Request { body: content, ..Request::new("PUT", key) };
        let reply = self.connection().await?.send(request).await?;
        reply.header("etag").ok_or_else(|| Failure::broken("the bucket took an object without a tag"))?;
        Ok(())
    }

    /// Deletes an object; one that is not there is deleted already. One request.
    pub async fn delete(&self, key: &str) -> Result<()> {
        match self.connection().await?.send(Request::new("DELETE", key)).await {
            Err(failure) if failure.is_missing() => Ok(()),
            outcome => outcome.map(|_| ()),
        }
    }

    /// Deletes objects. One request for each thousand, and one for each key that XML cannot hold.
    pub async fn delete_all(&self, keys: &[String]) -> Result<()> {
        let (plain, strange): (Vec<_>, Vec<_>) = keys.iter().partition(|key| !key.contains(char::is_control));
        for key in strange {
            self.delete(key).await?;
        }
        for keys in plain.chunks(MOST_DELETED) {
            let body = xml::write("Delete", |scope| deletions(scope, keys));
            let digest = BASE64_STANDARD.encode(Sha256::digest(&body));
            let headers = [("content-type", "application/xml".to_owned()), ("x-amz-checksum-sha256", digest)];
            let request =
                Request { query: &[("delete", "")], headers: &headers, body: body.into(), ..Request::new("POST", "") };
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
                Err(Failure::of_code(200, code, message))
            })?;
        }
        Ok(())
    }
}

/// The keys to delete; the answer names only those that were not deleted.
fn deletions(scope: &mut ScopeWriter<'_, '_>, keys: &[&String]) {
    for key in keys {
        let mut object = scope.start_el("Object").finish();
        xml::element(&mut object, "Key", key);
        object.finish();
    }
    xml::element(scope, "Quiet", "true");
}
