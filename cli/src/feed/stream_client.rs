//! Requests to the stream of a DynamoDB table. The records in the responses have the format that a
//! Lambda function receives, so they are passed on unchanged.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use aws_config::SdkConfig;
use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use aws_smithy_runtime_api::client::http::{HttpConnector, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::body::SdkBody;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::Failure;
use crate::signing::{self, Signature};

/// Timeout of a request. A response has up to 1 MB.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// How long before they expire credentials are renewed.
const RENEWAL_MARGIN: Duration = Duration::from_mins(10);
/// API versions of the stream operations and of the table operations.
const STREAMS_API: &str = "DynamoDBStreams_20120810";
const TABLES_API: &str = "DynamoDB_20120810";

/// Client for the stream of one table.
pub(crate) struct StreamClient {
    tables: String,
    streams: String,
    region: String,
    table: String,
    provider: SharedCredentialsProvider,
    /// Cached, because the credentials of a role are obtained over the network.
    credentials: Mutex<Option<Credentials>>,
    connector: SharedHttpConnector,
}

/// Reason why a request failed.
#[derive(Debug)]
pub(crate) enum StreamError {
    /// The iterator has expired, because it is older than 15 minutes.
    Expired,
    /// The stream no longer has the record at the requested position.
    Trimmed,
    Other(String),
}

impl fmt::Display for StreamError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired => formatter.write_str("the iterator has expired"),
            Self::Trimmed => formatter.write_str("the stream has trimmed this position"),
            Self::Other(why) => formatter.write_str(why),
        }
    }
}

/// A shard of a stream.
pub(super) struct ListedShard {
    pub(super) name: String,
    /// The shard that this one continues. The stream may have dropped the parent already.
    pub(super) parent: Option<String>,
}

/// A page of a shard's records, with the iterator for the next page. The iterator is `None` at the
/// end of the shard.
pub(super) struct RecordPage {
    pub(super) records: Vec<Value>,
    pub(super) next: Option<String>,
}

impl StreamClient {
    /// Creates a client for a table at an endpoint of DynamoDB or a compatible server.
    ///
    /// # Errors
    /// No credentials, no region or no root certificates are available.
    pub(crate) fn new(endpoint: &str, config: &SdkConfig, table: &str) -> Result<Self, Failure> {
        let region = config.region().ok_or("no AWS region is configured: set AWS_REGION")?;
        Ok(Self {
            tables: endpoint.to_owned(),
            streams: of_streams(endpoint),
            region: region.to_string(),
            table: table.to_owned(),
            credentials: Mutex::default(),
            provider: config.credentials_provider().ok_or("this program was built without credentials")?,
            connector: runtime::https::connector()?,
        })
    }

    /// Returns the ARN of the table's stream, if it is enabled with new and old images, which the
    /// indexer needs.
    pub(super) async fn stream(&self) -> Result<Option<String>, StreamError> {
        let said = self.ask(TABLES_API, "DescribeTable", json!({ "TableName": self.table })).await?;
        let stream = &said["Table"]["StreamSpecification"];
        let is_on = stream["StreamEnabled"] == true && stream["StreamViewType"] == "NEW_AND_OLD_IMAGES";
        Ok(said["Table"]["LatestStreamArn"].as_str().filter(|_| is_on).map(str::to_owned))
    }

    /// Returns a stream's shards.
    pub(super) async fn shards(&self, stream: &str) -> Result<Vec<ListedShard>, StreamError> {
        let mut shards = Vec::new();
        let mut request = json!({ "StreamArn": stream });
        loop {
            let said = self.ask(STREAMS_API, "DescribeStream", request.clone()).await?;
            let said = &said["StreamDescription"];
            let page = said["Shards"].as_array().into_iter().flatten();
            shards.extend(page.filter_map(|shard| {
                let name = |field: &str| shard[field].as_str().map(str::to_owned);
                Some(ListedShard { name: name("ShardId")?, parent: name("ParentShardId") })
            }));
            match said["LastEvaluatedShardId"].as_str() {
                Some(last) => request["ExclusiveStartShardId"] = last.into(),
                None => return Ok(shards),
            }
        }
    }

    /// Returns an iterator that starts after the given record, or at the oldest record of the shard
    /// if none is given.
    pub(super) async fn iterator(&self, stream: &str, shard: &str, after: Option<&str>) -> Result<String, StreamError> {
        let mut request = json!({ "StreamArn": stream, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON" });
        if let Some(number) = after {
            request["ShardIteratorType"] = "AFTER_SEQUENCE_NUMBER".into();
            request["SequenceNumber"] = number.into();
        }
        let said = self.ask(STREAMS_API, "GetShardIterator", request).await?;
        // Without this check, a missing iterator would make the shard appear to be fully read.
        let iterator = said["ShardIterator"].as_str().map(str::to_owned);
        iterator.ok_or_else(|| StreamError::Other("a response to GetShardIterator has no iterator".to_owned()))
    }

    /// Reads up to 1,000 records.
    pub(super) async fn page(&self, iterator: &str) -> Result<RecordPage, StreamError> {
        let mut said = self.ask(STREAMS_API, "GetRecords", json!({ "ShardIterator": iterator })).await?;
        let next = said["NextShardIterator"].as_str().map(str::to_owned);
        let Value::Array(records) = said["Records"].take() else {
            return Err(StreamError::Other("a response to GetRecords has no records".to_owned()));
        };
        Ok(RecordPage { records, next })
    }

    /// Returns credentials that are valid for at least [`RENEWAL_MARGIN`].
    async fn credentials(&self) -> Result<Credentials, Failure> {
        let is_good =
            |known: &Credentials| known.expiry().is_none_or(|expiry| expiry > SystemTime::now() + RENEWAL_MARGIN);
        let known = self.credentials.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(credentials) = known.filter(is_good) {
            return Ok(credentials);
        }
        let new = self.provider.provide_credentials().await?;
        *self.credentials.lock().unwrap_or_else(PoisonError::into_inner) = Some(new.clone());
        Ok(new)
    }

    async fn ask(&self, service: &str, operation: &str, request: Value) -> Result<Value, StreamError> {
        let answer = timeout(REQUEST_TIMEOUT, self.send(service, operation, request.to_string())).await;
        let answer = answer.map_err(|_| StreamError::Other(format!("{operation} timed out")))?;
        let (status, body) = answer.map_err(|error| StreamError::Other(format!("{operation}: {error}")))?;
        if status == 200 {
            return serde_json::from_slice(&body).map_err(|error| StreamError::Other(format!("{operation}: {error}")));
        }
        let said: Value = serde_json::from_slice(&body).unwrap_or_default();
        let kind = said["__type"].as_str().unwrap_or_default();
        Err(match kind.rsplit('#').next() {
            Some("ExpiredIteratorException") => StreamError::Expired,
            Some("TrimmedDataAccessException") => StreamError::Trimmed,
            _ => {
                let message = said["message"].as_str().or(said["Message"].as_str()).unwrap_or_default();
                StreamError::Other(format!("{operation} failed with {status}: {kind} {message}"))
            }
        })
    }

    async fn send(&self, service: &str, operation: &str, body: String) -> Result<(u16, Vec<u8>), Failure> {
        let url = if service == STREAMS_API { &self.streams } else { &self.tables };
        let target = format!("{service}.{operation}");
        let headers = [("content-type", "application/x-amz-json-1.0"), ("x-amz-target", target.as_str())];
        let signature = Signature { service: "dynamodb", region: &self.region, time: SystemTime::now() };
        let signed =
            signing::headers(self.credentials().await?, signature, "POST", url, headers.into_iter(), body.as_bytes())?;
        let mut request = http::Request::post(url).body(SdkBody::from(body))?;
        let signed = signed.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in headers.into_iter().chain(signed) {
            request.headers_mut().insert(http::HeaderName::from_bytes(name.as_bytes())?, value.parse()?);
        }
        let response = self.connector.call(HttpRequest::try_from(request)?).await?;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.map_err(|error| error.to_string())?;
        Ok((status, body.to_bytes().to_vec()))
    }
}

/// Returns the endpoint for stream requests. AWS has separate endpoints for streams and for tables.
/// Other servers use one endpoint for both.
fn of_streams(endpoint: &str) -> String {
    match endpoint.strip_prefix("https://dynamodb.") {
        Some(rest) if rest.contains(".amazonaws.com") => format!("https://streams.dynamodb.{rest}"),
        _ => endpoint.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::of_streams;

    #[test]
    fn streams_have_an_endpoint_of_their_own_in_aws() {
        for (endpoint, expected) in [
            ("https://dynamodb.eu-central-1.amazonaws.com", "https://streams.dynamodb.eu-central-1.amazonaws.com"),
            ("https://dynamodb.cn-north-1.amazonaws.com.cn/", "https://streams.dynamodb.cn-north-1.amazonaws.com.cn/"),
            ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
            ("https://dynamodb.example.com", "https://dynamodb.example.com"),
        ] {
            assert_eq!(of_streams(endpoint), expected);
        }
    }
}
