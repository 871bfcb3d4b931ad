//! Runs with thousands of metrics.

use futures::future::join_all;
use serde_json::json;
use test_site::all_troubles;

use crate::indexed_site::index;
use crate::server::{Point, Site, metric_json, point};

async fn run(site: &Site) -> (String, String) {
    let experiment = site.server.experiment("wide").await;
    let run = site.server.run(&experiment).await;
    (experiment, run)
}

fn names(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|number| format!("m{number}")).collect()
}

async fn log_all(site: &Site, run: &str, names: &[String], point: Point) {
    for names in names.chunks(1_000) {
        let metrics: Vec<_> = names.iter().map(|name| metric_json(name, point)).collect();
        site.server.post("runs/log-batch", json!({ "run_id": run, "metrics": metrics })).await.ok();
    }
}

#[tokio::test]
async fn two_thousand_metrics() {
    let site = Site::new().await;
    let (experiment, run) = run(&site).await;
    let names = names(0..2_000);
    log_all(&site, &run, &names, (10, 1, 1.0)).await;
    log_all(&site, &run, &names, (20, 2, 2.0)).await;
    for name in ["m0", "m1", "m1000", "m1999", "new", "m1999"] {
        site.server.log_metric(&run, name, (30, 3, 3.0)).await.ok();
    }
    log_all(&site, &run, &["new".to_owned(), "newer".to_owned(), "m5".to_owned()], (40, 4, 4.0)).await;
    let metrics = site.server.data(&run, "metrics").await;
    assert_eq!(metrics.len(), 2_002);
    for (name, step) in [("m0", 3), ("m2", 2), ("m1999", 3), ("m1998", 2), ("new", 4), ("newer", 4), ("m5", 4)] {
        assert_eq!(metrics[name]["step"], step, "{name}");
    }
    for (name, steps) in [("m0", vec![1, 2, 3]), ("m1999", vec![1, 2, 3]), ("m7", vec![1, 2]), ("new", vec![3, 4])] {
        let history = site.server.history(&run, name).await;
        assert_eq!(history.iter().map(|point| point.1).collect::<Vec<_>>(), steps, "{name}");
    }
    for filter in ["metrics.m1999 = 3 AND metrics.m0 = 3", "metrics.newer > 3.5"] {
        let search = json!({ "experiment_ids": [experiment], "filter": filter });
        assert_eq!(site.server.search(search).await, [run.as_str()], "{filter}");
    }
    let search = json!({ "experiment_ids": [experiment] });
    let found = site.server.post("runs/search", search).await.ok();
    assert_eq!(crate::server::by_key(&found["runs"][0]["data"]["metrics"]), metrics);
    index(&site).await;
    let documents = site.dump().await.into_keys().filter(|key| key.contains("#METRIC")).count();
    assert_eq!(documents, 17);
    assert_eq!(site.server.data(&run, "metrics").await, metrics);
    let found = site.server.history(&run, "m1999").await;
    assert_eq!(found.iter().map(|point| point.1).collect::<Vec<_>>(), [1, 2, 3]);
    log_all(&site, &run, &names, (50, 5, 5.0)).await;
    index(&site).await;
    assert_eq!(site.server.history(&run, "m1999").await.len(), 4);
}

#[tokio::test]
async fn points_of_a_wide_run_are_sealed() {
    let site = Site::new().await;
    let (_, run) = run(&site).await;
    let names = names(0..400);
    for step in 0..12 {
        log_all(&site, &run, &names, (step, step, 1.0)).await;
    }
    let bulk: Vec<_> = (100..130).map(|step| ("m399", (step, step, 1.0))).collect();
    site.server.log_points(&run, &bulk).await.ok();
    index(&site).await;
    for name in names[..399].iter().step_by(if all_troubles() { 1 } else { 8 }) {
        assert_eq!(site.server.history(&run, name).await.len(), 12, "{name}");
    }
    assert_eq!(site.server.history(&run, "m399").await.len(), 42);
    for (key, document) in site.dump().await.iter().filter(|(key, _)| key.contains("#METRIC")) {
        let sets = document.as_object().unwrap().iter().filter(|(name, _)| name.starts_with('.'));
        for (name, set) in sets {
            assert!(set["BS"].as_array().unwrap().len() < 10, "{key} {name}");
        }
    }
}

/// Together, the calls log far more metrics than the first document can hold.
#[tokio::test]
async fn many_make_a_run_wide_at_once() {
    let site = Site::new().await;
    let (_, run) = run(&site).await;
    let (server, run) = (&site.server, run.as_str());
    join_all((0..16).map(|task| async move {
        // Each call shares half of its metrics with its neighbor.
        let points: Vec<_> = names(task * 32..task * 32 + 64);
        let points: Vec<_> =
            points.iter().map(|name| (name.as_str(), (7, i64::try_from(task).unwrap(), 1.0))).collect();
        server.log_points(run, &points).await.ok();
    }))
    .await;
    let all = names(0..544);
    index(&site).await;
    let metrics = server.data(run, "metrics").await;
    assert_eq!(metrics.len(), all.len());
    for name in [0, 31, 32, 100, 128, 200, 511, 512, 543] {
        let steps: Vec<_> = server.history(run, &all[name]).await.iter().map(|point| point.1).collect();
        let expected: Vec<_> = [name.checked_sub(32).map(|name| name / 32), Some(name / 32)]
            .into_iter()
            .flatten()
            .filter(|task| *task < 16)
            .map(|task| i64::try_from(task).unwrap())
            .collect();
        assert_eq!(steps, expected, "{name}");
    }
    log_all(&site, run, &all, (9, 99, 2.0)).await;
    let metrics = server.data(run, "metrics").await;
    assert!(all.iter().all(|name| point(&metrics[name]) == (9, 99, 2.0)));
}
