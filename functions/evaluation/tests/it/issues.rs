//! Issues: concurrent changes, long texts, and the numbers of their traces.

use futures::future::join_all;
use serde_json::{Value, json};

use crate::evaluation_datasets::{call, noise};
use crate::reviews::{delete_traces, trace};
use crate::server::{Server, Site};

fn new(experiment: &str, name: &str) -> Value {
    json!({ "experiment_id": experiment, "name": name, "description": "d" })
}

async fn create(server: &Server, body: &Value) -> String {
    let created = call(server, "POST", "issues", body).await.ok();
    created["issue"]["issue_id"].as_str().unwrap().to_owned()
}

async fn get(server: &Server, issue: &str) -> Value {
    call(server, "GET", &format!("issues/{issue}"), &json!({})).await.ok()["issue"].clone()
}

async fn search(server: &Server, experiment: &str, more: &Value) -> Value {
    let mut body = json!({ "experiment_id": experiment });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    call(server, "POST", "issues/search", &body).await.ok()
}

async fn trace_count(server: &Server, experiment: &str) -> i64 {
    search(server, experiment, &json!({ "include_trace_count": true })).await["issues"][0]["trace_count"]
        .as_i64()
        .unwrap()
}

async fn rows(site: &Site, beginning: &str) -> usize {
    site.dump().await.into_keys().filter(|key| key.contains(beginning)).count()
}

#[tokio::test]
async fn metadata_is_merged_per_key_whatever_is_lost() {
    let site = Site::new().await;
    let experiment = site.server.experiment("e").await;
    let server = &site.server;
    let issue = create(server, &new(&experiment, "wrong")).await;
    site.faults.refuse_every(13);
    site.faults.lose_answer_every(7);
    let issue = issue.as_str();
    join_all((0..6).map(|number| async move {
        let change =
            json!({ "issue_id": issue, "metadata": { format!("k{number}"): "v" }, "last_seen_timestamp": 5_000_000_000_000_i64 - number });
        call(server, "PATCH", &format!("issues/{issue}"), &change).await.ok();
    }))
    .await;
    site.faults.refuse_every(0);
    site.faults.lose_answer_every(0);
    let found = get(server, issue).await;
    assert_eq!(found["metadata"].as_object().unwrap().len(), 6);
    assert_eq!(found["last_seen_timestamp"], 5_000_000_000_000_i64);
}

#[tokio::test]
async fn an_id_is_taken_once() {
    let site = Site::new().await;
    let (one, other) = (site.server.experiment("one").await, site.server.experiment("other").await);
    site.faults.lose_answer_every(5);
    let server = &site.server;
    let own = create(server, &new(&one, "own")).await;
    for id in ["iss-chosen", own.as_str()] {
        let bodies = [&one, &other, &one].map(|experiment| {
            let mut body = new(experiment, "n");
            body["issue_id"] = id.into();
            body
        });
        let statuses =
            join_all(bodies.iter().map(|body| async move { call(server, "POST", "issues", body).await.status }));
        let created = statuses.await.into_iter().filter(|status| *status == 200).count();
        assert_eq!(created, usize::from(id == "iss-chosen"), "{id}");
        assert_eq!(get(server, id).await["issue_id"], id);
    }
    call(server, "GET", "issues/iss-other", &json!({})).await.refused(404, "RESOURCE_DOES_NOT_EXIST");
}

#[tokio::test]
async fn long_texts_are_replaced_with_their_parts() {
    let site = Site::new().await;
    let experiment = site.server.experiment("e").await;
    let server = &site.server;
    let mut body = new(&experiment, "long");
    let long = noise(1, 700_000);
    body["description"] = long.as_str().into();
    let issue = create(server, &body).await;
    assert!(rows(&site, "ISSUEDATA#").await > 1);
    assert_eq!(get(server, &issue).await["description"], long);
    let other = noise(2, 600_000);
    call(server, "PATCH", &format!("issues/{issue}"), &json!({ "issue_id": issue, "description": other })).await.ok();
    assert_eq!(search(server, &experiment, &json!({})).await["issues"][0]["description"], other);
    let basic = search(server, &experiment, &json!({ "view": "basic" })).await;
    assert_eq!(basic["issues"][0]["description"], "");
    call(server, "PATCH", &format!("issues/{issue}"), &json!({ "issue_id": issue, "description": "short" })).await.ok();
    assert_eq!(rows(&site, "ISSUEDATA#").await, 1);
    let large = json!({ "issue_id": issue, "description": noise(3, (1 << 20) + 1) });
    call(server, "PATCH", &format!("issues/{issue}"), &large).await.refused(400, "BAD_REQUEST");
}

#[tokio::test]
async fn traces_are_counted_once_and_until_they_are_gone() {
    let site = Site::new().await;
    let experiment = site.server.experiment("e").await;
    let server = &site.server;
    let issue = create(server, &new(&experiment, "wrong")).await;
    let traces = [trace(server, &experiment, 1).await, trace(server, &experiment, 2).await];
    site.faults.lose_answer_every(3);
    for (number, trace) in [(1, &traces[0]), (2, &traces[0]), (3, &traces[1])] {
        let said = json!({
            "assessment_id": format!("a-{number}"), "assessment_name": issue, "issue": { "issue_name": "wrong" },
        });
        call(server, "POST", &format!("traces/{trace}/assessments"), &json!({ "assessment": said })).await.ok();
    }
    assert_eq!(trace_count(server, &experiment).await, 2);
    let delete = async |trace: String, id: &'static str| {
        call(server, "DELETE", &format!("traces/{trace}/assessments/{id}"), &json!({})).await.ok();
    };
    delete(traces[0].clone(), "a-1").await;
    assert_eq!(trace_count(server, &experiment).await, 2);
    delete(traces[0].clone(), "a-2").await;
    assert_eq!(trace_count(server, &experiment).await, 1);
    let renamed = json!({ "assessment": { "assessment_name": "iss-other" }, "update_mask": "assessmentName" });
    call(server, "PATCH", &format!("traces/{}/assessments/a-3", traces[1]), &renamed).await.ok();
    assert_eq!(trace_count(server, &experiment).await, 0);
    let back = json!({ "assessment": { "assessment_name": issue }, "update_mask": "assessmentName" });
    call(server, "PATCH", &format!("traces/{}/assessments/a-3", traces[1]), &back).await.ok();
    assert_eq!(trace_count(server, &experiment).await, 1);
    delete_traces(server, &experiment, &[&traces[1]]).await;
    assert_eq!(trace_count(server, &experiment).await, 0);
}

#[tokio::test]
async fn pages_of_every_order_have_all_issues_once() {
    let site = Site::new().await;
    let experiment = site.server.experiment("e").await;
    let server = &site.server;
    for number in 0..11 {
        let mut body = new(&experiment, &format!("issue {}", number % 4));
        body["severity"] = ["low", "high", "medium"][number % 3].into();
        if number % 2 == 0 {
            body["categories"] = json!(["Latency "]);
        }
        create(server, &body).await;
    }
    for order in [json!([]), json!(["name"]), json!(["severity DESC", "created_timestamp"])] {
        let whole = search(server, &experiment, &json!({ "order_by": order })).await["issues"].clone();
        let (mut paged, mut token) = (Vec::new(), json!(""));
        while paged.len() < 11 {
            let more = json!({ "order_by": order, "max_results": 4, "page_token": token, "include_total_count": true });
            let page = search(server, &experiment, &json!(more)).await;
            assert_eq!(page["total_count"], 11);
            paged.extend(page["issues"].as_array().unwrap().clone());
            token = page["next_page_token"].clone();
        }
        assert_eq!(whole.as_array().unwrap(), &paged);
        assert_eq!(token, "");
    }
    let found = search(server, &experiment, &json!({ "categories": ["latency"], "severities": ["high"] })).await;
    assert_eq!(found["issues"].as_array().unwrap().len(), 2);
}
