//! Searches of traces that change.

use serde_json::{Value, json};

use crate::marks::timed;
use crate::server::{ALL, Site, id, info, span};
use crate::test_packer::pack_all;

#[tokio::test]
async fn a_trace_that_begins_at_another_time_is_found_once_and_at_that_time() {
    let site = Site::new().await;
    let server = &site.server;
    for number in 1..=5_u32 {
        server.export(&[span(number, 1, None, u64::from(number) * 10, 1_000)]).await.ok();
    }
    // The third trace is moved to a day later, so that it is the newest. The fourth trace is moved
    // before all others.
    for (number, time) in [(3, "2023-11-15T23:00:00.000Z"), (4, "2023-11-13T00:00:00.000Z")] {
        let mut info = info(number, "0");
        info["request_time"] = time.into();
        server.start(&info).await.ok();
    }
    let order = [3, 5, 2, 1, 4].map(id);
    for page in [1, 2, 500] {
        assert_eq!(server.found(&["0"], "", "", page).await, order, "{page}");
    }
    assert_eq!(
        server.found(&["0"], "timestamp > 1700000000000 AND timestamp < 1700000000050", "", 500).await,
        [id(2), id(1)]
    );
    assert_eq!(server.found(&["0"], "timestamp < 1700000000000", "", 500).await, [id(4)]);
}

#[tokio::test]
async fn another_process_finds_what_was_written_and_deleted() {
    let site = Site::new().await;
    let (server, other) = (&site.server, site.other().await);
    for number in 1..=3 {
        server.export(&[span(number, 1, None, 0, 10)]).await.ok();
    }
    assert_eq!(other.found(&["0"], "span.name = 'step 1'", "", 500).await, [1, 2, 3].map(id));
    let path = format!("/api/3.0/mlflow/traces/{}/tags", id(2));
    server.call_at("PATCH", &path, json!({ "key": "team", "value": "search" }).to_string()).await.ok();
    assert_eq!(other.found(&["0"], "tag.team = 'search'", "", 500).await, [id(2)]);
    let body = json!({ "experiment_id": "0", "request_ids": [id(2)] });
    server.call_at("POST", "/api/3.0/mlflow/traces/delete-traces", body.to_string()).await.ok();
    assert_eq!(other.found(&["0"], "", "", 500).await, [id(1), id(3)]);
}

#[tokio::test]
async fn an_assessment_of_a_session_counts_for_all_of_its_traces_until_it_is_gone() {
    let site = Site::new().await;
    let server = &site.server;
    for (number, session) in [(1, "s"), (2, "s"), (3, "t")] {
        let mut info = info(number, "0");
        info["trace_metadata"] = json!({ "mlflow.trace.session": session });
        server.start(&info).await.ok();
    }
    let assessments = format!("/api/3.0/mlflow/traces/{}/assessments", id(1));
    let assessment = json!({
        "assessment_name": "good", "feedback": { "value": true }, "metadata": { "mlflow.trace.session": "s" },
    });
    let made = server.call_at("POST", &assessments, json!({ "assessment": assessment }).to_string()).await.ok();
    assert_eq!(server.found(&["0"], "feedback.good = 'true'", "", 500).await, [1, 2].map(id));
    assert_eq!(server.found(&["0"], "feedback.good IS NULL", "", 500).await, [id(3)]);
    let made = made["assessment"]["assessment_id"].as_str().unwrap();
    server.call_at("DELETE", &format!("{assessments}/{made}"), Value::Null.to_string()).await.ok();
    assert_eq!(server.found(&["0"], "feedback.good IS NOT NULL", "", 500).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_search_reads_no_further_than_its_times() {
    let site = Site::new().await;
    let spans: Vec<_> = (1..=300).map(|number| span(number, 1, None, u64::from(number) * 10, 10_000)).collect();
    site.server.export(&spans).await.ok();
    site.faults.reset_calls();
    assert_eq!(site.server.found(&["0"], "timestamp > 1700000002970", "", 10).await, [300, 299, 298].map(id));
    // The three queries are for the days, for the first marks, and for blocks in this range.
    assert_eq!(site.faults.calls("Query"), 3);
}

/// Texts are found in the form in which the page shows them, both in documents and in blocks. It
/// does not matter how the sender escaped them in JSON.
#[test]
fn texts_are_found_without_the_escapes_of_json() {
    timed(unescaped());
}

async fn unescaped() {
    let site = Site::new().await;
    let (number, other) = (1, 2);
    // The text in three forms: as written by Python's `json.dumps`, as written by most other
    // languages, and as JSON within JSON.
    let inputs = [
        r#"{"question": "Eine \u00dcbung: \"yes\"\nor no?", "path": "C:\\new"}"#.to_owned(),
        json!({ "question": "Eine Übung: \"yes\"\nor no?", "path": "C:\\new" }).to_string(),
        json!({ "arguments": r#"{"question": "Eine \u00dcbung: \"yes\"\nor no?", "path": "C:\\new"}"# }).to_string(),
    ];
    for (place, inputs) in (0..).zip(&inputs) {
        let mut span = span(number + 10 * place, 1, None, 0, 7);
        span["attributes"] = json!([
            { "key": "mlflow.spanInputs", "value": { "stringValue": inputs } },
            { "key": "city", "value": { "stringValue": "Köln" } },
        ]);
        site.server.export(&[span]).await.ok();
        let feedback = json!({ "assessment": { "assessment_name": "note", "feedback": { "value": "süß \"so\"" } } });
        let path = format!("{ALL}/{}/assessments", id(number + 10 * place));
        site.server.call_at("POST", &path, feedback.to_string()).await.ok();
    }
    site.server.export(&[span(other, 1, None, 0, 7)]).await.ok();
    let all: Vec<_> = [1, 11, 21].map(id).into();
    runtime::clock::sleep(std::time::Duration::from_mins(2)).await;
    for round in ["in documents", "in blocks"] {
        for filter in [
            "trace.text LIKE '%Übung%'",
            "trace.text ILIKE '%ÜBUNG: \"YES\"%'",
            "trace.text LIKE '%\"yes\"\nor no?%'",
            "trace.text LIKE '%\"question\"%\"Eine%'",
            "trace.text LIKE '%C:\\new%'",
            "span.attributes.mlflow.spanInputs LIKE '%Übung%'",
            "span.attributes.city RLIKE '^K.ln$'",
            "span.attributes.city ILIKE '%KÖLN%'",
            "feedback.note LIKE '%süß \"so\"%'",
            "feedback.note ILIKE '%SÜ%'",
            // As in MLflow, escaped text does not match.
            "feedback.note LIKE '%\\u00fc%'",
        ] {
            let mut found = site.server.found(&["0"], filter, "", 100).await;
            found.sort();
            assert_eq!(found, all, "{filter}, {round}");
        }
        for filter in ["trace.text LIKE '%u00dc%'", "trace.text LIKE '%yes nor%'", "feedback.note LIKE '%u00fc%'"] {
            assert_eq!(site.server.found(&["0"], filter, "", 100).await, [""; 0], "{filter}, {round}");
        }
        pack_all(&site, 40).await;
    }
}
