//! Many concurrent exporters over HTTP, with two server processes, while the table throttles
//! requests, rejects them and loses responses. The exporters retry like OpenTelemetry's exporter,
//! and no span may be lost.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde_json::{Value, json};
use table::RetryPolicy;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::server::{ALL, Server, Site, export, id, span};

/// Number of traces per exporter that no other exporter sends. In addition, every eight exporters
/// share a trace.
const TRACES: u32 = 4;
const SPANS: u64 = 5;
/// Maximum number of attempts of OpenTelemetry's exporter, and the number of seconds within which
/// it makes them.
const ATTEMPTS: u32 = 6;
const SECONDS: u32 = 10;
/// Length of one simulated second for the exporters.
const SECOND: Duration = Duration::from_millis(5);
/// Timeout of each request of an exporter.
const PATIENCE: Duration = Duration::from_mins(1);

/// The parts of a response that an exporter uses.
struct ExporterResponses {
    status: u16,
    retry_after: Option<u32>,
    text: String,
}

/// Sends a request over a new connection.
async fn post(to: SocketAddr, body: &str) -> ExporterResponses {
    let mut connection = TcpStream::connect(to).await.unwrap();
    let head = format!(
        "POST /v1/traces HTTP/1.1\r\nhost: {to}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         x-mlflow-experiment-id: 0\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    connection.write_all(head.as_bytes()).await.unwrap();
    connection.write_all(body.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).await.unwrap();
    let text = String::from_utf8_lossy(&answer).into_owned();
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
    let retry_after = text.lines().find_map(|line| line.strip_prefix("retry-after: ")?.trim().parse().ok());
    ExporterResponses { status, retry_after, text }
}

/// Exports like OpenTelemetry's exporter, which sends a request again after 429, 502, 503 or 504.
/// Returns how often the request was sent.
async fn exports(to: SocketAddr, spans: Vec<Value>) -> u32 {
    let (body, mut waited) = (export(&spans), 0);
    for attempt in 1..=ATTEMPTS {
        let heard = tokio::time::timeout(PATIENCE, post(to, &body)).await.unwrap();
        match heard.status {
            200 => return attempt,
            429 => assert!(heard.retry_after.is_some(), "{}", heard.text),
            502..=504 => {}
            _ => panic!("an exporter does not retry after this response: {}", heard.text),
        }
        let seconds = heard.retry_after.unwrap_or(1 << (attempt - 1));
        waited += seconds;
        assert!(waited <= SECONDS, "an exporter gives up, as it would have to wait {seconds} s: {}", heard.text);
        tokio::time::sleep(SECOND * seconds).await;
    }
    panic!("an exporter gives up");
}

/// Serves on a free port.
async fn listen(server: &Server) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = server.0.0.clone();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// Returns the requests of an exporter, in order. Spans below the root come before the root. The
/// last one is a span of a shared trace.
fn requests(exporter: u32) -> Vec<Vec<Value>> {
    let mut requests = Vec::new();
    for own in 0..TRACES {
        let trace = exporter * TRACES + own;
        let spans = (1..=SPANS).map(|number| span(trace, number, (number > 1).then_some(1), number, 100 + number));
        let spans: Vec<_> = spans.collect();
        requests.push(spans[1..].to_vec());
        requests.push(spans[..1].to_vec());
    }
    let (shared, place) = (shared(exporter), u64::from(exporter % 8) + 1);
    requests.push(vec![span(shared, place, (place > 1).then_some(1), place, 100 + place)]);
    requests
}

/// Returns the number of the trace that an exporter shares with others.
fn shared(exporter: u32) -> u32 {
    100_000 + exporter / 8
}

/// Runs all exporters concurrently, half of them against each address. Every third request is sent
/// twice at once. Returns the number of retries.
async fn all_export(to: [SocketAddr; 2], exporters: u32) -> u32 {
    let mut running = JoinSet::new();
    for exporter in 0..exporters {
        let to = to[usize::from(exporter % 2 == 0)];
        running.spawn(async move {
            let mut repeated = 0;
            for (number, spans) in requests(exporter).into_iter().enumerate() {
                if number % 3 == 2 {
                    let (one, other) = tokio::join!(exports(to, spans.clone()), exports(to, spans));
                    repeated += one + other - 2;
                } else {
                    repeated += exports(to, spans).await - 1;
                }
            }
            repeated
        });
    }
    running.join_all().await.into_iter().sum()
}

/// Returns the traces that a search finds, newest first.
async fn found(server: &Server) -> Vec<Value> {
    let place = json!({ "mlflow_experiment": { "experiment_id": "0" } });
    let mut body = json!({ "locations": [place], "max_results": 100 });
    let mut found = Vec::new();
    loop {
        let mut page = server.call_at("POST", &format!("{ALL}/search"), body.to_string()).await.ok();
        found.extend(page["traces"].as_array().cloned().unwrap_or_default());
        match page["next_page_token"].take() {
            Value::String(token) => body["page_token"] = token.into(),
            _ => return found,
        }
    }
}

/// Checks that every span of the exporters exists exactly once, and that every trace is found and
/// has ended.
async fn check(server: &Server, exporters: u32) {
    let mut expected: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
    for (trace, span) in (0..exporters).flat_map(requests).flatten().map(|span| {
        let trace = u32::from_str_radix(span["traceId"].as_str().unwrap(), 16).unwrap();
        (trace, span["name"].as_str().unwrap().to_owned())
    }) {
        expected.entry(trace).or_default().insert(span);
    }
    for (trace, names) in &expected {
        let spans = server.spans(*trace).await;
        assert_eq!(spans.len(), names.len(), "trace {trace}: {spans:?}");
        assert_eq!(spans.iter().cloned().collect::<BTreeSet<_>>(), *names, "trace {trace}");
    }
    let found = found(server).await;
    let ids: BTreeSet<_> = found.iter().map(|trace| trace["trace_id"].as_str().unwrap().to_owned()).collect();
    assert_eq!((found.len(), ids), (expected.len(), expected.keys().map(|trace| id(*trace)).collect()));
    for trace in found {
        let end = (&trace["request_time"], &trace["execution_duration"], &trace["state"]);
        let is_shared = trace["trace_id"].as_str().unwrap() >= id(100_000).as_str();
        let duration = if is_shared { "0.107s" } else { "0.104s" };
        assert_eq!(end, (&json!("2023-11-14T22:13:20.001Z"), &json!(duration), &json!("OK")), "{trace}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes six seconds of a core; part of `make test-slow`"]
async fn no_span_of_64_exporters_is_lost() {
    let site = Site::new().await;
    let servers = [site.other().await, site.other().await];
    let to = [listen(&servers[0]).await, listen(&servers[1]).await];
    assert_eq!(all_export(to, 64).await, 0, "nothing went wrong, so nothing was repeated");
    check(&servers[0], 64).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_span_is_lost_while_every_tenth_call_of_the_table_fails() {
    Box::pin(nothing_is_lost_while_calls_fail(40)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes eight seconds of a core; part of `make test-slow`"]
async fn no_span_of_64_exporters_is_lost_while_every_tenth_call_of_the_table_fails() {
    Box::pin(nothing_is_lost_while_calls_fail(64)).await;
}

async fn nothing_is_lost_while_calls_fail(exporters: u32) {
    let site = Site::new().await;
    // The servers give up after few retries, so that exporters see the failures.
    let pause = Duration::from_millis(1);
    let retry = RetryPolicy { attempts: 3, first_pause: pause, longest_pause: pause, ..RetryPolicy::default() };
    let impatient = site.faulty().with_retry(retry);
    let servers = [Server::on(&impatient).await, Server::on(&impatient).await];
    let to = [listen(&servers[0]).await, listen(&servers[1]).await];
    // Faults alternate between two kinds of throttling, conflicts, and requests that fail before or
    // after they take effect.
    site.faults.refuse_every(10);
    site.faults.lose_answer_every(10);
    let repeated = all_export(to, exporters).await;
    site.faults.work_again();
    site.faults.lose_answer_every(0);
    assert!(repeated > 0, "no exporter has seen a failure");
    check(&site.other().await, exporters).await;
}
