//! The artifact backend for a prefix of a bucket. Files are transferred by presigned URLs. Only
//! uploads of clients that do not support presigned URLs pass through the server.

use std::collections::HashMap;
use std::time::Duration;

use crate::bucket::{Bucket, MAX_PARTS, MAX_RANGE_BYTES, UploadedPart};
use bytes::{Bytes, BytesMut};
use futures::future::BoxFuture;
use mlflow_api::content_disposition::attachment_disposition;
use mlflow_api::logged_models::FileInfo;
use mlflow_api::{Error, Result};

use crate::backend::{
    ArtifactBackend, Chunks, DOWNLOAD_EXPIRATION, DownloadUrl, MAX_ENTRY_BYTES, MAX_LIST_BYTES, SentPart,
    StartedUpload, UploadUrl, failed, is_directory, no_file_there, not_there, too_large, too_long,
};
use crate::content_type::inert_type;
use crate::download::Download;
use crate::path::{ArtifactPath, is_hidden};
use crate::proxied_upload;

/// How long the URLs for the parts of a file are valid. Files may be large, and connections slow.
const PART_URL_EXPIRATION: Duration = Duration::from_hours(1);
/// Number of keys per page of a list.
const PAGE_SIZE: u32 = 1_000;
/// Maximum length of a key in bytes (S3's limit).
const MAX_KEY_BYTES: usize = 1_024;

/// The artifacts below a prefix of a bucket, which is used like a directory. Cheap to clone.
#[derive(Clone, Debug)]
pub struct BucketPrefix {
    bucket: Bucket,
    /// The prefix, which ends with a slash unless it is empty.
    prefix: String,
}

impl BucketPrefix {
    /// Parses an S3 URI, such as `s3://bucket/path`. Returns `None` for any other URI.
    #[must_use]
    pub fn of_uri(uri: &str) -> Option<Self> {
        let (bucket, prefix) = split(uri)?;
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        Some(Self { bucket: Bucket::new(bucket), prefix })
    }

    /// Returns the S3 URI of the prefix, without a slash at its end.
    #[must_use]
    pub fn uri(&self) -> String {
        format!("s3://{}/{}", self.bucket.name(), self.prefix).trim_end_matches('/').to_owned()
    }

    /// Returns the backend for a whole bucket that is not configured by the environment, for tests.
    #[must_use]
    pub fn whole(bucket: Bucket) -> Self {
        Self { bucket, prefix: String::new() }
    }

    /// Sets how long the bucket may take to join the parts of an upload, for a server without a
    /// time limit per call.
    #[must_use]
    pub fn completing_within(self, completion: Duration) -> Self {
        Self { bucket: self.bucket.completing_within(completion), ..self }
    }

    /// Returns scheme and host of the bucket's URLs, which is their origin in a browser.
    ///
    /// # Errors
    /// An internal error if no region or no credentials are configured.
    pub async fn origin(&self) -> Result<String> {
        self.bucket.origin().await.map_err(failed)
    }

    /// Returns the path of a location below this prefix, or `None` for any other location. Also
    /// returns `None` for a location that changes when it is parsed as a path, for example because
    /// it is percent-encoded: clients would use it as a key without decoding it.
    pub(crate) fn below(&self, location: &str) -> Option<ArtifactPath> {
        let (bucket, path) = split(location)?;
        if bucket != self.bucket.name() {
            return None;
        }
        let below = if path == self.prefix.trim_end_matches('/') { "" } else { path.strip_prefix(&self.prefix)? };
        ArtifactPath::parse(below).ok().filter(|parsed| parsed.to_string() == below)
    }

    /// Returns the key of a file. Returns `None` for a path that cannot be a file's: the empty
    /// path, the path of an offloaded response or of the archive, and a path whose key would be too long.
    fn key(&self, path: &ArtifactPath) -> Option<String> {
        let key = self.key_of(&path.to_string());
        (key.len() <= MAX_KEY_BYTES && !path.parts().is_empty() && !is_hidden(path)).then_some(key)
    }

    /// Returns the key of a path below this prefix.
    pub(crate) fn key_of(&self, below: &str) -> String {
        format!("{}{below}", self.prefix)
    }

    pub(crate) fn bucket(&self) -> &Bucket {
        &self.bucket
    }

    /// Returns the prefix of the keys of a directory's files.
    fn directory(&self, path: &ArtifactPath) -> String {
        if path.parts().is_empty() { self.prefix.clone() } else { format!("{}{path}/", self.prefix) }
    }

    /// Returns key and length of a file. Takes one request, and one more if it does not exist.
    async fn find(&self, path: &ArtifactPath) -> Result<(String, u64)> {
        if path.parts().is_empty() {
            return Err(is_directory(path));
        }
        let key = self.key(path).ok_or_else(|| not_there(path))?;
        if let Some(object) = self.bucket.head(&key).await.map_err(failed)? {
            return Ok((key, object.length));
        }
        let page = self.bucket.list(&self.directory(path), false, None, 1).await.map_err(failed)?;
        Err(if page.objects.is_empty() { not_there(path) } else { is_directory(path) })
    }

    async fn sign(&self, path: &ArtifactPath, key: &str, expiration: Duration) -> Result<String> {
        let name = path.split_last().map_or("", |(name, _)| name);
        let disposition = attachment_disposition(name);
        let sent_with = [("response-content-disposition", &*disposition), ("response-content-type", inert_type(name))];
        self.bucket.presigned_get(key, &sent_with, expiration).await.map_err(failed)
    }

    async fn list_whole(&self, path: &ArtifactPath) -> Result<Vec<FileInfo>> {
        let prefix = self.directory(path);
        if prefix.len() > MAX_KEY_BYTES || is_hidden(path) {
            return Ok(Vec::new());
        }
        let (mut files, mut length, mut from) = (Vec::new(), 0, None::<String>);
        loop {
            let page = self.bucket.list(&prefix, true, from.as_deref(), PAGE_SIZE).await.map_err(failed)?;
            let names = |key: &str| key.strip_prefix(&prefix).map(|name| name.trim_end_matches('/').to_owned());
            let directories = page.prefixes.iter().map(|key| (names(key), None));
            let entries = page.objects.iter().map(|object| (names(&object.key), Some(object.length)));
            for (name, file_size) in directories.chain(entries) {
                // Keys that end with a slash or cannot be expressed as a path are left out. Other
                // programs may have created them.
                let Some(name) = name.filter(|name| !matches!(name.as_str(), "" | "." | "..")) else { continue };
                if ArtifactPath::parse(&name).is_ok_and(|name| is_hidden(&path.join(&name))) {
                    continue;
                }
                length += name.len() + MAX_ENTRY_BYTES;
                files.push(FileInfo { path: name, is_dir: file_size.is_none(), file_size });
            }
            if length > MAX_LIST_BYTES {
                return Err(too_long());
            }
            let Some(next) = page.next else { break };
            from = Some(next);
        }
        files.sort_unstable();
        Ok(files)
    }

    async fn delete_whole(&self, path: &ArtifactPath) -> Result<()> {
        if path.parts().is_empty() {
            return Err(Error::invalid("Invalid path"));
        }
        let Some(key) = self.key(path) else { return Ok(()) };
        self.bucket.delete(&key).await.map_err(failed)?;
        let (prefix, mut from) = (self.directory(path), None::<String>);
        loop {
            let page = self.bucket.list(&prefix, false, from.as_deref(), PAGE_SIZE).await.map_err(failed)?;
            let keys: Vec<_> = page.objects.into_iter().map(|object| object.key).collect();
            self.bucket.delete_all(&keys).await.map_err(failed)?;
            let Some(next) = page.next else { return Ok(()) };
            from = Some(next);
        }
    }

    /// Returns the total length of the parts in bytes. Each part must match an entry of the
    /// bucket's list by number and ETag. Otherwise, a part that was replaced after the list was
    /// read would be joined, although its length is unknown.
    async fn length_of(&self, key: &str, id: &str, parts: &[UploadedPart]) -> Result<u64> {
        let sent = match self.bucket.uploaded_parts(key, id).await {
            // If there are no parts to list, the upload may already be complete.
            Err(failure) if failure.is_missing() => return Ok(0),
            outcome => outcome.map_err(failed)?,
        };
        let lengths: HashMap<_, _> =
            sent.iter().map(|(part, length)| ((part.number, unquoted(&part.etag)), *length)).collect();
        let of_part = |part: &UploadedPart| lengths.get(&(part.number, unquoted(&part.etag))).copied();
        parts.iter().map(of_part).sum::<Option<u64>>().ok_or_else(not_those_parts)
    }

    async fn complete(&self, key: &str, id: &str, parts: Vec<SentPart>, longest: Option<u64>) -> Result<()> {
        if parts.len() > MAX_PARTS as usize {
            return Err(Error::invalid(format!("An upload has at most {MAX_PARTS} parts.")));
        }
        let parts = parts.into_iter().map(|part| {
            let number = u32::try_from(part.number).ok().filter(|number| (1..=MAX_PARTS).contains(number));
            let number = number.ok_or_else(|| Error::invalid(format!("There is no part {}.", part.number)))?;
            Ok(UploadedPart { number, etag: part.etag })
        });
        let mut parts = parts.collect::<Result<Vec<_>>>()?;
        parts.sort_by_key(|part| part.number);
        if let Some(longest) = longest
            && self.length_of(key, id, &parts).await? > longest
        {
            self.bucket.abort_upload(key, id).await.map_err(failed)?;
            return Err(too_large(longest));
        }
        self.bucket.complete_upload(key, id, &parts).await.map_err(|failure| {
            if failure.is_missing() {
                Error::not_found("The upload does not exist or was aborted.")
            } else if failure.is_of_parts() {
                not_those_parts()
            } else {
                failed(failure)
            }
        })
    }
}

/// Returns the ETag of a part without its quotes.
fn unquoted(etag: &str) -> &str {
    etag.trim_matches('"')
}

fn not_those_parts() -> Error {
    Error::invalid("The parts do not match the uploaded parts, or a part other than the last is smaller than 5 MB.")
}

impl ArtifactBackend for BucketPrefix {
    fn list(&self, path: ArtifactPath) -> BoxFuture<'static, Result<Vec<FileInfo>>> {
        let this = self.clone();
        Box::pin(async move { this.list_whole(&path).await })
    }

    fn download(&self, path: ArtifactPath) -> BoxFuture<'static, Result<Download>> {
        let this = self.clone();
        Box::pin(async move {
            let (key, _) = this.find(&path).await?;
            this.sign(&path, &key, DOWNLOAD_EXPIRATION).await.map(Download::Url)
        })
    }

    fn read(&self, path: ArtifactPath, most: usize) -> BoxFuture<'static, Result<Option<Bytes>>> {
        let this = self.clone();
        Box::pin(async move {
            let Some(key) = this.key(&path) else { return Ok(None) };
            let mut content = BytesMut::new();
            loop {
                let length = (most + 1 - content.len()).min(MAX_RANGE_BYTES);
                let range = this.bucket.get_range(&key, content.len() as u64, length).await.map_err(failed)?;
                let Some(range) = range else {
                    // Nothing is left after a part that ended where the object ends. An empty object
                    // has no ranges, either.
                    let is_there = !content.is_empty() || this.bucket.head(&key).await.map_err(failed)?.is_some();
                    return Ok(is_there.then(|| content.freeze()));
                };
                content.extend_from_slice(&range);
                if content.len() > most {
                    return Err(too_large(most as u64));
                }
                if range.len() < length {
                    return Ok(Some(content.freeze()));
                }
            }
        })
    }

    fn write(&self, path: ArtifactPath, chunks: Chunks) -> BoxFuture<'static, Result<u64>> {
        let this = self.clone();
        Box::pin(async move {
            let key = this.key(&path).ok_or_else(|| no_file_there(&path))?;
            // The write runs in its own task, which continues if the client disconnects, in order
            // to clean up.
            let written = tokio::spawn(async move { proxied_upload::write(&this.bucket, &key, chunks).await });
            written.await.map_err(Error::internal)?
        })
    }

    fn delete(&self, path: ArtifactPath) -> BoxFuture<'static, Result<()>> {
        let this = self.clone();
        Box::pin(async move { this.delete_whole(&path).await })
    }

    fn has_urls(&self) -> bool {
        true
    }

    fn start_upload(&self, path: ArtifactPath, parts: i64) -> BoxFuture<'static, Result<StartedUpload>> {
        let this = self.clone();
        Box::pin(async move {
            let key = this.key(&path).ok_or_else(|| no_file_there(&path))?;
            let count = u32::try_from(parts).ok().filter(|count| (1..=MAX_PARTS).contains(count));
            let count = count.ok_or_else(|| Error::invalid(format!("num_parts must be between 1 and {MAX_PARTS}.")))?;
            let id = this.bucket.create_upload(&key).await.map_err(failed)?;
            let urls = this.bucket.presigned_parts(&key, &id, count, PART_URL_EXPIRATION).await.map_err(failed)?;
            Ok(StartedUpload { id, urls })
        })
    }

    fn complete_upload(
        &self,
        path: ArtifactPath,
        id: String,
        parts: Vec<SentPart>,
        longest: Option<u64>,
    ) -> BoxFuture<'static, Result<()>> {
        let this = self.clone();
        Box::pin(async move {
            let key = this.key(&path).ok_or_else(|| no_file_there(&path))?;
            this.complete(&key, &id, parts, longest).await
        })
    }

    fn abort_upload(&self, path: ArtifactPath, id: String) -> BoxFuture<'static, Result<()>> {
        let this = self.clone();
        Box::pin(async move {
            let Some(key) = this.key(&path) else { return Ok(()) };
            match this.bucket.abort_upload(&key, &id).await {
                // The bucket reports an unknown upload ID, for example one that this server did not
                // create.
                Err(failure) if failure.is_missing() => Ok(()),
                outcome => outcome.map_err(failed),
            }
        })
    }

    fn download_url(
        &self,
        path: ArtifactPath,
        expiration: Duration,
        _: &'static str,
    ) -> BoxFuture<'static, Result<DownloadUrl>> {
        let this = self.clone();
        Box::pin(async move {
            let (key, length) = this.find(&path).await?;
            Ok(DownloadUrl { url: this.sign(&path, &key, expiration).await?, length })
        })
    }

    fn upload_url(&self, path: ArtifactPath, expiration: Duration) -> BoxFuture<'static, Result<UploadUrl>> {
        let this = self.clone();
        Box::pin(async move {
            let key = this.key(&path).ok_or_else(|| no_file_there(&path))?;
            let content_type = inert_type(path.split_last().map_or("", |(name, _)| name));
            let url = this.bucket.presigned_put(&key, content_type, expiration).await.map_err(failed)?;
            Ok(UploadUrl { url, content_type })
        })
    }
}

/// Splits an S3 URI into bucket and path, without slashes at the ends of the path.
fn split(uri: &str) -> Option<(&str, &str)> {
    let rest = uri.strip_prefix("s3://").filter(|rest| !rest.contains(['?', '#']))?;
    let (bucket, path) = rest.split_once('/').unwrap_or((rest, ""));
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    let is_bucket = !bucket.is_empty() && bucket.bytes().all(is_name);
    is_bucket.then(|| (bucket, path.trim_matches('/')))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture};
    use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
    use aws_smithy_types::body::SdkBody;

    use super::*;

    #[test]
    fn locations_lead_below_the_prefix_or_nowhere() {
        let below = |root: &str, location: &str| {
            BucketPrefix::of_uri(root).unwrap().below(location).map(|path| path.to_string())
        };
        for (root, location, expected) in [
            ("s3://b", "s3://b/1/r", "1/r"),
            ("s3://b/", "s3://b", ""),
            ("s3://b/p/q/", "s3://b/p/q/1/", "1"),
            ("s3://b/p q", "s3://b/p q/é", "é"),
            ("s3://b/p", "s3://b/p", ""),
        ] {
            assert_eq!(below(root, location).as_deref(), Some(expected), "{root} {location}");
        }
        for (root, location) in [
            ("s3://b/p", "s3://b/pq/1"),
            ("s3://b/p", "s3://b"),
            ("s3://b/p", "s3://c/p/1"),
            ("s3://b/p", "s3://b/p/../q"),
            // Percent-encoded locations are rejected, because clients would use them as keys
            // without decoding.
            ("s3://b/p", "s3://b/p/%2e%2e/q"),
            ("s3://b/p", "s3://b/p/a%20b"),
            ("s3://b/p", "s3://b/p//1"),
            ("s3://b/p", "s3://b/p/1?x=y"),
            ("s3://b/p", "/p/1"),
            ("s3://b", "s3a://b/1"),
        ] {
            assert_eq!(below(root, location), None, "{root} {location}");
        }
        for uri in ["s3://", "s3:///x", "s3://b c/x", "s3://b/x#y", "s3://u@b/x", "gs://b"] {
            assert!(BucketPrefix::of_uri(uri).is_none(), "{uri}");
        }
    }

    /// An upload with too many parts is refused before a request is sent to the bucket.
    #[tokio::test]
    async fn uploads_of_too_many_parts_are_refused() {
        let place = BucketPrefix::of_uri("s3://b/p").unwrap();
        let path = ArtifactPath::parse("1/f").unwrap();
        for parts in [-1, 0, 10_001] {
            let message = place.start_upload(path.clone(), parts).await.unwrap_err().message;
            assert_eq!(message, "num_parts must be between 1 and 10000.");
        }
        let parts = vec![SentPart { number: 1, etag: "e".to_owned() }; 10_001];
        let message = place.complete_upload(path.clone(), "n.id".to_owned(), parts, None).await.unwrap_err().message;
        assert_eq!(message, "An upload has at most 10000 parts.");
        // A file of 11 MB has at most three parts.
        let location = crate::ArtifactStore::below("s3://b/p").at("s3://b/p/1").unwrap();
        let message = location.start_upload(&path, 4, Some(11 << 20)).await.unwrap_err().message;
        assert_eq!(message, "Artifact size is too large. Max size is 11534336 bytes.");
    }

    /// A bucket with an upload of one part.
    #[derive(Clone, Debug, Default)]
    struct Uploading(Arc<Mutex<Vec<String>>>);

    impl HttpConnector for Uploading {
        fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
            self.0.lock().unwrap().push(request.method().to_owned());
            let body = match request.method() {
                "GET" => {
                    "<ListPartsResult><IsTruncated>false</IsTruncated><Part><PartNumber>1</PartNumber><ETag>&quot;e&quot;</ETag>\
                     <Size>5</Size></Part></ListPartsResult>"
                }
                _ => "<CompleteMultipartUploadResult/>",
            };
            HttpConnectorFuture::ready(Ok(HttpResponse::new(200.try_into().unwrap(), SdkBody::from(body))))
        }
    }

    #[tokio::test]
    async fn parts_are_joined_whose_length_was_seen_and_no_others() {
        for (number, etag, longest, expected) in [
            (1, "\"e\"", 5, Ok(vec!["GET", "POST"])),
            (1, "e", 5, Ok(vec!["GET", "POST"])),
            // A part that replaces the listed part, or follows it, after the list has been read.
            (1, "\"longer\"", 5, Err(not_those_parts())),
            (2, "\"e\"", 5, Err(not_those_parts())),
            (1, "\"e\"", 4, Err(too_large(4))),
        ] {
            let bucket = Uploading::default();
            let part = SentPart { number, etag: etag.to_owned() };
            let place = BucketPrefix::whole(Bucket::over(bucket.clone()));
            let done = place.complete("k", "n.id", vec![part], Some(longest)).await;
            let asked = bucket.0.lock().unwrap().clone();
            assert_eq!(done.map(|()| asked.iter().map(String::as_str).collect()), expected, "{number} {etag}");
            assert!(expected.is_ok() || !asked.iter().any(|method| method == "POST"), "{number} {etag}: {asked:?}");
        }
    }

    #[test]
    fn keys_are_below_the_prefix_and_no_longer_than_a_bucket_takes() {
        let prefix = BucketPrefix::of_uri("s3://b/p").unwrap();
        let path = |text: &str| ArtifactPath::parse(text).unwrap();
        assert_eq!(prefix.key(&path("1//r/./é")).as_deref(), Some("p/1/r/é"));
        assert_eq!((prefix.directory(&path("1")), prefix.directory(&path(""))), ("p/1/".to_owned(), "p/".to_owned()));
        assert_eq!(prefix.key(&path("")), None);
        // Offloaded responses can only be read by their presigned URLs, and the archive not at all.
        for hidden in [".answers/x", ".answers", ".archive", ".archive/x", ".ARCHIVE/x", ".arch\u{200d}ive/x"] {
            assert_eq!(prefix.key(&path(hidden)), None, "{hidden}");
        }
        assert!(prefix.key(&path(&"n".repeat(1_022))).is_some() && prefix.key(&path(&"n".repeat(1_023))).is_none());
        assert_eq!(BucketPrefix::of_uri("s3://b").unwrap().key(&path("1")).as_deref(), Some("1"));
    }
}
