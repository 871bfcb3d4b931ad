//! Concurrent writes while the table fails, and large documents.

use std::collections::BTreeMap;

use futures::future::join_all;
use serde_json::{Value, json};

use super::{call, create, log_params, names, point, read, set_tags, steps};
use crate::server::{Site, by_key};

#[tokio::test]
async fn many_at_once_while_the_table_fails() {
    // A request is sent up to ten times. Even if every fifth attempt fails, it is unlikely that all
    // attempts of a request fail by chance.
    for &(refuse, lose) in &[(5, 0), (0, 5), (10, 0), (0, 7)][..if test_site::all_troubles() { 4 } else { 2 }] {
        let site = Site::new().await;
        site.faults.refuse_every(refuse);
        site.faults.lose_answer_every(lose);
        let server = &site.server;
        let experiment = server.experiment("models").await;
        let shared = create(server, json!({ "experiment_id": experiment, "name": "shared" })).await;
        let (experiment, shared) = (experiment.as_str(), shared.as_str());
        let made = join_all((0..8_i64).map(|task| async move {
            let params = json!([{ "key": "p", "value": "v".repeat(2_000) }, { "key": "q", "value": task.to_string() }]);
            let new = json!({ "experiment_id": experiment, "name": format!("n{task}"), "source_run_id": "r", "params": params });
            let model = create(server, new).await;
            for round in 0..6 {
                let tags = json!([{ "key": "last", "value": round.to_string() }, { "key": "big", "value": "w".repeat(1_100) }]);
                set_tags(server, &model, tags).await.ok();
                set_tags(server, shared, json!([{ "key": format!("t{task}"), "value": round.to_string() }])).await.ok();
                log_params(server, shared, json!([{ "key": format!("p{task}.{round}"), "value": "x" }])).await.ok();
                let step = task * 100 + round;
                let points = [point(&model, "own", (step, step, 1.0)), point(shared, "all", (step, step, 1.0))];
                server.store.logged_model_log_metrics(&points).await.unwrap();
            }
            call(server, "DELETE", &format!("/{model}/tags/big"), json!({})).await.ok();
            call(server, "PATCH", &format!("/{model}"), json!({ "model_id": model, "status": 2 })).await.ok();
            if task % 2 == 1 {
                call(server, "DELETE", &format!("/{model}"), json!({})).await.ok();
            }
            model
        }))
        .await;
        site.faults.refuse_every(0);
        site.faults.lose_answer_every(0);

        let found = read(server, shared).await;
        assert_eq!(by_key(&found["info"]["tags"]).len(), 8);
        assert_eq!(by_key(&found["data"]["params"]).len(), 48);
        let expected: Vec<_> = (0..8).flat_map(|task| (0..6).map(move |round| task * 100 + round)).collect();
        assert_eq!(steps(server, shared).await["all"], expected);
        for (task, model) in made.iter().enumerate() {
            let found = read(server, model).await;
            assert_eq!(found["info"]["status"], "LOGGED_MODEL_READY");
            assert_eq!(by_key(&found["info"]["tags"]), BTreeMap::from([("last".to_owned(), json!("5"))]));
            assert_eq!(by_key(&found["data"]["params"])["q"], task.to_string());
            assert_eq!(steps(server, model).await["own"].len(), 6);
        }
        for filter in ["source_run_id = 'r'", "params.p LIKE 'vvv%'", "metrics.own > 0"] {
            let search =
                json!({ "experiment_ids": [experiment], "filter": filter, "order_by": [{ "field_name": "name" }] });
            assert_eq!(names(server, search).await, ["n0", "n2", "n4", "n6"], "{filter}");
        }
        let models =
            site.dump().await.into_keys().filter(|key| key.contains(" LM#") && key.matches('#').count() == 2).count();
        assert_eq!(models, 9, "no model was made twice");
    }
}

#[tokio::test]
#[ignore = "takes five seconds of a core; part of `make test-slow`"]
async fn documents_of_every_size() {
    let site = Site::new().await;
    let server = &site.server;
    let experiment = server.experiment("models").await;
    let entries = |name: &str, count: usize, bytes: usize| -> Vec<Value> {
        (0..count)
            .map(|n| json!({ "key": format!("{name}{n}"), "value": format!("{n}{}", "v".repeat(bytes)) }))
            .collect()
    };
    for (count, bytes) in [(3, 10), (150, 10), (150, 1_100), (30, 200_000)] {
        let new = json!({ "experiment_id": experiment, "params": entries("p", count, bytes), "tags": entries("t", count, bytes) });
        let model = call(server, "POST", "", new).await.ok()["model"].clone();
        let id = model["info"]["model_id"].as_str().unwrap().to_owned();
        assert_eq!(model, read(server, &id).await, "{count} {bytes}");
        assert_eq!(by_key(&model["data"]["params"]).len(), count);
        assert_eq!(by_key(&model["info"]["tags"]).len(), count);
        // Batches of the same sizes are logged in later calls, and these calls are then repeated.
        for _ in 0..2 {
            log_params(server, &id, entries("later", count, bytes).into()).await.ok();
            set_tags(server, &id, entries("later", count, bytes).into()).await.ok();
        }
        let model = read(server, &id).await;
        assert_eq!(by_key(&model["data"]["params"]).len(), 2 * count, "{count} {bytes}");
        assert_eq!(by_key(&model["info"]["tags"]).len(), 2 * count, "{count} {bytes}");
        let other = json!([{ "key": "new", "value": "" }, { "key": "later0", "value": "other" }]);
        log_params(server, &id, other).await.refused(400, "BAD_REQUEST");
        assert!(!by_key(&read(server, &id).await["data"]["params"]).contains_key("new"));
        let search = json!({ "experiment_ids": [experiment], "filter": format!("params.p0 = '0{}' AND model_id = '{id}'", "v".repeat(bytes)) });
        assert_eq!(names(server, search).await.len(), 1);
    }
    let before = site.dump().await;
    let model = before.keys().find_map(|key| key.strip_prefix(&format!("EXP#{experiment} LM#"))).unwrap().to_owned();
    for bytes in [395_000, 500_000, 5_000_000] {
        let huge = "h".repeat(bytes);
        for new in [
            json!({ "tags": entries("t", 1, bytes) }),
            json!({ "tags": [{ "key": huge, "value": "" }] }),
            json!({ "params": entries("p", 2, bytes) }),
            json!({ "name": huge }),
            json!({ "model_type": huge, "tags": entries("t", 120, 2_000) }),
            json!({ "source_run_id": huge }),
        ] {
            let mut new = new;
            new["experiment_id"] = json!(experiment);
            call(server, "POST", "", new).await.refused(400, "BAD_REQUEST");
        }
        set_tags(server, &model, entries("huge", 1, bytes).into()).await.refused(400, "BAD_REQUEST");
        log_params(server, &model, entries("huge", 1, bytes).into()).await.refused(400, "BAD_REQUEST");
    }
    assert_eq!(site.dump().await, before);
}

#[tokio::test]
async fn thousands_of_params_in_one_call() {
    let site = Site::new().await;
    let experiment = site.server.experiment("models").await;
    let model = create(&site.server, json!({ "experiment_id": experiment })).await;
    let params: Vec<_> = (0..3_000).map(|n| json!({ "key": format!("p{n}"), "value": "v".repeat(n % 40) })).collect();
    log_params(&site.server, &model, params.clone().into()).await.ok();
    assert_eq!(by_key(&read(&site.server, &model).await["data"]["params"]).len(), 3_000);
    set_tags(&site.server, &model, params.into()).await.ok();
    assert_eq!(by_key(&read(&site.server, &model).await["info"]["tags"]).len(), 3_000);
}
