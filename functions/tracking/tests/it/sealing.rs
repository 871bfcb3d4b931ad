//! A process dies, or its answer is lost, between the segment and the removal of its points from the document.

use crate::server::{Point, Server, Site};

async fn run(site: &Site) -> String {
    site.server.run(&site.server.experiment("e").await).await
}

fn at(step: i64) -> Point {
    (step * 10, step, 1.0)
}

fn times(range: std::ops::RangeInclusive<i64>) -> Vec<Point> {
    range.map(at).collect()
}

/// Logs the tenth point and dies before the points leave the document: the segment is there, and so are they.
async fn dies_while_sealing(site: &Site, run: &str, server: &Server) {
    for step in 1..=9 {
        server.log_metric(run, "m", at(step)).await.ok();
    }
    let mut gate = site.faults.pause_before("UpdateItem", 2);
    let logging = tokio::spawn({
        let (server, run) = (site.server.clone(), run.to_owned());
        async move { server.log_metric(&run, "m", at(10)).await }
    });
    gate.reached().await;
    logging.abort();
    assert!(logging.await.unwrap_err().is_cancelled());
    let items = site.dump().await;
    assert_eq!(items.keys().filter(|key| key.contains("MHIST#")).count(), 1);
    let document = items.iter().find(|(key, _)| key.ends_with("#METRIC")).unwrap().1;
    assert_eq!(document[".m"]["BS"].as_array().unwrap().len(), 10);
}

#[tokio::test]
async fn each_point_is_read_once_after_a_crash() {
    let site = Site::new().await;
    let run = run(&site).await;
    let other = site.other().await;
    dies_while_sealing(&site, &run, &other).await;
    assert_eq!(other.history(&run, "m").await, times(1..=10));
    assert_eq!(crate::server::point(&other.data(&run, "metrics").await["m"]), at(10));
    for step in 11..=35 {
        other.log_metric(&run, "m", at(step)).await.ok();
        assert_eq!(other.history(&run, "m").await, times(1..=step));
    }
}

/// The client of the dead process sends its points again, all at once: they make the segment that is there, twice.
#[tokio::test]
async fn the_points_are_logged_again_after_a_crash() {
    let site = Site::new().await;
    let run = run(&site).await;
    let other = site.other().await;
    dies_while_sealing(&site, &run, &other).await;
    let again: Vec<_> = (1..=11).map(|step| ("m", at(step))).collect();
    other.log_points(&run, &again).await.ok();
    other.log_points(&run, &again).await.ok();
    assert_eq!(other.history(&run, "m").await, times(1..=11));
}

#[tokio::test]
async fn a_crash_between_the_point_and_its_segment() {
    let site = Site::new().await;
    let run = run(&site).await;
    let other = site.other().await;
    for step in 1..=9 {
        other.log_metric(&run, "m", at(step)).await.ok();
    }
    let mut gate = site.faults.pause_before("BatchWriteItem", 1);
    let logging = tokio::spawn({
        let (server, run) = (site.server.clone(), run.clone());
        async move { server.log_metric(&run, "m", at(10)).await }
    });
    gate.reached().await;
    logging.abort();
    assert!(logging.await.unwrap_err().is_cancelled());
    assert_eq!(other.history(&run, "m").await, times(1..=10));
    other.log_metric(&run, "m", at(11)).await.ok();
    assert_eq!(other.history(&run, "m").await, times(1..=11));
    assert_eq!(site.dump().await.keys().filter(|key| key.contains("MHIST#")).count(), 1);
}

/// Two processes seal the same points, the slower one from an older document.
#[tokio::test]
async fn two_seal_at_once() {
    let site = Site::new().await;
    let run = run(&site).await;
    let other = site.other().await;
    for step in 1..=9 {
        other.log_metric(&run, "m", at(step)).await.ok();
    }
    let mut gate = site.faults.pause_before("BatchWriteItem", 1);
    let logging = tokio::spawn({
        let (server, run) = (site.server.clone(), run.clone());
        async move { server.log_metric(&run, "m", at(10)).await }
    });
    gate.reached().await;
    for step in 11..=15 {
        other.log_metric(&run, "m", at(step)).await.ok();
    }
    gate.open();
    logging.await.unwrap().ok();
    assert_eq!(other.history(&run, "m").await, times(1..=15));
    assert_eq!(crate::server::point(&other.data(&run, "metrics").await["m"]), at(15));
}

#[tokio::test]
async fn every_answer_of_a_sealing_is_lost_once() {
    let site = Site::new().await;
    let run = run(&site).await;
    site.faults.lose_answer_every(2);
    for step in 1..=45 {
        site.server.log_metric(&run, "m", at(step)).await.ok();
    }
    site.faults.lose_answer_every(0);
    assert_eq!(site.server.history(&run, "m").await, times(1..=45));
    assert_eq!(site.dump().await.keys().filter(|key| key.contains("MHIST#")).count(), 4);
}
