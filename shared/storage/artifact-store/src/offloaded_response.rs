//! Offloads responses that are too large for a Lambda function to the artifact bucket, from which
//! the client reads them. The bucket's lifecycle rules remove them after a day.

use bytes::Bytes;
use mlflow_api::Result;
use sha2::{Digest, Sha256};

use crate::backend::{DOWNLOAD_EXPIRATION, failed};
use crate::path::OFFLOADED_RESPONSES_DIRECTORY;
use crate::prefix::BucketPrefix;

/// One day in ms.
const DAY_MS: i64 = 86_400_000;

/// A response that is too large for a Lambda function to return.
#[derive(Clone, Debug)]
pub struct OffloadedResponse {
    /// Body.
    pub body: Bytes,
    /// Value of `Content-Type`.
    pub content_type: String,
    /// Value of `Content-Encoding`, if the body is compressed.
    pub encoding: Option<String>,
    /// Value of `Content-Disposition`, if the response is a file.
    pub disposition: Option<String>,
}

impl BucketPrefix {
    /// Stores a response next to the artifacts and returns a presigned URL, from which anyone can
    /// read it for a few minutes. Takes one request if the same response was offloaded before on
    /// this day, otherwise two.
    ///
    /// # Errors
    /// An internal error if the bucket fails.
    pub async fn offload(&self, response: OffloadedResponse) -> Result<String> {
        let OffloadedResponse { body, content_type, encoding, disposition } = response;
        let key = self.key_of(&format!("{OFFLOADED_RESPONSES_DIRECTORY}/{}", name(&body, runtime::clock::now_ms())));
        if !self.has(&key, &body).await {
            self.bucket().put(&key, body).await.map_err(failed)?;
        }
        let mut sent_with = vec![("response-content-type", content_type.as_str())];
        sent_with.extend(encoding.as_deref().map(|encoding| ("response-content-encoding", encoding)));
        sent_with.extend(disposition.as_deref().map(|name| ("response-content-disposition", name)));
        self.bucket().presigned_get(&key, &sent_with, DOWNLOAD_EXPIRATION).await.map_err(failed)
    }

    /// Checks whether a response is already in the bucket. If the check fails, the response is
    /// written again.
    async fn has(&self, key: &str, body: &Bytes) -> bool {
        match self.bucket().head(key).await {
            Ok(object) => object.is_some_and(|object| usize::try_from(object.length) == Ok(body.len())),
            Err(failure) => {
                tracing::warn!(%failure, "failed to check whether a response is already in the bucket");
                false
            }
        }
    }
}

/// Returns the name of an offloaded response, which is a digest of its content and the current day.
/// Because the name depends on the content, repeated requests are redirected to one object. Because
/// it depends on the day, an object that is reused today was also written today, and is not about
/// to be removed. A name discloses nothing: only a caller who has the response can compute it, and
/// reading the object takes a signed URL.
fn name(body: &Bytes, now: i64) -> String {
    let digest = Sha256::new().chain_update(now.div_euclid(DAY_MS).to_be_bytes()).chain_update(body).finalize();
    let (parts, _) = digest.as_slice().as_chunks();
    parts.iter().map(|part| format!("{:032x}", u128::from_be_bytes(*part))).collect::<Vec<_>>().concat()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::{Arc, Mutex};

    use crate::bucket::Bucket;
    use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture};
    use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
    use aws_smithy_types::body::SdkBody;

    use super::*;

    /// A simulated bucket that records the lengths of its objects, and the requests that it
    /// receives.
    #[derive(Clone, Debug, Default)]
    struct Kept(Arc<Mutex<State>>);

    /// Lengths of the objects by key, and methods of the requests.
    type State = (BTreeMap<String, usize>, Vec<String>);

    impl HttpConnector for Kept {
        fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
            let (objects, asked) = &mut *self.0.lock().unwrap();
            asked.push(request.method().to_owned());
            let key = request.uri().to_owned();
            if request.method() == "PUT" {
                objects.insert(key.clone(), request.body().bytes().unwrap_or_default().len());
            }
            let length = objects.get(&key);
            let status = if length.is_some() { 200_u16 } else { 404 };
            let mut response = HttpResponse::new(status.try_into().unwrap(), SdkBody::empty());
            response.headers_mut().insert("etag", "\"e\"");
            response.headers_mut().insert("content-length", length.unwrap_or(&0).to_string());
            HttpConnectorFuture::ready(Ok(response))
        }
    }

    #[tokio::test]
    async fn an_answer_that_is_given_again_is_one_object() {
        let kept = Kept::default();
        let place = BucketPrefix::whole(Bucket::over(kept.clone()));
        let answer = |body: &'static str| OffloadedResponse {
            body: Bytes::from_static(body.as_bytes()),
            content_type: "application/json".to_owned(),
            encoding: None,
            disposition: None,
        };
        let mut urls = Vec::new();
        for body in ["long", "long", "other", "long"] {
            let url = place.offload(answer(body)).await.unwrap();
            assert!(url.contains("/.answers/") && url.contains("X-Amz-Signature="), "{url}");
            urls.push(url.split('?').next().unwrap().to_owned());
        }
        assert!(urls[0] == urls[1] && urls[0] == urls[3] && urls[0] != urls[2], "{urls:?}");
        let (objects, asked) = &*kept.0.lock().unwrap();
        assert_eq!((objects.len(), asked.join(" ")), (2, "HEAD PUT HEAD HEAD PUT HEAD".to_owned()));
    }

    #[test]
    fn each_day_has_other_names() {
        let (body, other) = (Bytes::from_static(b"long"), Bytes::from_static(b"longer"));
        let names: std::collections::BTreeSet<_> =
            [(&body, 0), (&body, DAY_MS - 1), (&body, DAY_MS), (&other, 0)].map(|(body, now)| name(body, now)).into();
        assert_eq!(names.len(), 3);
        assert!(names.iter().all(|name| name.len() == 64));
    }
}
