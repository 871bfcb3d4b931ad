//! Requests to a bucket whose responses, including failures, are scripted by the test.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;

use crate::bucket::{Bucket, BucketFailure, UploadedPart};

/// Status, headers and body of a response. `None` stands for a lost response.
type Answer = Option<(u16, &'static [(&'static str, &'static str)], &'static str)>;

#[derive(Clone, Debug)]
struct Script {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl HttpConnector for Script {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let body = String::from_utf8_lossy(request.body().bytes().unwrap_or_default()).into_owned();
        assert!(
            request.headers().get("authorization").is_some() && request.headers().get("x-amz-content-sha256").is_some()
        );
        self.asked.lock().unwrap().push(format!("{} {} {body}", request.method(), request.uri()));
        let answer = self.answers.lock().unwrap().pop_front().expect("more requests than expected");
        HttpConnectorFuture::ready(match answer {
            None => Err(ConnectorError::io("the line is dead".into())),
            Some((status, headers, body)) => {
                let mut response = HttpResponse::new(status.try_into().unwrap(), SdkBody::from(body));
                for (name, value) in headers {
                    response.headers_mut().insert(*name, *value);
                }
                Ok(response)
            }
        })
    }
}

/// Returns a bucket with these responses, and the requests that it receives.
fn bucket(answers: &[Answer]) -> (Bucket, Arc<Mutex<Vec<String>>>) {
    let script = Script { answers: Arc::new(Mutex::new(answers.iter().copied().collect())), asked: Arc::default() };
    (Bucket::over(script.clone()), script.asked)
}

const SLOW_DOWN: Answer =
    Some((503, &[], "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"));
const LOST: Answer = None;
const OK: Answer = Some((200, &[("etag", "\"e\"")], ""));
const NO_UPLOAD: Answer = Some((404, &[], "<Error><Code>NoSuchUpload</Code><Message>x</Message></Error>"));

fn part() -> UploadedPart {
    UploadedPart { number: 1, etag: "\"e\"".to_owned() }
}

#[tokio::test]
async fn what_passes_is_tried_again() {
    let within = Some((200, [].as_slice(), "<Error><Code>InternalError</Code><Message>x</Message></Error>"));
    let (bucket, asked) = bucket(&[SLOW_DOWN, LOST, within, OK]);
    bucket.put("k", "content".into()).await.unwrap();
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 4);
    assert!(asked.iter().all(|request| request == "PUT https://b.s3.r.amazonaws.com/k content"), "{asked:?}");
}

#[tokio::test]
async fn patience_ends() {
    let (bucket, asked) = bucket(&[SLOW_DOWN; 6]);
    let failure = bucket.put("k", "x".into()).await.unwrap_err();
    assert_eq!(failure, BucketFailure::Unavailable("503 SlowDown: Please reduce your request rate.".to_owned()));
    assert_eq!(asked.lock().unwrap().len(), 6);
}

#[tokio::test]
async fn what_stays_is_said_at_once() {
    let denied = Some((403, [].as_slice(), "<Error><Code>AccessDenied</Code><Message>no</Message></Error>"));
    let no_bucket = Some((404, [].as_slice(), "<Error><Code>NoSuchBucket</Code><Message>no</Message></Error>"));
    for (answer, code) in [(denied, "AccessDenied"), (no_bucket, "NoSuchBucket")] {
        let (bucket, asked) = bucket(&[answer]);
        let failure = bucket.list("", true, None, 10).await.unwrap_err();
        assert!(
            matches!(&failure, BucketFailure::Refused { code: found, .. } if found == code) && !failure.is_missing()
        );
        assert_eq!(asked.lock().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_page_is_no_answer_of_a_bucket() {
    let page = "<!DOCTYPE html><title>Sign in to this network</title>";
    for status in [200, 404] {
        let answer: Answer = Some((status, &[("etag", "\"e\"")], page));
        let (bucket, asked) = bucket(&[answer; 12]);
        assert!(matches!(bucket.put("k", "x".into()).await, Err(BucketFailure::Unavailable(_))));
        assert!(matches!(bucket.delete("k").await, Err(BucketFailure::Unavailable(_))));
        assert_eq!(asked.lock().unwrap().len(), 12);
    }
    // A HEAD response has no body. The missing ETag or length shows that it is not a response of
    // the bucket.
    let (bucket, _) = bucket(&[Some((200, &[("content-length", "3")], "")), Some((200, &[], ""))]);
    assert!(matches!(bucket.head("k").await, Err(BucketFailure::Broken(_))));
    assert!(matches!(bucket.put("k", "x".into()).await, Err(BucketFailure::Broken(_))));
}

#[tokio::test]
async fn what_is_not_there_is_deleted_already() {
    let (bucket, _) = bucket(&[NO_UPLOAD, Some((404, &[], "")), Some((404, &[], ""))]);
    bucket.abort_upload("k", "n.id").await.unwrap();
    bucket.delete("k").await.unwrap();
    assert_eq!(bucket.head("k").await.unwrap(), None);
}

#[tokio::test]
async fn a_completion_whose_answer_was_lost_is_told_from_one_that_never_was() {
    let made =
        Some((200, [("content-length", "3"), ("etag", "\"e\""), ("x-amz-meta-mlflow-upload", "nonce")].as_slice(), ""));
    let other =
        Some((200, [("content-length", "3"), ("etag", "\"e\""), ("x-amz-meta-mlflow-upload", "other")].as_slice(), ""));
    for (object, is_complete) in [(made, true), (other, false), (Some((404, [].as_slice(), "")), false)] {
        let (bucket, asked) = bucket(&[LOST, NO_UPLOAD, object]);
        let outcome = bucket.complete_upload("k", "nonce.id", &[part()]).await;
        assert_eq!(outcome.is_ok(), is_complete, "{outcome:?}");
        let asked = asked.lock().unwrap();
        let body = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Part><PartNumber>1</PartNumber>";
        assert!(asked[0].starts_with(&format!("POST https://b.s3.r.amazonaws.com/k?uploadId=id {body}")), "{asked:?}");
        assert!(asked[2].starts_with("HEAD "));
    }
    // None of these names has the form of the names that this server gives to uploads.
    let (bucket, _) = bucket(&[]);
    for name in ["", "id", "nonce."] {
        assert!(bucket.complete_upload("k", name, &[part()]).await.unwrap_err().is_missing(), "{name}");
        assert!(bucket.presigned_parts("k", name, 1, crate::bucket::MAX_EXPIRATION).await.is_err());
    }
}

#[tokio::test]
async fn a_deletion_that_failed_in_part_is_no_success() {
    let denied =
        "<DeleteResult><Error><Key>b</Key><Code>AccessDenied</Code><Message>no</Message></Error></DeleteResult>";
    let (bucket, asked) = bucket(&[OK, Some((200, &[], "<DeleteResult/>")), Some((200, &[], denied))]);
    let keys = |keys: &[&str]| keys.iter().map(|&key| key.to_owned()).collect::<Vec<_>>();
    bucket.delete_all(&keys(&["a<", "b\u{1}"])).await.unwrap();
    assert_eq!(
        bucket.delete_all(&keys(&["b"])).await,
        Err(BucketFailure::Refused { status: 200, code: "AccessDenied".to_owned(), message: "no".to_owned() })
    );
    let asked = asked.lock().unwrap();
    assert_eq!(asked[0], "DELETE https://b.s3.r.amazonaws.com/b%01 ");
    assert!(
        asked[1].contains("/?delete= ") && asked[1].contains("<Object><Key>a&lt;</Key></Object><Quiet>true</Quiet>"),
        "{asked:?}"
    );
}

#[tokio::test]
async fn all_parts_of_an_upload_are_listed() {
    let first = "<ListPartsResult><IsTruncated>true</IsTruncated><NextPartNumberMarker>1</NextPartNumberMarker>
        <Part><PartNumber>1</PartNumber><ETag>&quot;e&quot;</ETag><Size>5</Size></Part></ListPartsResult>";
    let second = "<ListPartsResult><IsTruncated>false</IsTruncated><Part><PartNumber>2</PartNumber><ETag>f</ETag><Size>7</Size></Part></ListPartsResult>";
    let (bucket, asked) = bucket(&[Some((200, &[], first)), Some((200, &[], second))]);
    let second = UploadedPart { number: 2, etag: "f".to_owned() };
    assert_eq!(bucket.uploaded_parts("k", "n.id").await, Ok(vec![(part(), 5), (second, 7)]));
    assert!(asked.lock().unwrap()[1].contains("part-number-marker=1"));
}

#[tokio::test]
async fn presigned_urls_are_for_one_key_one_method_and_an_hour_at_most() {
    let (bucket, _) = bucket(&[]);
    let day = std::time::Duration::from_hours(24);
    let url = bucket
        .presigned_get(
            "a b",
            &[("response-content-disposition", "attachment; filename=b"), ("response-content-type", "text/plain")],
            day,
        )
        .await
        .unwrap();
    assert!(
        url.starts_with(
            "https://b.s3.r.amazonaws.com/a%20b?response-content-disposition=attachment%3B%20filename%3Db&"
        )
    );
    assert!(url.contains("response-content-type=text%2Fplain") && url.contains("X-Amz-Expires=3600"), "{url}");
    assert!(url.contains("X-Amz-SignedHeaders=host&"), "{url}");
    let url = bucket.presigned_put("k", "image/png", std::time::Duration::from_mins(5)).await.unwrap();
    assert!(url.contains("X-Amz-Expires=300") && url.contains("X-Amz-SignedHeaders=content-type%3Bhost"), "{url}");
    let urls = bucket.presigned_parts("k", "n.i", 2, day).await.unwrap();
    assert!(urls.len() == 2 && urls[1].contains("?partNumber=2&uploadId=i&"), "{urls:?}");
}

/// A simulated bucket that never responds, and counts the requests that it receives.
#[derive(Clone, Debug, Default)]
struct Joiner(Arc<Mutex<usize>>);

impl HttpConnector for Joiner {
    fn call(&self, _: HttpRequest) -> HttpConnectorFuture {
        *self.0.lock().unwrap() += 1;
        HttpConnectorFuture::new(std::future::pending())
    }
}

#[tokio::test]
async fn a_bucket_joins_parts_for_as_long_as_its_server_says() {
    let joiner = Joiner::default();
    let bucket = Bucket::over(joiner.clone()).completing_within(Duration::from_millis(1));
    let failure = bucket.complete_upload("k", "nonce.id", &[part()]).await.unwrap_err();
    assert_eq!(failure, BucketFailure::Unavailable("the request timed out".to_owned()));
    assert_eq!(*joiner.0.lock().unwrap(), 6);
}
