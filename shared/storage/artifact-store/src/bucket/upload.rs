//! Multipart uploads. No part of the object is visible before the upload is completed.

use bytes::Bytes;

use crate::bucket::connection::BucketRequest;
use crate::bucket::failure::{BucketFailure, Result};
use crate::bucket::requests::{Bucket, UPLOAD_HEADER};
use crate::bucket::xml;

/// Maximum number of parts per upload.
pub const MAX_PARTS: u32 = 10_000;
/// Minimum size in bytes of a part that is not the last.
pub const MIN_PART_BYTES: usize = 5 << 20;

/// A part that was uploaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadedPart {
    /// Part number, starting at 1.
    pub number: u32,
    /// The ETag that the bucket assigned to the part.
    pub etag: String,
}

/// The parsed name of an upload, `<nonce>.<id>`. This server generates the nonce and attaches it to
/// the object, so that a repeated completion can be recognized. The bucket assigns the id.
struct UploadName<'a> {
    nonce: &'a str,
    id: &'a str,
}

impl<'a> UploadName<'a> {
    fn read(upload: &'a str) -> Result<Self> {
        let (nonce, id) = upload.split_once('.').ok_or_else(no_such_upload)?;
        if id.is_empty() { Err(no_such_upload()) } else { Ok(Self { nonce, id }) }
    }
}

fn no_such_upload() -> BucketFailure {
    let message = "The specified multipart upload does not exist.".to_owned();
    BucketFailure::Refused { status: 404, code: "NoSuchUpload".to_owned(), message }
}

/// Returns the id that the bucket assigned to an upload, given the upload's name.
pub(crate) fn id_of(upload: &str) -> Result<&str> {
    UploadName::read(upload).map(|name| name.id)
}

impl Bucket {
    /// Starts an upload and returns its name. If the response is lost, an upload without parts may
    /// remain, which the bucket's lifecycle rules remove. Takes one request.
    ///
    /// # Errors
    /// Any [`BucketFailure`]. This also applies to the following methods.
    pub async fn create_upload(&self, key: &str) -> Result<String> {
        let nonce = format!("{:032x}", rand::random::<u128>());
        let headers = [(UPLOAD_HEADER, nonce.clone())];
        let request = BucketRequest { query: &[("uploads", "")], headers: &headers, ..BucketRequest::new("POST", key) };
        let reply = self.connection().await?.send(request).await?;
        let mut id = String::new();
        xml::read(&reply.body, "InitiateMultipartUploadResult", |name, element| {
            if name == "UploadId" {
                id = xml::text(element)?;
            }
            Ok(())
        })?;
        if id.is_empty() {
            return Err(BucketFailure::broken("the bucket started an upload without an id"));
        }
        Ok(format!("{nonce}.{id}"))
    }

    /// Uploads a part, or replaces the part with this number. Takes one request.
    pub async fn put_part(&self, key: &str, upload: &str, number: u32, content: Bytes) -> Result<UploadedPart> {
        let query = [("partNumber", &*number.to_string()), ("uploadId", id_of(upload)?)];
        let request = BucketRequest { query: &query, body: content, ..BucketRequest::new("PUT", key) };
        let reply = self.connection().await?.send(request).await?;
        let etag = reply
            .header("etag")
            .ok_or_else(|| BucketFailure::broken("the bucket returned no ETag for an uploaded part"))?;
        Ok(UploadedPart { number, etag: etag.to_owned() })
    }

    /// Joins the parts into an object. Completing an upload again is a no-op as long as its object
    /// exists. Takes one or two requests.
    pub async fn complete_upload(&self, key: &str, upload: &str, parts: &[UploadedPart]) -> Result<()> {
        let name = UploadName::read(upload)?;
        let body = xml::write("CompleteMultipartUpload", |scope| {
            for part in parts {
                let mut element = scope.start_el("Part").finish();
                xml::element(&mut element, "PartNumber", &part.number.to_string());
                xml::element(&mut element, "ETag", &part.etag);
                element.finish();
            }
        });
        let query = [("uploadId", name.id)];
        let headers = [("content-type", "application/xml".to_owned())];
        let request = BucketRequest {
            query: &query,
            headers: &headers,
            body: body.into(),
            // Joining the parts has a longer timeout, because thousands of parts take a while.
            attempt: self.completion,
            ..BucketRequest::new("POST", key)
        };
        match self.connection().await?.send(request).await {
            // The upload may have been completed by an earlier attempt whose response was lost, or
            // by an earlier request of the client.
            Err(failure) if failure.is_missing() => {
                let made_by = self.head(key).await?.and_then(|object| object.upload);
                if made_by.as_deref() == Some(name.nonce) { Ok(()) } else { Err(failure) }
            }
            // A success status is not sufficient, because S3 sends it before the outcome is known.
            outcome => xml::read(&outcome?.body, "CompleteMultipartUploadResult", |_, _| Ok(())),
        }
    }

    /// Aborts an upload and discards its parts. Aborting an upload that does not exist is a no-op.
    /// Takes one request.
    pub async fn abort_upload(&self, key: &str, upload: &str) -> Result<()> {
        let query = [("uploadId", id_of(upload)?)];
        let request = BucketRequest { query: &query, ..BucketRequest::new("DELETE", key) };
        match self.connection().await?.send(request).await {
            Err(failure) if failure.is_missing() => Ok(()),
            outcome => outcome.map(|_| ()),
        }
    }

    /// Lists the parts that have been uploaded, ordered by number, with their sizes in bytes. Takes
    /// one request per thousand parts.
    pub async fn uploaded_parts(&self, key: &str, upload: &str) -> Result<Vec<(UploadedPart, u64)>> {
        let id = id_of(upload)?;
        let mut parts = Vec::new();
        let mut after = "0".to_owned();
        loop {
            let query = [("uploadId", id), ("part-number-marker", &after)];
            let request = BucketRequest { query: &query, ..BucketRequest::new("GET", key) };
            let reply = self.connection().await?.send(request).await?;
            let mut is_truncated = false;
            let mut next = String::new();
            xml::read(&reply.body, "ListParts", |name, element| {
                match name {
                    "IsTruncated" => is_truncated = xml::text(element)? == "true",
                    "NextPartNumberMarker" => next = xml::text(element)?,
                    "Part" => {
                        let (mut part, mut length) = (UploadedPart { number: 0, etag: String::new() }, 0);
                        xml::children(element, &mut |name, element| {
                            match name {
                                "PartNumber" => {
                                    part.number = xml::text(element)?.parse().map_err(BucketFailure::broken)?;
                                }
                                "ETag" => part.etag = xml::text(element)?,
                                "Size" => length = xml::text(element)?.parse().map_err(BucketFailure::broken)?,
                                _ => {}
                            }
                            Ok(())
                        })?;
                        parts.push((part, length));
                    }
                    _ => {}
                }
                Ok(())
            })?;
            if !is_truncated || next == after {
                return Ok(parts);
            }
            after = next;
        }
    }
}
