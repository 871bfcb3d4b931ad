//! Searches and writes for cases in which similar servers have had bugs: stale order, skipped
//! filters, lost precision, and rows created by a write to a missing entity.

use mlflow_api::{ExperimentId, RunId};
use serde_json::{Value, json};

use crate::server::{Server, Site, point, run_ids};

/// Returns the names of the runs that a search finds, in its order.
async fn found(server: &Server, experiment: &str, filter: &str, order: &[&str], view: &str) -> Vec<String> {
    let search = json!({
        "experiment_ids": [experiment], "filter": filter, "order_by": order, "run_view_type": view, "max_results": 2,
    });
    names(server, search).await
}

async fn names(server: &Server, mut search: Value) -> Vec<String> {
    let mut found = Vec::new();
    loop {
        let page = server.post("runs/search", search.clone()).await.ok();
        for run in page["runs"].as_array().into_iter().flatten() {
            found.push(run["info"]["run_name"].as_str().unwrap().to_owned());
        }
        match page["next_page_token"].as_str() {
            Some(token) => search["page_token"] = token.into(),
            None => return found,
        }
    }
}

async fn named(server: &Server, experiment: &str, name: &str, start: i64) -> String {
    let new = json!({ "experiment_id": experiment, "run_name": name, "start_time": start });
    let run = server.post("runs/create", new).await.ok();
    run["run"]["info"]["run_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_run_stands_where_its_latest_value_puts_it_and_only_there() {
    let site = Site::new().await;
    let server = &site.server;
    let experiment = server.experiment("e").await;
    for (name, start, values) in [
        ("a", 1, &[9.0, 1e-5][..]),
        ("b", 2, &[1.0, 2e-5]),
        ("c", 3, &[0.0, 1e300]),
        ("d", 4, &[5.0, 2e10]),
        ("e", 5, &[-1e-140]),
        ("f", 6, &[f64::NAN]),
        ("g", 7, &[1e12, -1e300]),
    ] {
        let run = named(server, &experiment, name, start).await;
        for (step, value) in (0..).zip(values) {
            server.log_metric(&run, "Acc", (step, step, *value)).await.ok();
            server.log_metric(&run, "val loss/x", (step, step, -value)).await.ok();
        }
    }
    let none = named(server, &experiment, "none", 8).await;
    server.log_metric(&none, "acc", (1, 1, 7.0)).await.ok();
    let order = |order: &'static str| {
        let (server, experiment) = (server.clone(), experiment.clone());
        async move { found(&server, &experiment, "", &[order], "ACTIVE_ONLY").await }
    };
    assert_eq!(order("metrics.Acc DESC").await, ["c", "d", "b", "a", "e", "g", "f", "none"]);
    assert_eq!(order("metrics.Acc ASC").await, ["g", "e", "a", "b", "d", "c", "f", "none"]);
    assert_eq!(order("metrics.`val loss/x` ASC").await, ["c", "d", "b", "a", "e", "g", "f", "none"]);
    assert_eq!(order("metric.acc DESC").await[0], "none");
    let filtered = found(server, &experiment, "metrics.Acc > 1.5e-5", &["metrics.Acc DESC"], "ACTIVE_ONLY").await;
    assert_eq!(filtered, ["c", "d", "b"]);
    let exact = found(server, &experiment, "metrics.Acc = 0.00002", &["metrics.Acc"], "ACTIVE_ONLY").await;
    assert_eq!(exact, ["b"]);
}

#[tokio::test]
async fn no_order_and_no_filter_brings_back_deleted_runs() {
    let site = Site::new().await;
    let server = &site.server;
    let experiment = server.experiment("e").await;
    for (name, deleted) in [("kept", false), ("gone", true)] {
        let run = named(server, &experiment, name, 5).await;
        server.log_metric(&run, "m", (1, 1, 1.0)).await.ok();
        server.log_param(&run, "p", "v").await.ok();
        server.post("runs/update", json!({ "run_id": run, "status": "FINISHED", "end_time": 9 })).await.ok();
        if deleted {
            server.post("runs/delete", json!({ "run_id": run })).await.ok();
        }
    }
    for filter in
        ["", "attributes.status = 'FINISHED'", "attributes.run_name LIKE '%e%'", "metrics.m = 1", "params.p = 'v'"]
    {
        for order in ["start_time DESC", "metrics.m DESC", "end_time ASC", "run_name DESC", "params.p", "tags.t"] {
            assert_eq!(found(server, &experiment, filter, &[order], "ACTIVE_ONLY").await, ["kept"], "{filter} {order}");
            assert_eq!(
                found(server, &experiment, filter, &[order], "DELETED_ONLY").await,
                ["gone"],
                "{filter} {order}"
            );
        }
    }
}

#[tokio::test]
async fn patterns_match_as_sql_has_it() {
    let site = Site::new().await;
    let server = &site.server;
    let experiment = server.experiment("e").await;
    for (start, name) in (0..).zip(["pipe", "pipeline-train", "Pipe", "a[b]?*", "x_y", "xzy"]) {
        let run = named(server, &experiment, name, start).await;
        server.set_tag(&run, "name", name).await.ok();
        server.log_param(&run, "name", name).await.ok();
    }
    for (pattern, expected) in [
        ("LIKE '%pipe%'", vec!["pipe", "pipeline-train"]),
        ("ILIKE 'PIPE%'", vec!["pipe", "pipeline-train", "Pipe"]),
        ("LIKE '%ne-tr%'", vec!["pipeline-train"]),
        ("LIKE '%in%'", vec!["pipeline-train"]),
        ("LIKE 'a[b]?*'", vec!["a[b]?*"]),
        ("LIKE 'x_y'", vec!["x_y", "xzy"]),
        ("LIKE '?ipe'", vec![]),
    ] {
        for attribute in ["attributes.run_name", "tags.name", "params.name"] {
            let filter = format!("{attribute} {pattern}");
            let order = ["start_time ASC"];
            assert_eq!(found(server, &experiment, &filter, &order, "ALL").await, expected, "{filter}");
        }
    }
}

#[tokio::test]
async fn orders_of_tags_params_and_several_columns() {
    let site = Site::new().await;
    let server = &site.server;
    let experiment = server.experiment("e").await;
    for (name, start, status, tag) in [
        ("a", 1, "FINISHED", Some("2")),
        ("b", 2, "FAILED", Some("10")),
        ("c", 3, "FINISHED", None),
        ("d", 4, "FAILED", Some("1")),
    ] {
        let run = named(server, &experiment, name, start).await;
        server.post("runs/update", json!({ "run_id": run, "status": status })).await.ok();
        if let Some(tag) = tag {
            server.set_tag(&run, "T", tag).await.ok();
            server.log_param(&run, "P", tag).await.ok();
        }
    }
    for (order, expected) in [
        (&["tags.T ASC"][..], ["d", "b", "a", "c"]),
        (&["params.P DESC"], ["a", "b", "d", "c"]),
        (&["status ASC", "start_time DESC"], ["d", "b", "c", "a"]),
        (&["status DESC", "start_time ASC"], ["a", "c", "b", "d"]),
        (&["tags.t", "run_name DESC"], ["d", "c", "b", "a"]),
    ] {
        assert_eq!(found(server, &experiment, "", order, "ACTIVE_ONLY").await, expected, "{order:?}");
    }
}

#[tokio::test]
async fn runs_of_several_experiments_come_in_one_order() {
    let site = Site::new().await;
    let server = &site.server;
    let (a, b) = (server.experiment("a").await, server.experiment("b").await);
    for (start, experiment) in (0..).zip([&a, &b, &b, &a, &b, &a]) {
        named(server, experiment, &start.to_string(), start).await;
    }
    let mut search = json!({ "experiment_ids": [a, b], "max_results": 4 });
    assert_eq!(names(server, search.clone()).await, ["5", "4", "3", "2", "1", "0"]);
    search["order_by"] = json!(["run_name ASC"]);
    assert_eq!(names(server, search).await, ["0", "1", "2", "3", "4", "5"]);
}

#[tokio::test]
async fn a_filter_over_experiments_finds_all_of_them_on_its_pages() {
    let site = Site::new().await;
    let server = &site.server;
    for number in 0..10 {
        let id = server.experiment(&format!("{} {number}", if number % 2 == 0 { "even" } else { "odd" })).await;
        let tag = json!({ "experiment_id": id, "key": "n", "value": (number % 3).to_string() });
        server.post("experiments/set-experiment-tag", tag).await.ok();
    }
    for (filter, count) in [("name LIKE 'even%'", 5), ("tags.n = '0'", 4), ("name ILIKE 'ODD%' AND tags.n = '0'", 2)] {
        let mut search = json!({ "max_results": 1, "filter": filter });
        let mut pages = 0;
        loop {
            let page = server.post("experiments/search", search.clone()).await.ok();
            pages += page["experiments"].as_array().map_or(0, Vec::len);
            match page["next_page_token"].as_str() {
                Some(token) => search["page_token"] = token.into(),
                None => break,
            }
        }
        assert_eq!(pages, count, "{filter}");
    }
}

/// A page token contains a position that is valid only within the search that returned it, and
/// reveals nothing about the table.
#[tokio::test]
async fn a_token_of_another_search_is_refused() {
    let site = Site::new().await;
    let server = &site.server;
    let (a, b) = (server.experiment("a").await, server.experiment("b").await);
    for experiment in [&a, &a, &b] {
        server.run(experiment).await;
    }
    let search = json!({ "experiment_ids": [a], "max_results": 1 });
    let token = server.post("runs/search", search).await.ok()["next_page_token"].clone();
    for (experiment, filter) in [(&b, ""), (&a, "attributes.status = 'RUNNING'")] {
        let search = json!({ "experiment_ids": [experiment], "filter": filter, "page_token": token });
        server.post("runs/search", search).await.refused(400, "INVALID_PARAMETER_VALUE");
    }
    let search = json!({ "experiment_ids": [a], "max_results": 1, "page_token": token });
    assert_eq!(run_ids(&server.post("runs/search", search).await.ok()).len(), 1);
}

#[tokio::test]
async fn the_latest_point_of_a_batch_is_that_of_the_greatest_step() {
    let site = Site::new().await;
    let server = &site.server;
    let run = server.run(&server.experiment("e").await).await;
    let mut latest = None;
    for points in [
        vec![(1, 5, 1.0), (9, 3, 2.0)],
        vec![(0, 5, 9.0)],
        vec![(1, 5, 0.5), (1, 5, f64::NAN)],
        vec![(1, 5, 1.5), (8, 4, 3.0)],
        (0..20).map(|step| (step, -step, 0.0)).collect(),
        vec![(2, 5, -1.0)],
    ] {
        let batch: Vec<_> = points.iter().map(|point| ("m", *point)).collect();
        server.log_points(&run, &batch).await.ok();
        latest = latest.into_iter().chain(points).max_by(|a: &(i64, i64, f64), b| {
            let value = |value: f64| if value.is_nan() { 0.0 } else { value };
            (a.1, a.0).cmp(&(b.1, b.0)).then(value(a.2).total_cmp(&value(b.2)))
        });
        assert_eq!(Some(point(&server.data(&run, "metrics").await["m"])), latest);
    }
}

#[tokio::test]
async fn every_number_is_kept() {
    let site = Site::new().await;
    let server = &site.server;
    let run = server.run(&server.experiment("e").await).await;
    let values = [1e130, 1e-140, f64::MAX, f64::MIN, 5e-324, 0.1 + 0.2, -0.0, 123_456_789_012_345.67];
    for (step, value) in (0..).zip(values) {
        server.log_metric(&run, "m", (i64::MAX - 1, step, value)).await.ok();
    }
    let history: Vec<_> = server.history(&run, "m").await.iter().map(|point| point.2).collect();
    assert_eq!(history, values);
}

/// A change of a missing entity creates nothing.
#[tokio::test]
async fn nothing_is_made_by_a_write_to_nothing() {
    let site = Site::new().await;
    let server = &site.server;
    let experiment = server.experiment("e").await;
    let id = ExperimentId::parse(&experiment).unwrap();
    let run = RunId::new(1_700_000_000_000, id, 7).to_string();
    let before = site.dump().await;
    server.log_metric(&run, "m", (1, 1, 1.0)).await.refused(404, "RESOURCE_DOES_NOT_EXIST");
    let many: Vec<_> = (0..100).map(|step| ("m", (step, step, 1.0))).collect();
    server.log_points(&run, &many).await.refused(404, "RESOURCE_DOES_NOT_EXIST");
    for bytes in [1, 3_000] {
        server.log_param(&run, "p", &"v".repeat(bytes)).await.refused(404, "RESOURCE_DOES_NOT_EXIST");
        server.set_tag(&run, "t", &"v".repeat(bytes)).await.refused(404, "RESOURCE_DOES_NOT_EXIST");
        let tag = json!({ "experiment_id": "77", "key": "k", "value": "v".repeat(bytes) });
        server.post("experiments/set-experiment-tag", tag).await.refused(404, "RESOURCE_DOES_NOT_EXIST");
    }
    for (path, body) in [
        ("runs/update", json!({ "run_id": run, "status": "FINISHED" })),
        ("runs/delete", json!({ "run_id": run })),
        ("runs/restore", json!({ "run_id": run })),
        ("runs/delete-tag", json!({ "run_id": run, "key": "t" })),
        ("runs/outputs", json!({ "run_id": run, "models": [{ "model_id": "m" }] })),
        ("runs/create", json!({ "experiment_id": "77" })),
        ("experiments/update", json!({ "experiment_id": "77", "new_name": "n" })),
        ("experiments/delete", json!({ "experiment_id": "77" })),
        ("experiments/restore", json!({ "experiment_id": "77" })),
    ] {
        server.post(path, body).await.refused(404, "RESOURCE_DOES_NOT_EXIST");
    }
    assert_eq!(site.dump().await, before);
    let tag = json!({ "experiment_id": "0", "key": "k", "value": "v" });
    server.post("experiments/set-experiment-tag", tag).await.ok();
}
