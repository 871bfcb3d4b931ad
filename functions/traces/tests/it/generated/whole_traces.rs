//! Measures the entire processing of traces, from receiving their spans to packing them into
//! blocks, and traces with token usage.

use mlflow_api::ExperimentId;
use table::{ConsumedUnits, UsageMeter};
use test_site::ledger::{CostLedger, CostWithBackgroundWork, MeteredProcesses, budget};
use traces::store::Store;

use super::{body, counting, export, export_body, packed_searches, process, start, start_at};

/// A trace of ten spans with tokens, a session and English texts, as sent by stock clients.
const AGENT: &str = include_str!("../../../../../shared/language/spans/tests/fixtures/ten_spans.json");
/// The trace's id in the file, and its start in ms.
const AGENT_ID: &str = "4f1c8a2e9b7d43f0a6e5d2c1b0987f36";
const AGENT_TIME: i64 = 1_762_848_000_123;
/// Number of traces that are packed together.
const PACKED: u32 = 1_000;

async fn export_agent(store: &Store, experiment: ExperimentId, number: u32) {
    let body = AGENT.replace(AGENT_ID, &format!("{number:032x}"));
    export_body(store, experiment, body.as_bytes()).await;
}

/// Returns the usage of this many equal calls.
fn times(usage: &ConsumedUnits, calls: u32) -> ConsumedUnits {
    let units = |units: f64| units * f64::from(calls);
    ConsumedUnits {
        requests: usage.requests * calls,
        read_units: units(usage.read_units),
        write_units: units(usage.write_units),
        local_index_units: units(usage.local_index_units),
        global_index_units: units(usage.global_index_units),
        ..ConsumedUnits::default()
    }
}

/// Measures the total cost of a trace whose spans arrive in one request.
pub(crate) async fn all_in(ledger: &mut CostLedger) {
    ledger.section_all_in("A whole trace: its spans by OTLP, `StartTrace`, and packing (mean over 1,000)");
    for (call, request, own, all_in) in [
        ("a trace of ten spans and 5 KB", None, [4.0, 6.0, 2.0], 10.0),
        (
            "a trace of ten spans and 5 KB with a client request ID",
            Some(packed_searches::REQUESTED.1),
            [4.0, 7.0, 2.0],
            13.0,
        ),
    ] {
        let (bench, experiment) = super::bench().await;
        let meter = UsageMeter::default();
        let metered = || process(bench.table().metered(meter.clone())).prepared();
        // The process that receives the spans caches the trace, but the client's next request may
        // reach another process. Therefore these calls use two processes.
        let (takes_spans, starts) = (metered().await.unwrap(), metered().await.unwrap());
        let mut one = ConsumedUnits::default();
        // The first trace fills the processes' caches, and only the second one is measured.
        for number in [1, 2] {
            meter.take();
            export(&takes_spans, experiment, number, 0..10).await;
            start(&starts, experiment, number, request).await;
            one = meter.take();
        }
        let following = packed_searches::cost_of_packing(request).await;
        ledger.all_in(call, own, all_in, PACKED, &CostWithBackgroundWork { own: times(&one, PACKED), following });
    }
}

/// Measures traces with tokens and a session from MLflow's client.
pub(crate) async fn with_usage(ledger: &mut CostLedger, bench: &MeteredProcesses<Store>, experiment: ExperimentId) {
    // This export creates the day in the table, so that its creation is not measured.
    export_agent(&bench.store, experiment, 2_000).await;
    let agents = [2_001_u32, 2_002];
    ledger
        .row(
            "spans with tokens, a session and English texts, by OTLP",
            budget([4.0, 5.0, 2.0], [2.0, 5.0, 0.0]),
            bench,
            agents,
            async |store, number| export_agent(store, experiment, *number).await,
        )
        .await;
    ledger
        .row("then `StartTrace`", budget([3.0, 3.0, 2.0], [2.0, 3.0, 1.0]), bench, agents, async |store, number| {
            start_at(store, experiment, *number, None, AGENT_TIME).await;
        })
        .await;
    ledger
        .row(
            "ten spans one by one, each with tokens, by OTLP",
            budget([42.0, 25.0, 21.0], [40.0, 25.0, 20.0]),
            bench,
            [2_003_u32, 2_004],
            async |store, number| {
                for place in (1..10).chain([0]) {
                    let body = counting(&body(*number, place..place + 1));
                    export_body(store, experiment, &body).await;
                }
            },
        )
        .await;
}
