//! How long an overview of a day of 100,000 packed traces takes. Not among the tests of every day:
//! `cargo test --release -p traces --test it overview -- --ignored --nocapture`.

use std::time::Instant;

use entities::StoredTrace;
use entities::attributes::{DURATION, METADATA, START_TIME};
use key_schema::rows;
use mlflow_api::TraceId;
use serde_json::{Value, json};
use table::{Item, Value as Attribute, number, text};
use trace_blocks::{Place, SpansToPack, ToPack, TracePartition, pack};

use crate::server::{ALL, Server, Site, info};

const TRACES: u32 = 100_000;
/// When the day of the traces begins, in ms.
const DAY: i64 = 1_699_920_000_000;
const OF_BLOCK: usize = 128;

/// A trace like this one, with another number.
fn like(document: &Item, number_of: u32) -> StoredTrace {
    let place = i64::from(number_of);
    let mut item = Item::new(rows::Trace::key(&TraceId::new(number_of.into())));
    item.0.extend(
        document
            .0
            .iter()
            .filter(|(name, _)| *name != "PK" && *name != "SK")
            .map(|(name, value)| (name.clone(), value.clone())),
    );
    let mut item = item.with(START_TIME, number(DAY + place * 860)).with(DURATION, number(place * 37 % 9_001));
    if let Some(Attribute::M(metadata)) = item.0.get_mut(METADATA) {
        let tokens = format!(
            "{{\"input_tokens\": {}, \"output_tokens\": {}, \"total_tokens\": {}}}",
            place % 911,
            place % 97,
            place % 911 + place % 97
        );
        metadata.insert("mlflow.trace.tokenUsage".to_owned(), text(tokens));
        metadata.insert("mlflow.trace.session".to_owned(), text(format!("session-{}", place / 7)));
    }
    StoredTrace::of(item).unwrap()
}

async fn ask(server: &Server, metric: &str, aggregations: Value) -> usize {
    let asked = json!({
        "experiment_ids": ["0"], "view_type": "TRACES", "metric_name": metric, "aggregations": aggregations,
        "time_interval_seconds": 3_600, "start_time_ms": DAY, "end_time_ms": DAY + 86_399_999,
    });
    let answer = server.call_at("POST", &format!("{ALL}/metrics"), asked.to_string()).await.ok();
    answer["data_points"].as_array().unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn the_overview_of_a_day_of_100_000_traces() {
    let site = Site::new().await;
    let mut first = info(1, "0");
    first["request_time"] = "2023-11-14T00:00:00.000Z".into();
    first["tags"] = json!({ "mlflow.traceName": "agent" });
    first["request_preview"] = "What is in the middle of a flower?".into();
    site.server.start(&first).await.ok();
    let document =
        entities::read_traces(&site.table, &[&TraceId::new(1)]).await.unwrap()[&TraceId::new(1)].item().clone();
    let numbers: Vec<u32> = (0..TRACES).collect();
    for block in numbers.chunks(OF_BLOCK) {
        let traces: Vec<_> = block.iter().map(|number_of| like(&document, *number_of)).collect();
        let (partition, end) = (TracePartition::of(&traces[0]), Place::of(&traces[0]));
        let traces = traces.into_iter().map(|trace| ToPack { spans: SpansToPack::of(trace.id(), &[]), trace });
        let packed = pack(&partition, &end, traces.collect(), 1, 1).unwrap();
        site.table.write_many(packed.spans, &[]).await.unwrap();
        site.table.write_many(vec![packed.block], &[]).await.unwrap();
    }
    let percentiles = |percents: &[f64]| -> Value {
        percents
            .iter()
            .map(|percent| json!({ "aggregation_type": "PERCENTILE", "percentile_value": percent }))
            .collect()
    };
    let questions = [
        ("trace_count", json!([{ "aggregation_type": "COUNT" }])),
        ("latency", percentiles(&[50.0, 90.0, 99.0])),
        ("total_tokens", json!([{ "aggregation_type": "SUM" }])),
    ];
    for _ in 0..3 {
        let all = Instant::now();
        let asked = questions.iter().map(async |(metric, aggregations)| {
            let one = Instant::now();
            assert_eq!(ask(&site.server, metric, aggregations.clone()).await, 24, "{metric}");
            one.elapsed()
        });
        let each = futures::future::join_all(asked).await;
        eprintln!("{each:?}, all at once in {:?}", all.elapsed());
    }
}
