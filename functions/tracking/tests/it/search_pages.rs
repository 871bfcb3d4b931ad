//! Pages of a search while runs are created, deleted and restored.

use futures::future::join_all;
use mlflow_api::response_size::{MAX_BODY_BYTES, ResponseSize};
use serde_json::{Value, json};
use test_site::all_troubles;

use crate::server::{Server, Site, run_ids};

/// A run that the test created, with the fields that determine its position in a search.
#[derive(Clone, Debug, PartialEq)]
struct CreatedRun {
    experiment: usize,
    start: i64,
    loss: Option<i64>,
    deleted: bool,
    id: String,
}

/// Creates runs in these experiments. Many of them have the same start time.
async fn make(server: &Server, experiments: &[String], count: i64) -> Vec<CreatedRun> {
    let made = (0..count).map(|number| async move {
        let experiment = usize::try_from(number).unwrap() % experiments.len();
        let start = (number * 7) % 10;
        let id = server.run_at(&experiments[experiment], start).await;
        let loss = (number % 4 != 0).then_some((number * 5) % 6);
        if let Some(loss) = loss {
            server.log_metric(&id, "loss", (1, 1, f64::from(i32::try_from(loss).unwrap()))).await.ok();
        }
        let deleted = number % 5 == 0;
        if deleted {
            server.post("runs/delete", json!({ "run_id": id })).await.ok();
        }
        CreatedRun { experiment, start, loss, deleted, id }
    });
    join_all(made).await
}

/// Returns the ids that a search should find, according to a simple model of the search.
fn model(made: &[CreatedRun], among: &[usize], view: &str, by_loss: bool) -> Vec<String> {
    let shown = |made: &&CreatedRun| match view {
        "ACTIVE_ONLY" => !made.deleted,
        "DELETED_ONLY" => made.deleted,
        _ => true,
    };
    let mut found: Vec<_> =
        made.iter().filter(|made| among.contains(&made.experiment)).filter(shown).cloned().collect();
    found.sort_by_key(|made| {
        let loss = if by_loss { made.loss.map_or((1, 0), |loss| (0, -loss)) } else { (0, 0) };
        (loss, -made.start, made.id.clone())
    });
    found.into_iter().map(|made| made.id).collect()
}

async fn experiments(server: &Server) -> Vec<String> {
    join_all(["a", "b", "c"].map(|name| server.experiment(name))).await
}

#[tokio::test]
async fn both_ways_to_read_agree_with_a_model() {
    let site = Site::new().await;
    let server = &site.server;
    let ids = experiments(server).await;
    let mut made = make(server, &ids, 36).await;
    for round in 0..3 {
        if round == 1 {
            // All runs of the first experiment are deleted with it, except for one that is restored
            // individually.
            server.post("experiments/delete", json!({ "experiment_id": ids[0] })).await.ok();
            made.iter_mut().filter(|made| made.experiment == 0).for_each(|made| made.deleted = true);
            server.post("runs/restore", json!({ "run_id": made[0].id })).await.ok();
            made[0].deleted = false;
        } else if round == 2 {
            server.post("experiments/restore", json!({ "experiment_id": ids[0] })).await.ok();
            made.iter_mut().filter(|made| made.experiment == 0).for_each(|made| made.deleted = false);
            server.post("runs/delete", json!({ "run_id": made[3].id })).await.ok();
            made[3].deleted = true;
        }
        for view in ["ACTIVE_ONLY", "DELETED_ONLY", "ALL"] {
            for among in [vec![0], vec![1], vec![0, 1, 2]] {
                // A page size of 1 takes as long as all other page sizes together, so it is tested
                // only once.
                let is_first = round == 0;
                let one_by_one = is_first && (all_troubles() || view == "DELETED_ONLY");
                let sizes = [(1, one_by_one), (7, true), (1_000, is_first || all_troubles())];
                for (page, _) in sizes.into_iter().filter(|(_, is_tried)| *is_tried) {
                    let names: Vec<_> = among.iter().map(|number| &ids[*number]).collect();
                    let mut search = json!({ "experiment_ids": names, "run_view_type": view, "max_results": page });
                    let expected = model(&made, &among, view, false);
                    assert_eq!(server.search(search.clone()).await, expected, "{round} {search}");
                    // The filter matches all runs and does not change the order, but leads to
                    // another plan.
                    search["filter"] = "attributes.start_time >= 0".into();
                    assert_eq!(server.search(search.clone()).await, expected, "{round} {search}");
                    search["order_by"] = json!(["metrics.loss DESC"]);
                    assert_eq!(server.search(search.clone()).await, model(&made, &among, view, true), "{search}");
                }
            }
        }
    }
}

/// Reads all pages of a search. Between the pages, runs are deleted, restored and created.
async fn walk(site: &Site, search: &Value, ids: &[String]) {
    let server = &site.server;
    let made = make(server, ids, 30).await;
    let among: Vec<_> = (0..ids.len()).collect();
    let at_first = model(&made, &among, "ACTIVE_ONLY", false);
    let mut search = search.clone();
    let (mut found, mut gone) = (Vec::new(), Vec::new());
    for number in 0.. {
        let page = server.post("runs/search", search.clone()).await.ok();
        found.extend(run_ids(&page));
        let Some(token) = page["next_page_token"].as_str() else { break };
        search["page_token"] = token.into();
        // Deletes the last run of the page, to which the page token refers, and a run that would be
        // on a later page.
        let last = found.last().unwrap().clone();
        let to_come = at_first.iter().rev().find(|id| !found.contains(*id) && !gone.contains(*id)).cloned();
        for id in [Some(last), to_come].into_iter().flatten() {
            server.post("runs/delete", json!({ "run_id": id })).await.ok();
            gone.push(id);
        }
        if number % 3 == 0 {
            let deleted = made.iter().filter(|made| made.deleted).nth(number / 3);
            if let Some(deleted) = deleted {
                server.post("runs/restore", json!({ "run_id": deleted.id })).await.ok();
            }
        }
        for start in [0, 3, 5, 9, 100] {
            server.run_at(&ids[0], start).await;
        }
        assert!(number < 100, "the number of pages is finite");
        if number > 12 {
            break;
        }
    }
    let mut unique = found.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), found.len(), "a run was found twice");
    // The search must have found those runs that existed at the start and are not after the last
    // page, except for runs that were deleted before their page was read.
    let end = at_first.iter().rposition(|id| found.contains(id)).unwrap();
    for id in &at_first[..=end] {
        assert!(found.contains(id) || gone.contains(id), "{id} was dropped");
    }
}

#[tokio::test]
async fn pages_of_the_index_while_runs_come_and_go() {
    let site = Site::new().await;
    let ids = experiments(&site.server).await;
    walk(&site, &json!({ "experiment_ids": ids, "max_results": 3 }), &ids).await;
}

#[tokio::test]
async fn pages_of_sorted_runs_while_runs_come_and_go() {
    let site = Site::new().await;
    let ids = experiments(&site.server).await;
    let search = json!({ "experiment_ids": ids, "max_results": 3, "filter": "attributes.start_time < 50" });
    walk(&site, &search, &ids).await;
}

/// Runs that the index lists are deleted before the search reads them. The search still finds the
/// remaining runs.
#[tokio::test]
async fn runs_are_deleted_while_their_page_is_read() {
    let site = Site::new().await;
    let other = site.other().await;
    let experiment = other.experiment("e").await;
    let runs: Vec<_> = join_all((0..12).map(|start| other.run_at(&experiment, start))).await;
    let mut gate = site.faults.pause_before("BatchGetItem", 1);
    let searching = tokio::spawn({
        let (server, experiment) = (site.server.clone(), experiment.clone());
        async move { server.search(json!({ "experiment_ids": [experiment], "max_results": 2 })).await }
    });
    gate.reached().await;
    for run in &runs[8..] {
        other.post("runs/delete", json!({ "run_id": run })).await.ok();
    }
    gate.open();
    let expected: Vec<_> = runs[..8].iter().rev().cloned().collect();
    assert_eq!(searching.await.unwrap(), expected);
}

#[tokio::test]
async fn experiments_are_deleted_while_their_page_is_read() {
    let site = Site::new().await;
    let other = site.other().await;
    let ids: Vec<_> = join_all((0..8).map(|number| {
        let other = other.clone();
        async move { other.experiment(&format!("e{number}")).await }
    }))
    .await;
    let mut gate = site.faults.pause_before("BatchGetItem", 1);
    let searching = tokio::spawn({
        let server = site.server.clone();
        async move {
            let mut search = json!({ "max_results": 2 });
            let mut found = 0;
            loop {
                let page = server.post("experiments/search", search.clone()).await.ok();
                found += page["experiments"].as_array().map_or(0, Vec::len);
                match page["next_page_token"].as_str() {
                    Some(token) => search["page_token"] = token.into(),
                    None => return found,
                }
            }
        }
    });
    gate.reached().await;
    join_all(ids[4..].iter().map(|id| other.post("experiments/delete", json!({ "experiment_id": id })))).await;
    gate.open();
    assert_eq!(searching.await.unwrap(), 5);
}

#[tokio::test]
async fn experiments_in_pages_while_they_come_and_go() {
    let site = Site::new().await;
    let server = &site.server;
    for number in 0..9 {
        server.experiment(&format!("e{number}")).await;
    }
    for (order, filter) in [(json!([]), ""), (json!(["name ASC"]), "name LIKE 'e%'")] {
        let mut search = json!({ "max_results": 2, "order_by": order, "filter": filter });
        let mut found: Vec<String> = Vec::new();
        for number in 0.. {
            let page = server.post("experiments/search", search.clone()).await.ok();
            let text = |experiment: &Value| experiment["experiment_id"].as_str().unwrap().to_owned();
            found.extend(page["experiments"].as_array().into_iter().flatten().map(text));
            let Some(token) = page["next_page_token"].as_str() else { break };
            search["page_token"] = token.into();
            if number == 1 {
                let last = found.last().unwrap();
                server.post("experiments/delete", json!({ "experiment_id": last })).await.ok();
                server.post("experiments/create", json!({ "name": format!("A{filter}") })).await.ok();
            }
        }
        let mut unique = found.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), found.len());
        assert!(found.len() >= 9, "{found:?}");
        server.post("experiments/restore", json!({ "experiment_id": found[3] })).await.ok();
    }
}

/// Returns everything that a search finds, and its number of pages. Checks that no page is longer
/// than a response of a Lambda function can be.
async fn bounded_pages(server: &Server, path: &str, list: &str, mut search: Value) -> (Vec<Value>, usize) {
    let mut found = Vec::new();
    for number in 1.. {
        let page = server.post(path, search.clone()).await.ok();
        let size = ResponseSize::of(page.to_string().as_bytes()).bytes_in_response();
        assert!(size < MAX_BODY_BYTES, "{path}: {size} bytes");
        let entities = page[list].as_array().cloned().unwrap_or_default();
        assert!(!entities.is_empty(), "{path}: an empty page");
        found.extend(entities);
        match page["next_page_token"].as_str() {
            Some(token) => search["page_token"] = token.into(),
            None => return (found, number),
        }
    }
    unreachable!()
}

#[tokio::test]
async fn pages_end_by_the_bytes_of_their_answer() {
    let site = Site::new().await;
    let server = &site.server;
    let quotes = "\"".repeat(5_000);
    let key_values = |number: usize| {
        (0..94).map(|key| json!({ "key": format!("k{key}"), "value": format!("{number}{quotes}") })).collect::<Vec<_>>()
    };
    let experiment = server.experiment("e").await;
    for number in 0..4 {
        let run = server.run_at(&experiment, i64::try_from(number).unwrap()).await;
        server.post("runs/log-batch", json!({ "run_id": run, "params": key_values(number) })).await.ok();
        let model = json!({ "experiment_id": experiment, "name": format!("m{number}"), "tags": key_values(number) });
        server.post("logged-models", model).await.ok();
        let other = json!({ "name": format!("other {number}"), "tags": key_values(number) });
        server.post("experiments/create", other).await.ok();
    }
    let of_experiment = json!({ "experiment_ids": [experiment] });
    let (path, list) = ("runs/search", "runs");
    for order in [json!([]), json!(["attributes.end_time DESC"]), json!(["params.k1 DESC"])] {
        let mut search = of_experiment.clone();
        search["order_by"] = order;
        let (runs, pages) = bounded_pages(server, path, list, search.clone()).await;
        let starts: Vec<_> = runs.iter().map(|run| run["info"]["start_time"].as_i64().unwrap()).collect();
        assert_eq!((starts, pages >= 2), (vec![3, 2, 1, 0], true), "{search}");
    }
    for (path, list, search, count) in [
        ("logged-models/search", "models", of_experiment.clone(), 4),
        ("logged-models/search", "models", json!({ "experiment_ids": [experiment], "filter": "name LIKE 'm%'" }), 4),
        ("experiments/search", "experiments", json!({ "max_results": 100 }), 6),
        ("experiments/search", "experiments", json!({ "max_results": 100, "order_by": ["last_update_time"] }), 6),
    ] {
        let (found, pages) = bounded_pages(server, path, list, search).await;
        let mut unique: Vec<_> = found.iter().map(ToString::to_string).collect();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!((found.len(), unique.len(), pages >= 2), (count, count, true), "{path}: {pages}");
    }
}
