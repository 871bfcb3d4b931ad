//! Links to traces that do not exist yet. Clients export traces in the background, and link them
//! right away.

use serde_json::{Value, json};
use test_site::key_of;

use crate::server::{ALL, Server, Site, TestResponse, id, info, span};

async fn run(server: &Server, experiment: &str) -> String {
    let run = server.post("runs/create", json!({ "experiment_id": experiment })).await.ok();
    run["run"]["info"]["run_id"].as_str().unwrap().to_owned()
}

async fn link(server: &Server, run: &str, numbers: &[u32]) -> TestResponse {
    let ids: Vec<_> = numbers.iter().map(|number| id(*number)).collect();
    server.post("traces/link-to-run", json!({ "run_id": run, "trace_ids": ids })).await
}

/// Returns the traces that are linked to a run, sorted.
async fn linked(server: &Server, experiments: &[&str], run: &str) -> Vec<String> {
    let mut found = server.found(experiments, &format!("run_id = '{run}'"), "", 100).await;
    found.sort();
    found
}

/// Returns the stubs that store links to traces which do not exist yet.
async fn stubs(site: &Site) -> Vec<Value> {
    let items = site.items().await.into_iter();
    items.filter(|item| key_of(item).sk == "T#HEAD" && item.get("ttl").is_some()).collect()
}

#[tokio::test]
async fn a_link_waits_for_its_trace_whichever_way_it_comes() {
    let site = Site::new().await;
    let (server, later) = (&site.server, site.other().await);
    let other = server.experiment("other").await;
    let (mine, theirs) = (run(server, "0").await, run(server, &other).await);
    // Repeating the request creates no second link.
    for _ in 0..2 {
        link(server, &mine, &[1, 2, 3, 1]).await.ok();
    }
    link(&later, &theirs, &[1, 3]).await.ok();
    assert_eq!(stubs(&site).await.len(), 3);
    assert_eq!(linked(server, &["0", &other], &mine).await, Vec::<String>::new());
    // The first trace arrives with its spans, the second one by a request of the client that starts
    // it, and the third one in another experiment than the run.
    later.export(&[span(1, 1, None, 0, 5)]).await.ok();
    later.start(&info(2, "0")).await.ok();
    server.export_to(&other, &[span(3, 1, None, 0, 5)]).await.ok();
    assert_eq!(stubs(&site).await, Vec::<Value>::new());
    for server in [server, &later] {
        assert_eq!(linked(server, &["0"], &mine).await, [id(1), id(2)]);
        assert_eq!(linked(server, &["0", &other], &mine).await, [id(1), id(2), id(3)]);
        assert_eq!(linked(server, &["0", &other], &theirs).await, [id(1), id(3)]);
        assert_eq!(server.spans(1).await, ["step 1"]);
    }
    // The link is deleted with the trace.
    let asked = json!({ "experiment_id": "0", "request_ids": [id(1)] });
    server.call_at("POST", &format!("{ALL}/delete-traces"), asked.to_string()).await.ok();
    later.export(&[span(1, 1, None, 0, 5)]).await.ok();
    assert_eq!(linked(server, &["0"], &mine).await, [id(2)]);
}

#[tokio::test]
async fn links_spans_and_what_clients_say_come_at_once() {
    let site = Site::new().await;
    let servers = [site.other().await, site.other().await, site.other().await];
    let runs = [run(&servers[0], "0").await, run(&servers[1], "0").await];
    for number in 1..=20 {
        let mut calls = Vec::new();
        for (at, server) in servers.iter().enumerate() {
            for (which, linked) in runs.iter().enumerate() {
                let (server, linked) = (server.clone(), linked.clone());
                calls.push(tokio::spawn(async move {
                    match (at, which) {
                        (0, _) => link(&server, &linked, &[number]).await.status,
                        (1, 0) => server.start(&info(number, "0")).await.status,
                        _ => server.export(&[span(number, 1 + u64::from(at == 2), None, 0, 5)]).await.status,
                    }
                }));
            }
        }
        for call in calls {
            assert_eq!(call.await.unwrap(), 200);
        }
    }
    let mut all: Vec<_> = (1..=20).map(id).collect();
    all.sort();
    for linked_to in &runs {
        assert_eq!(linked(&servers[0], &["0"], linked_to).await, all);
    }
    assert_eq!(stubs(&site).await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_trace_that_is_awaited_is_shown_to_nobody() {
    let site = Site::new().await;
    let server = &site.server;
    let linked_to = run(server, "0").await;
    link(server, &linked_to, &[1]).await.ok();
    let before = site.items().await;
    let one = format!("{ALL}/{}", id(1));
    server.get_at(&one, &[]).await.missing();
    server.get_at(&format!("{ALL}/get"), &[("trace_id", &id(1))]).await.missing();
    let batch = server.get_at(&format!("{ALL}/batchGet"), &[("trace_ids", &id(1)), ("trace_ids", &id(2))]).await.ok();
    assert!(batch["traces"].as_array().is_none_or(Vec::is_empty), "{batch}");
    // As in stock MLflow, all other requests about an unknown trace are rejected.
    server.call_at("PATCH", &format!("{one}/tags"), json!({ "key": "k", "value": "v" }).to_string()).await.missing();
    server.call_at("DELETE", &format!("{one}/tags"), json!({ "key": "k" }).to_string()).await.missing();
    let feedback = json!({ "assessment": { "assessment_name": "n", "feedback": { "value": 1 } } });
    server.call_at("POST", &format!("{one}/assessments"), feedback.to_string()).await.missing();
    let prompts = json!({ "trace_id": id(1), "prompt_versions": [{ "name": "p", "version": "1" }] });
    server.post("traces/link-prompts", prompts).await.missing();
    let asked = json!({ "experiment_id": "0", "request_ids": [id(1)] });
    let deleted = server.call_at("POST", &format!("{ALL}/delete-traces"), asked.to_string()).await.ok();
    assert_eq!(deleted["traces_deleted"], 0);
    assert_eq!(site.items().await, before);
}

#[tokio::test]
async fn what_waits_is_bounded() {
    let site = Site::new().await;
    let server = &site.server;
    // A link to a run that does not exist is not stored, because no permission would protect it.
    link(server, "0123456789abcdef0123456789abcdef", &[1]).await.ok();
    assert_eq!(stubs(&site).await, Vec::<Value>::new());
    let first = run(server, "0").await;
    link(server, &first, &[1]).await.ok();
    let expires = stubs(&site).await[0]["ttl"]["N"].as_str().unwrap().parse::<i64>().unwrap();
    let week = 7 * 86_400;
    assert!((week - 60..=week).contains(&(expires - entities::now_ms() / 1_000)), "{expires}");
    for _ in 1..100 {
        link(server, &run(server, "0").await, &[1]).await.ok();
    }
    let refused = link(server, &run(server, "0").await, &[1]).await.refused(400, "BAD_REQUEST");
    assert_eq!(refused, format!("Trace {} does not exist yet and is already linked to 100 runs.", id(1)));
    link(server, &first, &[1]).await.ok();
    server.start(&info(1, "0")).await.ok();
    assert_eq!(linked(server, &["0"], &first).await, [id(1)]);
    // Once the trace exists, it can have more links.
    let last = run(server, "0").await;
    link(server, &last, &[1]).await.ok();
    assert_eq!(linked(server, &["0"], &last).await, [id(1)]);
}

#[tokio::test]
async fn a_link_survives_an_export_that_is_cut_off_anywhere() {
    let site = Site::new().await;
    let linked_to = run(&site.server, "0").await;
    link(&site.server, &linked_to, &[7]).await.ok();
    let mut cut = 1;
    loop {
        let copy = site.copy().await;
        copy.faults.cut_off_at(cut);
        let status = copy.server.export(&[span(7, 1, None, 0, 5)]).await.status;
        copy.faults.work_again();
        let other = copy.other().await;
        other.export(&[span(7, 1, None, 0, 5)]).await.ok();
        assert_eq!(linked(&other, &["0"], &linked_to).await, [id(7)], "cut off at {cut}");
        if status == 200 {
            break;
        }
        cut += 1;
    }
    assert!(cut > 3, "{cut}");
}

#[tokio::test]
async fn a_link_whose_answers_are_lost_is_made() {
    let site = Site::new().await;
    let linked_to = run(&site.server, "0").await;
    for every in 2..=4 {
        let copy = site.copy().await;
        copy.faults.lose_answer_every(every);
        for _ in 0..3 {
            link(&copy.server, &linked_to, &[1, 2]).await.ok();
        }
        copy.server.export(&[span(1, 1, None, 0, 5)]).await.ok();
        copy.server.start(&info(2, "0")).await.ok();
        copy.faults.work_again();
        assert_eq!(linked(&copy.server, &["0"], &linked_to).await, [id(1), id(2)]);
    }
}
