//! Expired traces are hidden, whether or not they have been removed.

use entities::now_ms;
use entities::trace_retention::TraceRetentionSetting;
use mlflow_api::proto_json::time_text;
use serde_json::{Value, json};

use crate::server::{ALL, Server, Site, TestResponse, id, info, span};
use crate::test_packer::{pack_all, pack_some};

pub(crate) const HOUR: i64 = 3_600_000;
const TAG: &str = "mlflow.trace.retention";

/// Creates a trace with a span and an assessment. The trace started `ago` ms before now.
pub(crate) async fn trace(server: &Server, number: u32, experiment: &str, ago: i64) {
    let began = now_ms() - ago;
    let mut root = span(number, 1, None, 0, 5);
    for (field, ms) in [("startTimeUnixNano", began), ("endTimeUnixNano", began + 5)] {
        root[field] = (ms * 1_000_000).to_string().into();
    }
    server.export_to(experiment, &[root]).await.ok();
    let mut started = info(number, experiment);
    started["request_time"] = time_text(began).into();
    started["trace_metadata"] = json!({ "mlflow.trace.session": "s" });
    server.start(&started).await.ok();
    let feedback = json!({ "assessment": {
        "assessment_name": "good", "feedback": { "value": true }, "metadata": { "mlflow.trace.session": "s" },
    } });
    server.call_at("POST", &format!("{ALL}/{}/assessments", id(number)), feedback.to_string()).await.ok();
}

pub(crate) async fn set_tag(server: &Server, experiment: &str, value: &str) {
    let tag = json!({ "experiment_id": experiment, "key": TAG, "value": value });
    server.post("experiments/set-experiment-tag", tag).await.ok();
}

/// Sends a GET to a path with its query.
async fn get(server: &Server, path: &str) -> TestResponse {
    server.call_at("GET", path, String::new()).await
}

/// Returns the numbers of the first three traces that are visible, for each of the endpoints that
/// read traces.
pub(crate) async fn shown(server: &Server, experiment: &str) -> Vec<(&'static str, Vec<u32>)> {
    let mut all = Vec::new();
    let by_id = async |path: &dyn Fn(u32) -> String| {
        let mut found = Vec::new();
        for number in 1..=3 {
            let answer = get(server, &path(number)).await;
            match answer.status {
                200 => found.push(number),
                _ => answer.missing(),
            }
        }
        found
    };
    all.push(("info", by_id(&|number| format!("{ALL}/{}", id(number))).await));
    all.push(("info of version 2", by_id(&|number| format!("/api/2.0/mlflow/traces/{}/info", id(number))).await));
    all.push(("get", by_id(&|number| format!("{ALL}/get?trace_id={}", id(number))).await));
    let file = |number| format!("/ajax-api/2.0/mlflow/get-trace-artifact?request_id={}", id(number));
    all.push(("artifact", by_id(&file).await));
    let numbers = |traces: &Value, id_of: &dyn Fn(&Value) -> Value| {
        let ids: Vec<_> = traces.as_array().into_iter().flatten().map(id_of).collect();
        (1..=3).filter(|number| ids.contains(&json!(id(*number)))).collect::<Vec<u32>>()
    };
    let ids = json!({ "trace_ids": (1..=3).map(id).collect::<Vec<_>>() });
    let infos = server.call_at("POST", &format!("{ALL}/batchGetInfos"), ids.to_string()).await.ok();
    all.push(("infos", numbers(&infos["trace_infos"], &|info| info["trace_id"].clone())));
    let asked: Vec<_> = (1..=3).map(|number| format!("trace_ids={}", id(number))).collect();
    let whole = get(server, &format!("{ALL}/batchGet?{}", asked.join("&"))).await.ok();
    all.push(("whole", numbers(&whole["traces"], &|trace| trace["trace_info"]["trace_id"].clone())));
    for (name, filter) in [
        ("search", ""),
        ("search by spans", "span.name = 'step 1'"),
        ("search by feedback", "feedback.good = 'true'"),
        ("search in another order", "status = 'OK'"),
    ] {
        let order = if name.ends_with("order") { json!(["timestamp_ms ASC"]) } else { json!([]) };
        let search = json!({
            "locations": [{ "mlflow_experiment": { "experiment_id": experiment } }], "filter": filter, "order_by": order,
        });
        let found = server.call_at("POST", &format!("{ALL}/search"), search.to_string()).await.ok();
        all.push((name, numbers(&found["traces"], &|trace| trace["trace_id"].clone())));
    }
    all
}

/// Returns the numbers of traces, spans and assessments that metrics report, and the number of
/// traces that a correlation covers.
async fn counted(server: &Server, experiment: &str) -> Vec<f64> {
    let mut all = Vec::new();
    for (view, metric) in [("TRACES", "trace_count"), ("SPANS", "span_count"), ("ASSESSMENTS", "assessment_count")] {
        let asked = json!({
            "experiment_ids": [experiment], "view_type": view, "metric_name": metric,
            "aggregations": [{ "aggregation_type": "COUNT" }],
        });
        let answer = server.call_at("POST", &format!("{ALL}/metrics"), asked.to_string()).await.ok();
        all.push(answer["data_points"][0]["values"]["COUNT"].as_f64().unwrap());
    }
    let asked =
        json!({ "experiment_ids": [experiment], "filter_string1": "status = 'OK'", "filter_string2": "status = 'OK'" });
    let answer = server.call_at("POST", &format!("{ALL}/calculate-filter-correlation"), asked.to_string()).await.ok();
    all.push(answer["total_count"].as_f64().unwrap());
    all
}

pub(crate) fn assert_shown(shown: Vec<(&'static str, Vec<u32>)>, expected: &[u32]) {
    for (name, found) in shown {
        assert_eq!(found, expected, "{name}");
    }
}

#[tokio::test]
async fn what_is_kept_no_longer_is_hidden_by_every_read_packed_or_not() {
    let site = Site::new().await;
    for (number, ago) in [(1, 40 * HOUR), (2, 2 * HOUR), (3, HOUR / 2)] {
        trace(&site.server, number, "0", ago).await;
    }
    for round in 0..3 {
        match round {
            0 => {}
            1 => pack_some(&site, 2, |place| place == 0).await,
            _ => pack_all(&site, 3).await,
        }
        let items = site.items().await.len();
        assert_shown(shown(&site.other().await, "0").await, &[1, 2, 3]);
        assert_eq!(counted(&site.other().await, "0").await, [3.0; 4]);
        set_tag(&site.server, "0", "1h").await;
        let server = site.other().await;
        assert_shown(shown(&server, "0").await, &[3]);
        assert_eq!(counted(&server, "0").await, [1.0; 4]);
        // After the policy is extended, traces that have not been removed yet are visible again.
        set_tag(&site.server, "0", "3h").await;
        let server = site.other().await;
        assert_shown(shown(&server, "0").await, &[2, 3]);
        assert_eq!(counted(&server, "0").await, [2.0; 4]);
        set_tag(&site.server, "0", "off").await;
        assert_shown(shown(&site.other().await, "0").await, &[1, 2, 3]);
        let named = u32::from(round == 0);
        assert_eq!(site.items().await.len(), items + usize::try_from(named).unwrap(), "the setting alone is new");
    }
}

#[tokio::test]
async fn what_is_hidden_cannot_be_changed_linked_or_deleted() {
    let site = Site::new().await;
    for (number, ago) in [(1, 2 * HOUR), (2, HOUR / 2)] {
        trace(&site.server, number, "0", ago).await;
    }
    set_tag(&site.server, "0", "1h").await;
    let server = site.other().await;
    let run = server.post("runs/create", json!({ "experiment_id": "0" })).await.ok()["run"]["info"]["run_id"].clone();
    let tag = json!({ "key": "k", "value": "v" });
    server.call("PATCH", &format!("traces/{}/tags", id(1)), tag).await.missing();
    let feedback = json!({ "assessment": { "assessment_name": "n", "feedback": { "value": 1 } } });
    server.call_at("POST", &format!("{ALL}/{}/assessments", id(1)), feedback.to_string()).await.missing();
    let prompts = json!({ "trace_id": id(1), "prompt_versions": [{ "name": "p", "version": "1" }] });
    server.post("traces/link-prompts", prompts).await.missing();
    server.post("traces/link-to-run", json!({ "trace_ids": [id(1), id(2)], "run_id": run })).await.ok();
    let delete = async |asked: Value| server.post("traces/delete-traces", asked).await.ok()["traces_deleted"].clone();
    assert_eq!(delete(json!({ "experiment_id": "0", "request_ids": [id(1)] })).await, 0);
    // The oldest visible trace is deleted first.
    let all = json!({ "experiment_id": "0", "max_timestamp_millis": now_ms(), "max_traces": 1 });
    assert_eq!(delete(all.clone()).await, 1);
    assert_eq!(delete(all).await, 0);
    set_tag(&site.server, "0", "off").await;
    let left = site.other().await.info(1).await;
    assert!(left["tags"].get("k").is_none() && left["assessments"].as_array().unwrap().len() == 1, "{left}");
}

#[tokio::test]
async fn an_experiment_may_say_otherwise_than_the_server() {
    let site = Site::new().await;
    let created = json!({ "name": "own", "tags": [{ "key": TAG, "value": "3h" }] });
    let own = site.server.post("experiments/create", created).await.ok()["experiment_id"].as_str().unwrap().to_owned();
    let forever = site.server.experiment("forever").await;
    set_tag(&site.server, &forever, "off").await;
    for (number, experiment) in [(1, "0"), (2, own.as_str()), (3, forever.as_str())] {
        trace(&site.server, number, experiment, 2 * HOUR).await;
    }
    let infos = async || {
        let (server, mut found) = (site.other().await, Vec::new());
        for number in 1..=3 {
            let answer = server.get_at(&format!("{ALL}/{}", id(number)), &[]).await;
            found.extend((answer.status == 200).then_some(number));
        }
        found
    };
    for (kept, expected) in [(None, vec![1, 2, 3]), (Some("1h"), vec![2, 3]), (Some("off"), vec![1, 2, 3])] {
        TraceRetentionSetting::write(&site.table, kept).await.unwrap();
        assert_eq!(infos().await, expected, "{kept:?}");
    }
    TraceRetentionSetting::write(&site.table, Some("1h")).await.unwrap();
    for experiment in [&own, &forever] {
        let tag = json!({ "experiment_id": experiment, "key": TAG });
        site.server.post("experiments/delete-experiment-tag", tag).await.ok();
    }
    assert_eq!(infos().await, Vec::<u32>::new());
    assert!(TraceRetentionSetting::write(&site.table, Some("1w")).await.is_err());
}

#[tokio::test]
async fn tags_that_say_no_time_are_refused() {
    let site = Site::new().await;
    for value in ["", "1w", "0d", "30"] {
        let tag = json!({ "experiment_id": "0", "key": TAG, "value": value });
        let refused = site.server.post("experiments/set-experiment-tag", tag).await;
        let message = refused.refused(400, "INVALID_PARAMETER_VALUE");
        assert!(message.starts_with("Trace retention must be 'off'"), "{message}");
    }
    let created = json!({ "name": "new", "tags": [{ "key": TAG, "value": "soon" }] });
    site.server.post("experiments/create", created).await.refused(400, "INVALID_PARAMETER_VALUE");
}

#[tokio::test]
async fn what_nobody_can_read_is_not_shown() {
    let site = Site::new().await;
    trace(&site.server, 1, "0", HOUR).await;
    let row = table::Item::new(key_schema::rows::Config::key(&"trace_ttl_policy".into()));
    site.table.put(row.with("kept_for", table::text("soon")), &table::Condition::Always).await.unwrap();
    let server = site.other().await;
    assert_eq!(server.get_at(&format!("{ALL}/{}", id(1)), &[]).await.status, 500);
}
