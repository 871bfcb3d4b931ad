//! Requests that are rejected and write nothing.

use serde_json::{Value, json};

use super::{call, create, log_params, set_tags};
use crate::server::Site;

#[tokio::test]
async fn what_is_not_there_is_not_made() {
    let site = Site::new().await;
    let experiment = site.server.experiment("models").await;
    let model = create(&site.server, json!({ "experiment_id": experiment })).await.replace("m-0", "m-1");
    let before = site.dump().await;
    for id in [model.as_str(), "m-f47ac10b58cc4372a5670e02b2c3d479", "nope", "a%23b"] {
        for (method, path) in [
            ("GET", String::new()),
            ("DELETE", String::new()),
            ("DELETE", "/tags/t".to_owned()),
            ("GET", "/artifacts/directories".to_owned()),
        ] {
            call(&site.server, method, &format!("/{id}{path}"), json!({}))
                .await
                .refused(404, "RESOURCE_DOES_NOT_EXIST");
        }
        for value in ["v", &"v".repeat(3_000)] {
            let entries = json!([{ "key": "k", "value": value }]);
            set_tags(&site.server, id, entries.clone()).await.refused(404, "RESOURCE_DOES_NOT_EXIST");
            log_params(&site.server, id, entries).await.refused(404, "RESOURCE_DOES_NOT_EXIST");
        }
        let finalize = json!({ "model_id": id, "status": 2 });
        call(&site.server, "PATCH", &format!("/{id}"), finalize).await.refused(404, "RESOURCE_DOES_NOT_EXIST");
    }
    site.server.post("experiments/delete", json!({ "experiment_id": experiment })).await.ok();
    let after_deletion = site.dump().await;
    let new = json!({ "experiment_id": experiment });
    call(&site.server, "POST", "", new).await.refused_as_deleted();
    assert_eq!(site.dump().await, after_deletion);
    assert_eq!(before.len(), after_deletion.len());
}

#[tokio::test]
async fn malformed_requests_leave_no_trace() {
    let site = Site::new().await;
    let server = &site.server;
    let experiment = server.experiment("models").await;
    let model = create(server, json!({ "experiment_id": experiment, "params": [{ "key": "p", "value": "v" }] })).await;
    let before = site.dump().await;
    let odd = ["", "..", "a#b", "\u{0}", "é", "' OR 1", "m-", "$~", &"x".repeat(5_000)].map(Value::from);
    let odd: Vec<_> = odd.into_iter().chain([json!(7), json!([[]]), json!({ "a": {} }), json!([null])]).collect();
    for value in &odd {
        for search in [
            json!({ "experiment_ids": value }),
            json!({ "experiment_ids": [value] }),
            json!({ "experiment_ids": [experiment], "filter": value }),
            json!({ "experiment_ids": [experiment], "page_token": value }),
            json!({ "experiment_ids": [experiment], "order_by": [{ "field_name": value }] }),
            json!({ "experiment_ids": [experiment], "datasets": [{ "dataset_name": value, "dataset_digest": value }] }),
        ] {
            let answer = call(server, "POST", "/search", search.clone()).await;
            assert!([200, 400].contains(&answer.status), "{search} {answer:?}");
        }
        let finalize = json!({ "model_id": value, "status": 2 });
        let answer = call(server, "PATCH", &format!("/{model}"), finalize).await;
        assert!([400, 404].contains(&answer.status), "{value} {answer:?}");
    }
    let differing = json!([{ "key": "new", "value": "v" }, { "key": "p", "value": "w" }]);
    log_params(server, &model, differing).await.refused(400, "BAD_REQUEST");
    let twice = json!([{ "key": "a", "value": "v" }, { "key": "a", "value": "v" }]);
    log_params(server, &model, twice.clone()).await.refused(400, "BAD_REQUEST");
    for new in [
        json!({ "experiment_id": experiment, "params": twice }),
        json!({ "experiment_id": experiment, "tags": twice }),
        json!({ "experiment_id": experiment, "name": "a/b" }),
        json!({ "experiment_id": "x" }),
    ] {
        assert_eq!(call(server, "POST", "", new.clone()).await.status, 400, "{new}");
    }
    assert_eq!(site.dump().await, before);
}
