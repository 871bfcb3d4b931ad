//! URLs for one key and one method. Everybody who has one may use it, once or often, until it
//! expires. They cost no request.

use std::time::Duration;

use crate::bucket::failure::Result;
use crate::bucket::requests::Bucket;
use crate::bucket::upload::id_of;

/// No URL is good for longer. It ends earlier where the credentials do that it was signed with.
pub const LONGEST_EXPIRATION: Duration = Duration::from_hours(1);

/// URLs that are signed before others have their turn: a request of a hundred bytes may ask for ten thousand.
const AT_A_TIME: u32 = 64;

impl Bucket {
    /// A URL to read an object, sent with these headers, whatever it was stored with: their names are those of S3's query, such as
    /// `response-content-type`.
    ///
    /// # Errors
    /// A [`crate::bucket::Failure`], if there is nobody to sign; here and below.
    pub async fn presigned_get(&self, key: &str, sent_with: &[(&str, &str)], expiration: Duration) -> Result<String> {
        let connection = self.connection().await?;
        let url = connection.address.url(key, sent_with);
        connection.signer().await?.presign("GET", url, &[], expiration.min(LONGEST_EXPIRATION))
    }

    /// A URL to write an object with this content type, which has to be sent as it is here.
    pub async fn presigned_put(&self, key: &str, content_type: &str, expiration: Duration) -> Result<String> {
        let connection = self.connection().await?;
        let (url, headers) = (connection.address.url(key, &[]), [("content-type", content_type.to_owned())]);
        connection.signer().await?.presign("PUT", url, &headers, expiration.min(LONGEST_EXPIRATION))
    }

    /// A URL for each part of an upload, from 1 on.
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
            urls.push(signer.presign("PUT", url, &[], expiration.min(LONGEST_EXPIRATION))?);
            if number % AT_A_TIME == 0 {
                tokio::task::yield_now().await;
            }
        }
        Ok(urls)
    }
}
