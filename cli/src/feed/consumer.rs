//! Consumers of stream records: the indexer in this process, or its function under
//! `cargo lambda watch`.

use std::time::Duration;

use axum::body::Bytes;
use fts_indexer::{Indexer, StreamBatch};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::Failure;

/// Name of the function in `cargo lambda watch` and Lambda.
const INDEXER_FUNCTION: &str = "fts-indexer";
/// Timeout of a call. It is long, because the watch server compiles a function on its first call.
const CALL_TIMEOUT: Duration = Duration::from_mins(10);

/// Reason why a batch was not processed.
#[derive(Debug)]
pub(crate) enum DeliveryError {
    /// The consumer failed on these records.
    Failed(String),
    /// The consumer never received the records.
    Unreachable(String),
}

/// Position of the first record that has to be delivered again, if any.
type DeliveryOutcome = Result<Option<usize>, DeliveryError>;

/// A consumer of batches of records.
pub(crate) trait Consumer: Send + Sync + 'static {
    /// Delivers a batch.
    fn deliver(&self, records: &[Value]) -> impl Future<Output = DeliveryOutcome> + Send;

    /// Makes the consumer check the runs whose indexing it has postponed.
    fn tick(&self) -> impl Future<Output = Result<(), DeliveryError>> + Send;
}

/// The indexer in this process.
pub(crate) struct LocalIndexer(pub(crate) Indexer);

impl Consumer for LocalIndexer {
    async fn deliver(&self, records: &[Value]) -> DeliveryOutcome {
        let indexer = self.0.clone();
        let batch = StreamBatch { records: records.to_vec() };
        // Delivery runs in a separate task, so that a panic of the indexer does not end the feed.
        let answer = tokio::spawn(async move { indexer.handle(batch).await }).await;
        let answer = answer.map_err(|error| DeliveryError::Failed(error.to_string()))?;
        first_failed(records, answer.batch_item_failures.into_iter().map(|failure| failure.item_identifier))
    }

    async fn tick(&self) -> Result<(), DeliveryError> {
        let indexer = self.0.clone();
        let answer = tokio::spawn(async move { indexer.tick().await }).await;
        let answer = answer.map_err(|error| DeliveryError::Failed(error.to_string()))?;
        answer.map_err(|failure| DeliveryError::Failed(format!("{failure:?}")))
    }
}

/// The indexer's function, on a server that implements Lambda's Invoke API.
pub(crate) struct RemoteIndexer {
    client: Client<HttpConnector, Full<Bytes>>,
    uri: Uri,
}

impl RemoteIndexer {
    /// Returns the consumer for a server's URL, such as `http://127.0.0.1:9000`.
    pub(crate) fn new(url: &str) -> Result<Self, Failure> {
        let uri = format!("{}/2015-03-31/functions/{INDEXER_FUNCTION}/invocations", url.trim_end_matches('/'));
        let uri: Uri = uri.parse().map_err(|error| format!("{url} is not a valid URL: {error}"))?;
        if uri.scheme_str() != Some("http") {
            return Err(format!("{url} does not start with http://").into());
        }
        Ok(Self { client: Client::builder(TokioExecutor::new()).build_http(), uri })
    }

    /// Calls the function, and returns the status and body of the response.
    async fn call(&self, event: &Value) -> Result<(StatusCode, Bytes), DeliveryError> {
        let call = timeout(CALL_TIMEOUT, self.send(event.to_string())).await;
        let call = call.map_err(|_| DeliveryError::Unreachable("the call timed out".to_owned()))?;
        let (status, body) = call.map_err(|error| DeliveryError::Unreachable(with_causes(&*error)))?;
        match status {
            // Either the watch server has not registered the function yet, or a proxy in front of
            // it has responded.
            StatusCode::NOT_FOUND | StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE => {
                Err(DeliveryError::Unreachable(text(status, &body)))
            }
            _ => Ok((status, body)),
        }
    }

    async fn send(&self, body: String) -> Result<(StatusCode, Bytes), Failure> {
        let request = Request::builder().method(Method::POST).uri(self.uri.clone());
        let request = request.header("content-type", "application/json").body(Full::from(body))?;
        let answer = self.client.request(request).await?;
        let status = answer.status();
        Ok((status, answer.into_body().collect().await?.to_bytes()))
    }
}

impl Consumer for RemoteIndexer {
    async fn deliver(&self, records: &[Value]) -> DeliveryOutcome {
        let (status, body) = self.call(&json!({ "Records": records })).await?;
        let failed = || DeliveryError::Failed(text(status, &body));
        if status != StatusCode::OK {
            return Err(failed());
        }
        let answer: InvokeResponse = serde_json::from_slice(&body).map_err(|_| failed())?;
        first_failed(records, answer.failures.into_iter().map(|failure| failure.record))
    }

    async fn tick(&self) -> Result<(), DeliveryError> {
        // The event has no records, like the event that the schedule sends in AWS.
        let (status, body) = self.call(&json!({ "source": "aws.events" })).await?;
        if status == StatusCode::OK { Ok(()) } else { Err(DeliveryError::Failed(text(status, &body))) }
    }
}

/// Formats a response for the log.
fn text(status: StatusCode, body: &[u8]) -> String {
    format!("{status}: {}", String::from_utf8_lossy(body))
}

/// The function's response, in the format of Lambda's partial batch responses.
#[derive(Deserialize)]
struct InvokeResponse {
    #[serde(rename = "batchItemFailures")]
    failures: Vec<ItemFailure>,
}

#[derive(Deserialize)]
struct ItemFailure {
    #[serde(rename = "itemIdentifier")]
    record: Option<String>,
}

/// Returns the position of the first record that failed, or `None` if no record failed. If an
/// identifier is not in the batch, the whole batch counts as failed, as in Lambda.
fn first_failed(records: &[Value], failed: impl Iterator<Item = Option<String>>) -> DeliveryOutcome {
    let mut first = None;
    for number in failed {
        let position = records.iter().position(|record| number.as_deref() == Some(super::number(record)));
        let position = position
            .ok_or_else(|| DeliveryError::Failed(format!("the failed record is not in the batch: {number:?}")))?;
        first = Some(first.map_or(position, |first: usize| first.min(position)));
    }
    Ok(first)
}

/// Formats an error with its causes, because the client's own message only says that there was an
/// error.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use axum::Router;
    use axum::routing::post;
    use tokio::net::{TcpListener, TcpSocket};

    use super::*;

    /// Returns the outcome of delivering the records 1, 2 and 3 if the function responds with this
    /// status and body.
    async fn outcome(status: u16, body: &'static str) -> Result<Option<usize>, &'static str> {
        let status = StatusCode::from_u16(status).unwrap();
        let answer = move |sent: axum::Json<Value>| async move {
            assert_eq!(sent["Records"].as_array().map(Vec::len), Some(3));
            (status, body)
        };
        let app = Router::new().route("/2015-03-31/functions/fts-indexer/invocations", post(answer));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let server = tokio::spawn(async move { axum::serve(listener, app).await });
        let outcome = deliver(&url).await;
        server.abort();
        outcome
    }

    async fn deliver(url: &str) -> Result<Option<usize>, &'static str> {
        let records = ["1", "2", "3"].map(|number| json!({ "dynamodb": { "SequenceNumber": number } }));
        RemoteIndexer::new(url).unwrap().deliver(&records).await.map_err(|trouble| match trouble {
            DeliveryError::Failed(_) => "failed",
            DeliveryError::Unreachable(_) => "unreachable",
        })
    }

    #[tokio::test]
    async fn the_answer_names_what_has_to_come_again() {
        assert_eq!(outcome(200, r#"{"batchItemFailures":[]}"#).await, Ok(None));
        let two = r#"{"batchItemFailures":[{"itemIdentifier":"3"},{"itemIdentifier":"2"}]}"#;
        assert_eq!(outcome(200, two).await, Ok(Some(1)));
        for unknown in [
            r#"{"batchItemFailures":[{"itemIdentifier":"4"}]}"#,
            r#"{"batchItemFailures":[{"itemIdentifier":""}]}"#,
            r#"{"batchItemFailures":[{"itemIdentifier":null}]}"#,
            r#"{"errorType":"panic","errorMessage":"it ended"}"#,
        ] {
            assert_eq!(outcome(200, unknown).await, Err("failed"), "{unknown}");
        }
    }

    #[tokio::test]
    async fn a_function_that_fails_is_not_one_that_is_away() {
        assert_eq!(outcome(500, r#"{"errorType":"panic"}"#).await, Err("failed"));
        assert_eq!(outcome(404, "no such function").await, Err("unreachable"));
        // A bound socket that does not listen keeps its port reserved, so that no other process
        // responds on it.
        let deaf = TcpSocket::new_v4().unwrap();
        deaf.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        assert_eq!(deliver(&format!("http://{}", deaf.local_addr().unwrap())).await, Err("unreachable"));
    }

    #[tokio::test]
    async fn a_tick_is_an_event_without_records() {
        let answer = async move |sent: axum::Json<Value>| {
            if sent.get("Records").is_none() { StatusCode::OK } else { StatusCode::IM_A_TEAPOT }
        };
        let app = Router::new().route("/2015-03-31/functions/fts-indexer/invocations", post(answer));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let server = tokio::spawn(async move { axum::serve(listener, app).await });
        let outcome = RemoteIndexer::new(&url).unwrap().tick().await;
        server.abort();
        assert!(outcome.is_ok(), "{outcome:?}");
    }

    #[test]
    fn only_urls_that_can_be_called_are_taken() {
        for url in ["", "127.0.0.1:9000", "https://127.0.0.1:9000", "http://a b"] {
            assert!(RemoteIndexer::new(url).is_err(), "{url}");
        }
    }
}
