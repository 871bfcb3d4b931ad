//! Presigned URLs for one key and one method. Anyone who has such a URL may use it, any number of
//! times, until it expires. Creating one takes no request.

use std::time::Duration;

use crate::bucket::failure::Result;
use crate::bucket::requests::Bucket;
use crate::bucket::signature::presign;
use crate::bucket::upload::id_of;

/// Maximum lifetime of a URL. A URL becomes invalid earlier if the credentials that signed it
/// expire.
pub const MAX_EXPIRATION: Duration = Duration::from_hours(1);

/// Number of URLs that are signed before the task yields to other tasks. This matters because a
/// request of a hundred bytes can request ten thousand URLs.
const BATCH_SIZE: u32 = 64;

impl Bucket {
    /// Returns a URL for reading an object. `sent_with` overrides headers of the response. It
    /// contains S3's query parameters for them, such as `response-content-type`, with their values.
    ///
    /// # Errors
    /// A [`crate::bucket::BucketFailure`] if there are no credentials to sign with. This applies to
    /// all methods that create presigned URLs.
    pub async fn presigned_get(&self, key: &str, sent_with: &[(&str, &str)], expiration: Duration) -> Result<String> {
        let connection = self.connection().await?;
        let url = connection.address.url(key, sent_with);
        presign(&connection.signer().await?, "GET", url, &[], expiration.min(MAX_EXPIRATION))
    }

    /// Returns a URL for writing an object. The client has to send the content type that is given
    /// here.
    pub async fn presigned_put(&self, key: &str, content_type: &str, expiration: Duration) -> Result<String> {
        let connection = self.connection().await?;
        let (url, headers) = (connection.address.url(key, &[]), [("content-type", content_type.to_owned())]);
        presign(&connection.signer().await?, "PUT", url, &headers, expiration.min(MAX_EXPIRATION))
    }

    /// Returns a URL for each part of an upload, starting with part 1.
    pub async fn presigned_parts(
        &self,
        key: &str,
        upload: &str,
        count: u32,
        expiration: Duration,
    ) -> Result<Vec<String>> {
        let id = id_of(upload)?;
        let connection = self.connection().await?;
        let signer = connection.signer().await?;
        let mut urls = Vec::new();
        for number in 1..=count {
            let query = [("partNumber", &*number.to_string()), ("uploadId", id)];
            let url = connection.address.url(key, &query);
            urls.push(presign(&signer, "PUT", url, &[], expiration.min(MAX_EXPIRATION))?);
            if number % BATCH_SIZE == 0 {
                tokio::task::yield_now().await;
            }
        }
        Ok(urls)
    }
}
