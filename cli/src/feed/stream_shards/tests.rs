//! Tests against a simulated DynamoDB stream, served over HTTP by the test itself.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use aws_config::{Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use table::Table;
use tokio::net::TcpListener;

use super::super::DeliveryError;
use super::*;

const TABLE: &str = "table";

/// Shards by name, with the keys of their records and whether they are closed.
#[derive(Default)]
struct FakeStream {
    shards: BTreeMap<String, (Vec<String>, bool)>,
    /// The parent of each shard that has one, by the name of the shard.
    parents: HashMap<String, String>,
    is_on: bool,
    /// Number of further requests that are refused with the error for an expired iterator.
    expired: usize,
    request_counts: HashMap<String, usize>,
}

#[derive(Clone, Default)]
struct FakeDynamoDb(Arc<Mutex<FakeStream>>);

impl FakeDynamoDb {
    fn with(shards: &[(&str, &[&str], bool)]) -> Self {
        let shards = shards.iter().map(|(name, keys, is_closed)| {
            ((*name).to_owned(), (keys.iter().map(|key| (*key).to_owned()).collect(), *is_closed))
        });
        Self(Arc::new(Mutex::new(FakeStream { shards: shards.collect(), is_on: true, ..FakeStream::default() })))
    }

    fn answer(&self, headers: &HeaderMap, request: &Value) -> (StatusCode, Value) {
        let mut stream = self.0.lock().unwrap();
        let target = headers["x-amz-target"].to_str().unwrap();
        assert!(headers["authorization"].to_str().unwrap().contains("/local/dynamodb/aws4_request"));
        *stream.request_counts.entry(target.rsplit('.').next().unwrap().to_owned()).or_default() += 1;
        let answer = match target {
            "DynamoDB_20120810.DescribeTable" => {
                assert_eq!(request["TableName"], TABLE);
                let specification = json!({ "StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES" });
                json!({ "Table": if stream.is_on {
                    json!({ "LatestStreamArn": "arn", "StreamSpecification": specification })
                } else {
                    json!({})
                }})
            }
            // The simulated stream lists one shard per page.
            "DynamoDBStreams_20120810.DescribeStream" => {
                let after = request["ExclusiveStartShardId"].as_str().unwrap_or_default();
                let mut rest = stream.shards.keys().filter(|name| name.as_str() > after);
                let name = rest.next();
                let last = name.filter(|_| rest.next().is_some());
                let shard = |name: &&String| json!({ "ShardId": name, "ParentShardId": stream.parents.get(*name) });
                let shards: Vec<_> = name.iter().map(shard).collect();
                json!({ "StreamDescription": { "Shards": shards, "LastEvaluatedShardId": last } })
            }
            "DynamoDBStreams_20120810.GetShardIterator" => {
                let begin = match request["SequenceNumber"].as_str() {
                    Some(number) => number.parse::<usize>().unwrap() + 1,
                    None => 0,
                };
                json!({ "ShardIterator": format!("{} {begin}", request["ShardId"].as_str().unwrap()) })
            }
            "DynamoDBStreams_20120810.GetRecords" => {
                if stream.expired > 0 {
                    stream.expired -= 1;
                    let kind = "com.amazonaws.dynamodb.v20120810#ExpiredIteratorException";
                    return (StatusCode::BAD_REQUEST, json!({ "__type": kind }));
                }
                let (name, begin) = request["ShardIterator"].as_str().unwrap().split_once(' ').unwrap();
                let begin: usize = begin.parse().unwrap();
                let (keys, is_closed) = &stream.shards[name];
                // The simulated stream returns two records per page.
                let end = keys.len().min(begin + 2);
                let records: Vec<_> = (begin..end).map(|number| record(&keys[number], number)).collect();
                let is_end = *is_closed && end == keys.len();
                let next = (!is_end).then(|| format!("{name} {end}"));
                json!({ "Records": records, "NextShardIterator": next })
            }
            _ => panic!("{target}"),
        };
        (StatusCode::OK, answer)
    }
}

/// Returns a record that the indexer is interested in, unless its key is `other`.
fn record(key: &str, number: usize) -> Value {
    let image = match key {
        "other" => json!({}),
        _ if key.starts_with("event") => json!({ "hook": { "N": "1" } }),
        _ => json!({ "lsi5sk": { "S": "x" } }),
    };
    json!({ "eventName": "MODIFY", "dynamodb": { "Keys": { "PK": { "S": key } }, "NewImage": image, "SequenceNumber": number.to_string() } })
}

async fn requests(server: &FakeDynamoDb) -> StreamClient {
    let answer = async |State(server): State<FakeDynamoDb>, headers: HeaderMap, body: Bytes| {
        let (status, answer) = server.answer(&headers, &serde_json::from_slice(&body).unwrap());
        (status, Json(answer))
    };
    let app = Router::new().route("/", post(answer));
    let app = app.with_state(server.clone());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    let keys = Credentials::builder().access_key_id("id").secret_access_key("secret").provider_name("test").build();
    let config =
        SdkConfig::builder().region(Region::new("local")).credentials_provider(SharedCredentialsProvider::new(keys));
    StreamClient::new(&url, &config.build(), TABLE).unwrap()
}

/// Consumer that collects the keys of the records, and is unreachable for a given number of calls.
#[derive(Clone, Default)]
struct RecordingConsumer(Arc<Mutex<(Vec<String>, usize)>>);

impl RecordingConsumer {
    fn keys(&self) -> Vec<String> {
        self.0.lock().unwrap().0.clone()
    }
}

impl Consumer for RecordingConsumer {
    async fn deliver(&self, records: &[Value]) -> Result<Option<usize>, DeliveryError> {
        let mut seen = self.0.lock().unwrap();
        if seen.1 > 0 {
            seen.1 -= 1;
            return Err(DeliveryError::Unreachable("told to".to_owned()));
        }
        let keys = records.iter().map(|record| record["dynamodb"]["Keys"]["PK"]["S"].as_str().unwrap().to_owned());
        seen.0.extend(keys);
        Ok(None)
    }

    async fn tick(&self) -> Result<(), DeliveryError> {
        Ok(())
    }
}

/// Runs rounds until there is nothing left to read.
async fn read_all(shards: &mut StreamShards, requests: &StreamClient, seen: &RecordingConsumer) {
    while shards.round(requests, seen).await.unwrap() {}
}

#[tokio::test]
async fn all_shards_are_read_and_a_closed_one_once() {
    let server = FakeDynamoDb::with(&[("a", &["1", "2", "other", "3"], true), ("b", &["4"], false)]);
    let (requests, seen, mut shards) = (requests(&server).await, RecordingConsumer::default(), StreamShards::default());
    read_all(&mut shards, &requests, &seen).await;
    let mut keys = seen.keys();
    keys.sort();
    assert_eq!(keys, ["1", "2", "3", "4"]);
    server.0.lock().unwrap().shards.get_mut("b").unwrap().0.extend(["other".to_owned(), "5".to_owned()]);
    server.0.lock().unwrap().shards.insert("c".to_owned(), (vec!["6".to_owned()], false));
    shards.last_discovery = None;
    read_all(&mut shards, &requests, &seen).await;
    assert_eq!(seen.keys()[4..], ["5", "6"]);
    assert_eq!(server.0.lock().unwrap().request_counts["GetShardIterator"], 3, "an iterator per shard");
}

#[tokio::test]
async fn an_old_iterator_and_an_indexer_that_is_away_lose_nothing() {
    let server = FakeDynamoDb::with(&[("a", &["1", "2", "3"], false)]);
    let (requests, seen, mut shards) = (requests(&server).await, RecordingConsumer::default(), StreamShards::default());
    shards.round(&requests, &seen).await.unwrap();
    server.0.lock().unwrap().expired = 1;
    assert!(!shards.round(&requests, &seen).await.unwrap());
    seen.0.lock().unwrap().1 = 1;
    assert!(!shards.round(&requests, &seen).await.unwrap());
    read_all(&mut shards, &requests, &seen).await;
    assert_eq!(seen.keys(), ["1", "2", "3"]);
}

/// The stream lists a shard before its parent if its name sorts first.
#[tokio::test]
async fn a_shard_is_read_after_its_parent() {
    let server = FakeDynamoDb::with(&[("a", &["5"], false), ("b", &["3", "4"], true), ("c", &["1", "2"], true)]);
    for (shard, parent) in [("a", "b"), ("b", "c"), ("c", "dropped")] {
        server.0.lock().unwrap().parents.insert(shard.to_owned(), parent.to_owned());
    }
    let (requests, seen, mut shards) = (requests(&server).await, RecordingConsumer::default(), StreamShards::default());
    read_all(&mut shards, &requests, &seen).await;
    assert_eq!(seen.keys(), ["1", "2", "3", "4", "5"]);
}

/// For the shard without events, no position is stored, because storing one would change the table.
#[tokio::test]
async fn after_a_restart_no_event_is_delivered_again() {
    let engine = embedded_engine::Engine::memory().unwrap();
    let table = Table::new(engine.client(), TABLE);
    table.create_if_missing().await.unwrap();
    let keys: &[&str] = &["1", "2", "event 3", "4", "5", "event 6", "7", "8", "9"];
    let server = FakeDynamoDb::with(&[("a", keys, false), ("b", &["10", "11"], false)]);
    let requests = requests(&server).await;
    let process = || StreamShards { positions: Some(StreamPositions(table.clone())), ..StreamShards::default() };
    let seen = RecordingConsumer::default();
    read_all(&mut process(), &requests, &seen).await;
    assert_eq!(seen.keys().len(), 11);
    let stored = StreamPositions(table.clone()).read().await.unwrap();
    assert_eq!(stored, HashMap::from([("a".to_owned(), "5".to_owned())]));

    server.0.lock().unwrap().shards.get_mut("a").unwrap().0.push("event 10".to_owned());
    let seen = RecordingConsumer::default();
    read_all(&mut process(), &requests, &seen).await;
    let mut keys = seen.keys();
    keys.sort();
    assert_eq!(keys, ["10", "11", "7", "8", "9", "event 10"]);
}

#[tokio::test]
async fn a_table_without_a_stream_is_looked_at_again() {
    let server = FakeDynamoDb::default();
    let (requests, seen, mut shards) = (requests(&server).await, RecordingConsumer::default(), StreamShards::default());
    assert!(!shards.round(&requests, &seen).await.unwrap());
    {
        let mut stream = server.0.lock().unwrap();
        stream.is_on = true;
        stream.shards.insert("a".to_owned(), (vec!["1".to_owned()], false));
    }
    shards.last_discovery = None;
    read_all(&mut shards, &requests, &seen).await;
    assert_eq!(seen.keys(), ["1"]);
}
