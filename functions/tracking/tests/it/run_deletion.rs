//! Deletion of a run while metrics are logged to it.

use futures::future::join;
use key_schema::IndexEntry;
use key_schema::index::RunsByStage;
use serde_json::json;

use crate::server::{Server, Site, TestResponse};

async fn delete(server: &Server, run: &str) {
    server.post("runs/delete", json!({ "run_id": run })).await.ok();
}

async fn restore(server: &Server, run: &str) {
    server.post("runs/restore", json!({ "run_id": run })).await.ok();
}

/// Creates a run, and a second process. Only the requests of the site's own process are subject to
/// injected faults.
async fn run() -> (Site, Server, String) {
    let site = Site::new().await;
    let other = site.other().await;
    let run = other.run(&other.experiment("e").await).await;
    (site, other, run)
}

fn log_first(site: &Site, run: &str) -> tokio::task::JoinHandle<TestResponse> {
    let (server, run) = (site.server.clone(), run.to_owned());
    tokio::spawn(async move { server.log_metric(&run, "loss", (1, 1, 1.0)).await })
}

async fn log_many(server: &Server, run: &str, count: usize) -> TestResponse {
    let metrics: Vec<_> = (1..count).map(|number| format!("metric {number}")).chain(["loss".to_owned()]).collect();
    let points: Vec<_> = metrics.iter().map(|metric| (metric.as_str(), (1, 1, 1.0))).collect();
    server.log_points(run, &points).await
}

/// Where the points of a logging call are stored.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Document,
    /// The journal, in a tail with other calls.
    SharedTail,
    /// The journal, in a separate item for this call, because it has too many points to share a
    /// tail.
    OwnTail,
}

const PLACES: [Place; 3] = [Place::Document, Place::SharedTail, Place::OwnTail];

/// Logs the first point of a metric so that it is stored in the given location.
async fn log_to(place: Place, site: &Site, other: &Server, run: &str) -> tokio::task::JoinHandle<TestResponse> {
    if place == Place::SharedTail {
        // With these points in the document, there is no room for the points of fourteen more
        // metrics.
        let names: Vec<_> = (0..33).map(|number| format!("other {number}")).collect();
        let points: Vec<_> = names.iter().map(|metric| (metric.as_str(), (1, 1, 1.0))).collect();
        other.log_points(run, &points).await.ok();
    }
    let count = match place {
        Place::Document => return log_first(site, run),
        Place::SharedTail => 14,
        Place::OwnTail => 50,
    };
    let (server, run) = (site.server.clone(), run.to_owned());
    tokio::spawn(async move { log_many(&server, &run, count).await })
}

#[tokio::test]
async fn deleted_before_a_metric_is_written() {
    for place in PLACES {
        let (site, other, run) = run().await;
        site.faults.reset_calls();
        // The paused request is the update that adds the points to the document or to the tail. If
        // the points are in a separate item, it is the update that sets the mark.
        let mut gate = site.faults.pause_before("UpdateItem", 1);
        let logging = log_to(place, &site, &other, &run).await;
        gate.reached().await;
        assert_eq!(site.faults.calls("PutItem"), u64::from(place == Place::OwnTail), "{place:?}");
        delete(&other, &run).await;
        gate.open();
        logging.await.unwrap().refused_as_deleted();
        assert_eq!(other.history(&run, "loss").await, [], "{place:?}");
        restore(&other, &run).await;
        site.server.log_metric(&run, "loss", (2, 2, 2.0)).await.ok();
        assert_eq!(other.history(&run, "loss").await, [(2, 2, 2.0)], "{place:?}");
        // The point must also not be found when the journal is read because of other points.
        for _ in 0..2 {
            log_many(&other, &run, 50).await.ok();
        }
        assert_eq!(other.history(&run, "loss").await, [(1, 1, 1.0), (2, 2, 2.0)], "{place:?}");
    }
}

/// The run is deleted after the point was written and before the client gets the response. The point
/// is kept.
#[tokio::test]
async fn deleted_between_a_point_and_its_answer() {
    for place in PLACES {
        let (site, other, run) = run().await;
        // Points in a shared tail are found only after the mark has been written too, so the test
        // waits for the second update.
        let mut gate = site.faults.pause_after("UpdateItem", if place == Place::SharedTail { 2 } else { 1 });
        let logging = log_to(place, &site, &other, &run).await;
        gate.reached().await;
        delete(&other, &run).await;
        gate.open();
        logging.await.unwrap().ok();
        site.server.log_metric(&run, "loss", (2, 2, 2.0)).await.refused_as_deleted();
        assert_eq!(other.history(&run, "loss").await, [(1, 1, 1.0)], "{place:?}");
    }
}

/// A call relies on a lease according to which the run is active. The deletion must return only
/// after all leases from before it have expired.
#[tokio::test]
async fn a_deletion_is_answered_when_no_lease_lasts() {
    let (site, other, run) = run().await;
    for _ in 0..3 {
        log_many(&other, &run, 50).await.ok();
    }
    site.server.log_metric(&run, "loss", (2, 2, 2.0)).await.ok();
    delete(&other, &run).await;
    site.server.log_metric(&run, "loss", (3, 3, 3.0)).await.refused_as_deleted();
    assert_eq!(other.history(&run, "loss").await, [(1, 1, 1.0), (2, 2, 2.0)]);
}

#[tokio::test]
async fn the_first_metric_is_logged_while_the_deletion_is_under_way() {
    let (site, other, run) = run().await;
    let mut gate = site.faults.pause_before("TransactWriteItems", 1);
    let deletion = tokio::spawn({
        let (server, run) = (site.server.clone(), run.clone());
        async move { delete(&server, &run).await }
    });
    gate.reached().await;
    other.log_metric(&run, "loss", (1, 1, 1.0)).await.ok();
    gate.open();
    deletion.await.unwrap();
    other.log_metric(&run, "loss", (2, 2, 2.0)).await.refused_as_deleted();
    assert_eq!(other.history(&run, "loss").await, [(1, 1, 1.0)]);
}

#[tokio::test]
async fn a_point_between_a_deletion_and_a_restoration_is_logged() {
    let (site, other, run) = run().await;
    delete(&other, &run).await;
    restore(&other, &run).await;
    let mut gate = site.faults.pause_before("UpdateItem", 1);
    let logging = log_first(&site, &run);
    gate.reached().await;
    delete(&other, &run).await;
    restore(&other, &run).await;
    gate.open();
    logging.await.unwrap().ok();
    assert_eq!(other.history(&run, "loss").await, [(1, 1, 1.0)]);
}

#[tokio::test]
async fn deleted_while_params_and_large_tags_are_logged() {
    for value in ["small".to_owned(), "large".repeat(400)] {
        for path in ["runs/log-parameter", "runs/set-tag"] {
            let (site, other, run) = run().await;
            let operation = if value.len() > 1_024 { "TransactWriteItems" } else { "UpdateItem" };
            let mut gate = site.faults.pause_before(operation, 1);
            let logging = tokio::spawn({
                let (server, body) = (site.server.clone(), json!({ "run_id": run, "key": "k", "value": value }));
                async move { server.post(path, body).await }
            });
            gate.reached().await;
            delete(&other, &run).await;
            let before = site.dump().await;
            gate.open();
            logging.await.unwrap().refused_as_deleted();
            assert_eq!(site.dump().await, before, "{path} {operation}");
        }
    }
}

#[tokio::test]
async fn the_status_changes_while_a_run_is_deleted() {
    let (site, other, run) = run().await;
    let mut gate = site.faults.pause_before("TransactWriteItems", 1);
    let deletion = tokio::spawn({
        let (server, run) = (site.server.clone(), run.clone());
        async move { delete(&server, &run).await }
    });
    gate.reached().await;
    other.post("runs/update", json!({ "run_id": run, "status": "FINISHED" })).await.ok();
    gate.open();
    deletion.await.unwrap();
    let item = site.dump().await.into_iter().find(|(key, _)| key.ends_with(&format!(" R#{run}"))).unwrap().1;
    assert_eq!((&item["stage"]["S"], &item["status"]["S"]), (&json!("deleted"), &json!("FINISHED")));
    assert!(item[RunsByStage::INDEX.sort]["S"].as_str().unwrap().starts_with("R#DELETED."));
}

/// Sends logging calls and a deletion concurrently, in an order that the test does not control. No
/// call may be accepted after the deletion has returned.
#[tokio::test]
async fn logging_and_deleting_at_once() {
    let site = Site::new().await;
    let other = site.other().await;
    let experiment = other.experiment("e").await;
    for round in 0..30 {
        let run = other.run(&experiment).await;
        if round % 2 == 0 {
            other.log_metric(&run, "other", (1, 1, 1.0)).await.ok();
        }
        let (logged, ()) = join(site.server.log_metric(&run, "loss", (1, 1, 1.0)), delete(&other, &run)).await;
        site.server.log_metric(&run, "loss", (2, 2, 2.0)).await.refused_as_deleted();
        let expected = if logged.status == 200 {
            vec![(1, 1, 1.0)]
        } else {
            logged.refused_as_deleted();
            vec![]
        };
        assert_eq!(other.history(&run, "loss").await, expected);
    }
}
