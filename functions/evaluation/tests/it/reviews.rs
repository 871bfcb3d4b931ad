//! Label schemas and review queues, over a table that throttles requests and loses responses.

use std::collections::BTreeSet;

use futures::future::join_all;
use serde_json::{Value, json};

use crate::evaluation_datasets::call;
use crate::server::{Server, Site};

/// Starts a trace in an experiment.
pub(crate) async fn trace(server: &Server, experiment: &str, number: u32) -> String {
    let id = format!("tr-{number:032x}");
    let info = json!({
        "trace_id": id,
        "trace_location": { "type": "MLFLOW_EXPERIMENT", "mlflow_experiment": { "experiment_id": experiment } },
        "request_time": "2023-11-14T22:13:20Z", "state": "OK",
    });
    call(server, "POST", "traces", &json!({ "trace": { "trace_info": info } })).await.ok();
    id
}

pub(crate) async fn delete_traces(server: &Server, experiment: &str, traces: &[&str]) {
    let gone = json!({ "experiment_id": experiment, "request_ids": traces });
    call(server, "POST", "traces/delete-traces", &gone).await.ok();
}

fn schema(experiment: &str, name: &str) -> Value {
    json!({ "experiment_id": experiment, "name": name, "type": "FEEDBACK", "input": { "text": {} } })
}

async fn queue(server: &Server, experiment: &str, name: &str) -> String {
    let new = json!({ "experiment_id": experiment, "name": name, "queue_type": "CUSTOM", "users": ["ann"] });
    let created = call(server, "POST", "review-queues/create", &new).await.ok();
    created["review_queue"]["queue_id"].as_str().unwrap().to_owned()
}

async fn add(server: &Server, queue: &str, traces: &[String]) -> Value {
    let items = json!({ "queue_id": queue, "item_ids": traces });
    call(server, "POST", "review-queues/items/add", &items).await.ok()["items"].clone()
}

async fn items(server: &Server, queue: &str) -> Vec<String> {
    let arguments = [("queue_id", queue)];
    let found = server.get_at("/api/3.0/mlflow/review-queues/items/list", &arguments).await.ok();
    let items = found["items"].as_array().cloned().unwrap_or_default();
    items.iter().map(|item| item["item_id"].as_str().unwrap().to_owned()).collect()
}

async fn queues_of(server: &Server, experiment: &str, trace: &str) -> usize {
    let arguments = [("experiment_id", experiment), ("item_id", trace)];
    let found = server.get_at("/api/3.0/mlflow/review-queues/list", &arguments).await.ok();
    found["review_queues"].as_array().map_or(0, Vec::len)
}

/// Returns the keys of rows of review queues.
async fn rows(site: &Site) -> BTreeSet<String> {
    let all = site.dump().await.into_keys();
    all.filter(|key| key.contains("RQ#") || key.contains("RQNAME#") || key.contains("REVIEWED#")).collect()
}

#[tokio::test]
async fn a_name_is_taken_once_whatever_is_lost() {
    let site = Site::new().await;
    let experiment = site.server.experiment("e").await;
    site.faults.refuse_every(9);
    site.faults.lose_answer_every(7);
    let (server, experiment) = (&site.server, experiment.as_str());
    let schemas = join_all((0..6).map(|_| async {
        let body = schema(experiment, "shared");
        call(server, "POST", "label-schemas/create", &body).await.status
    }));
    let schemas = schemas.await;
    assert_eq!(schemas.iter().filter(|status| **status == 200).count(), 1, "{schemas:?}");
    let own = join_all((0..6).map(|number| async move {
        let body = json!({ "experiment_id": experiment, "user": if number % 2 == 0 { "ann" } else { " ANN" } });
        let found = call(server, "POST", "review-queues/get-or-create-user", &body).await.ok();
        found["review_queue"]["queue_id"].to_string()
    }));
    let own: BTreeSet<_> = own.await.into_iter().collect();
    assert_eq!(own.len(), 1);
    site.faults.refuse_every(0);
    site.faults.lose_answer_every(0);
    let body = json!({ "experiment_id": experiment, "name": "ANN", "queue_type": "CUSTOM" });
    call(server, "POST", "review-queues/create", &body).await.refused(400, "RESOURCE_ALREADY_EXISTS");
}

#[tokio::test]
async fn the_default_schema_needs_no_row() {
    let site = Site::new().await;
    let experiment = site.server.experiment("e").await;
    let before = site.dump().await;
    let arguments = [("experiment_id", experiment.as_str())];
    let path = "/api/3.0/mlflow/label-schemas/list";
    let listed = site.server.get_at(path, &arguments).await.ok();
    assert_eq!(listed["label_schemas"].as_array().map(Vec::len), Some(1));
    assert!(site.changes(&before).await.is_empty());
    for number in 0..3 {
        call(&site.server, "POST", "label-schemas/create", &schema(&experiment, &format!("q{number}"))).await.ok();
    }
    // With each page size, the list contains the three schemas and, as the last one, the default
    // schema.
    for size in ["1", "2", "3", "4", "5"] {
        let (mut names, mut token) = (Vec::new(), String::new());
        loop {
            let arguments =
                [("experiment_id", experiment.as_str()), ("max_results", size), ("page_token", token.as_str())];
            let page = site.server.get_at(path, &arguments).await.ok();
            let schemas = page["label_schemas"].as_array().unwrap();
            names.extend(schemas.iter().map(|schema| schema["name"].as_str().unwrap().to_owned()));
            token = page["next_page_token"].as_str().unwrap().to_owned();
            if token.is_empty() {
                break;
            }
        }
        assert_eq!(names.last().map(String::as_str), Some("Feedback"), "{size}");
        assert_eq!(names.into_iter().collect::<BTreeSet<_>>().len(), 4, "{size}");
    }
}

#[tokio::test]
async fn items_are_added_and_removed_whatever_is_lost() {
    let site = Site::new().await;
    let experiment = site.server.experiment("e").await;
    let (server, experiment) = (&site.server, experiment.as_str());
    let traces = join_all((0..120).map(|number| trace(server, experiment, number))).await;
    let queue = queue(server, experiment, "q").await;
    site.faults.refuse_every(11);
    site.faults.lose_answer_every(7);
    let adding = (0..4).map(|part| add(server, &queue, &traces[part * 20..part * 20 + 60]));
    for (part, added) in join_all(adding).await.into_iter().enumerate() {
        let ids: Vec<_> = added.as_array().unwrap().iter().map(|item| item["item_id"].as_str().unwrap()).collect();
        assert_eq!(ids, traces[part * 20..part * 20 + 60].iter().map(String::as_str).collect::<Vec<_>>());
    }
    assert_eq!(items(server, &queue).await.into_iter().collect::<BTreeSet<_>>().len(), 120);
    let removing = [&traces[..60], &traces[40..70]];
    let queue = queue.as_str();
    join_all(removing.map(|part| async move {
        let body = json!({ "queue_id": queue, "item_ids": part });
        call(server, "POST", "review-queues/items/remove", &body).await.ok();
    }))
    .await;
    assert_eq!(items(server, queue).await.len(), 50);
    assert_eq!(
        (queues_of(server, experiment, &traces[0]).await, queues_of(server, experiment, &traces[119]).await),
        (0, 1)
    );
}

#[tokio::test]
async fn the_first_to_set_a_status_is_kept() {
    let site = Site::new().await;
    let experiment = site.server.experiment("e").await;
    let (server, experiment) = (&site.server, experiment.as_str());
    let traces = [trace(server, experiment, 1).await];
    let queue = queue(server, experiment, "q").await;
    add(server, &queue, &traces).await;
    site.faults.lose_answer_every(3);
    let (queue, traces) = (&queue, &traces);
    let set = |user: String| async move {
        let body = json!({ "queue_id": queue, "item_id": traces[0], "status": "COMPLETE", "completed_by": user });
        call(server, "POST", "review-queues/items/set-status", &body).await.ok()["item"]["completed_by"].to_string()
    };
    let by: BTreeSet<_> = join_all((0..6).map(|user| set(format!("user{user}")))).await.into_iter().collect();
    assert_eq!(by.len(), 1, "{by:?}");
    assert_eq!(by, BTreeSet::from([set("late".to_owned()).await]));
}

#[tokio::test]
async fn questions_are_locked_while_items_are_there() {
    let site = Site::new().await;
    let experiment = site.server.experiment("e").await;
    let (server, experiment) = (&site.server, experiment.as_str());
    let created = call(server, "POST", "label-schemas/create", &schema(experiment, "q")).await.ok();
    let id = created["label_schema"]["schema_id"].clone();
    let traces = [trace(server, experiment, 1).await];
    for round in 0..10 {
        let queue = queue(server, experiment, &format!("q{round}")).await;
        let change = json!({ "queue_id": queue, "update_schema_ids": true, "schema_ids": [id] });
        let (changed, _) =
            futures::future::join(call(server, "POST", "review-queues/update", &change), add(server, &queue, &traces))
                .await;
        // Either the questions of the queue were changed before the item was added, or the change
        // was rejected.
        let stored = server.get_at("/api/3.0/mlflow/review-queues/get", &[("queue_id", &queue)]).await.ok();
        let has_schema = stored["review_queue"]["schema_ids"].as_array().is_some_and(|ids| ids.len() == 1);
        assert_eq!(changed.status == 200, has_schema);
        let refused = json!({ "queue_id": queue, "update_schema_ids": true, "schema_ids": [] });
        call(server, "POST", "review-queues/update", &refused).await.refused(400, "INVALID_PARAMETER_VALUE");
    }
}

#[tokio::test]
async fn items_go_with_their_traces_and_queues() {
    let site = Site::new().await;
    let experiment = site.server.experiment("e").await;
    let (server, experiment) = (&site.server, experiment.as_str());
    let traces = join_all((0..30).map(|number| trace(server, experiment, number))).await;
    // Creates more queues than fit into the transaction that deletes a trace.
    let queues =
        join_all((0..25).map(|number| async move { queue(server, experiment, &format!("q{number}")).await })).await;
    join_all(queues.iter().map(|queue| add(server, queue, &traces[..2]))).await;
    add(server, &queues[0], &traces).await;
    site.faults.lose_answer_every(5);
    let gone: Vec<_> = traces[..29].iter().map(String::as_str).collect();
    delete_traces(server, experiment, &gone).await;
    site.faults.lose_answer_every(0);
    assert_eq!(items(server, &queues[0]).await, traces[29..]);
    assert!(items(server, &queues[1]).await.is_empty());
    for queue in &queues {
        call(server, "POST", "review-queues/delete", &json!({ "queue_id": queue })).await.ok();
    }
    // Only the row of the trace that still exists is left.
    let left = rows(&site).await;
    assert!(left.len() == 1 && left.iter().all(|key| key.contains("REVIEWED#")), "{left:?}");
    delete_traces(server, experiment, &[&traces[29]]).await;
    assert!(rows(&site).await.is_empty());
}

#[tokio::test]
async fn traces_that_are_deleted_while_they_are_added_leave_no_items() {
    let site = Site::new().await;
    let experiment = site.server.experiment("e").await;
    let (server, experiment) = (&site.server, experiment.as_str());
    let queue = queue(server, experiment, "q").await;
    for round in 0..20 {
        let traces = [trace(server, experiment, round).await];
        let items = json!({ "queue_id": queue, "item_ids": traces });
        futures::future::join(
            call(server, "POST", "review-queues/items/add", &items),
            delete_traces(server, experiment, &[&traces[0]]),
        )
        .await;
    }
    assert!(items(server, &queue).await.is_empty());
}
