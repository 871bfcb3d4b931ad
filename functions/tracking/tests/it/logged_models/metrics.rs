//! Metrics of logged models.

use serde_json::json;

use super::{call, create, names, point, steps};
use crate::server::Site;

#[tokio::test]
async fn every_point_is_kept_however_many() {
    let site = Site::new().await;
    let server = &site.server;
    let experiment = server.experiment("models").await;
    let model = create(server, json!({ "experiment_id": experiment })).await;
    let few = create(server, json!({ "experiment_id": experiment })).await;
    let store = &server.store;
    for step in 0..700 {
        store.logged_model_log_metrics(&[point(&model, "single", (step, step, 0.5))]).await.unwrap();
    }
    let bulk: Vec<_> = (0..2_000).map(|step| point(&model, "bulk", (step, step, 0.25))).collect();
    for part in bulk.chunks(1_000) {
        store.logged_model_log_metrics(part).await.unwrap();
        // Logging a part twice has the same effect as logging it once.
        store.logged_model_log_metrics(part).await.unwrap();
    }
    let wide: Vec<_> = (0..1_000).map(|number| point(&model, &format!("wide{number}"), (1, 7, 0.0))).collect();
    store.logged_model_log_metrics(&wide).await.unwrap();
    store.logged_model_log_metrics(&[point(&few, "loss", (1, 1, 1.0))]).await.unwrap();

    let steps = steps(server, &model).await;
    assert_eq!(steps["single"], (0..700).collect::<Vec<_>>());
    assert_eq!(steps["bulk"], (0..2_000).collect::<Vec<_>>());
    assert_eq!(steps.len(), 1_002);
    let items = site.dump().await;
    let waiting = &items[&format!("EXP#{experiment} LM#{model}#METRIC")];
    assert!(waiting.to_string().len() < 30_000, "{}", waiting.to_string().len());
    assert!(items.keys().any(|key| key.starts_with(&format!("MODEL#{model} MHIST#"))));
    assert!(!items.keys().any(|key| key.starts_with(&format!("MODEL#{few}"))));
    // Searches also filter and sort by points that have been moved to segments.
    let found = |filter: &str| {
        let search = json!({ "experiment_ids": [experiment], "filter": filter });
        async move { names(server, search).await.len() }
    };
    assert_eq!(found("metrics.bulk = 0.25").await, 1);
    assert_eq!(found("metrics.wide999 = 0").await, 1);
    assert_eq!(found("metrics.wide999 != 0").await, 0);
    let by_metric = json!({ "experiment_ids": [experiment], "order_by": [{ "field_name": "metrics.bulk" }] });
    let page = call(server, "POST", "/search", by_metric).await.ok();
    assert_eq!(page["models"][0]["info"]["model_id"], model);
    assert_eq!(page["models"][0]["data"]["metrics"].as_array().unwrap().len(), 3_700);
}

#[tokio::test]
#[ignore = "takes a hundred calls of a thousand points; part of `make test-slow`"]
async fn a_model_with_a_hundred_thousand_points() {
    let site = Site::new().await;
    let experiment = site.server.experiment("models").await;
    let model = create(&site.server, json!({ "experiment_id": experiment })).await;
    for first in (0..100_000).step_by(1_000) {
        let points: Vec<_> = (first..first + 1_000).map(|step| point(&model, "loss", (step, step, 0.5))).collect();
        site.server.store.logged_model_log_metrics(&points).await.unwrap();
    }
    let found = site.server.store.logged_model_get(&model, false).await.unwrap();
    assert!(found.data.metrics.iter().map(|point| point.step).eq(0..100_000));
}

#[tokio::test]
async fn points_of_a_model_that_is_not_there_leave_nothing() {
    let site = Site::new().await;
    let experiment = site.server.experiment("models").await;
    let model = create(&site.server, json!({ "experiment_id": experiment })).await;
    let before = site.dump().await;
    let gone = model.replace("m-0", "m-1");
    let foreign = "m-f47ac10b58cc4372a5670e02b2c3d479";
    for other in [gone.as_str(), foreign, "a b", "", "a#b"] {
        let bulk: Vec<_> = (0..1_000).map(|step| point(other, "m", (step, step, 0.0))).collect();
        for points in [&bulk[..1], &bulk] {
            let error = site.server.store.logged_model_log_metrics(points).await.unwrap_err();
            assert_eq!(error.code.name(), "BAD_REQUEST");
            assert_eq!(error.message, format!("Logged model with ID '{other}' not found."));
        }
    }
    assert_eq!(site.dump().await, before);
}
