//! The requests of the `table` crate, under the faults that it is designed to handle.

use std::time::Duration;

use embedded_engine::faults::InjectedFault;
use key_schema::{Key, KeyRange, rows};
use mlflow_api::ExperimentId;
use serde_json::json;
use table::{
    Condition, Failure, Item, Query, RetryPolicy, Table, Update, UsageMeter, Write, WriteRefusal, map, number, text,
};
use test_site::TABLE;

use crate::server::{Server, Site};

fn key(sort: &str) -> Key {
    Key { pk: rows::Config::key(&"".into()).pk, sk: sort.to_owned() }
}

fn partition() -> KeyRange {
    rows::Config::partition()
}

fn item(sort: &str, value: i64) -> Item {
    Item::new(key(sort)).with("n", number(value))
}

/// Returns the value in an item that [`item`] created.
fn n(item: &Item) -> Option<i64> {
    item.0.get("n")?.as_n().ok()?.parse().ok()
}

/// Returns a policy that gives up after two attempts.
fn impatient() -> RetryPolicy {
    let pause = Duration::from_millis(1);
    RetryPolicy { attempts: 2, first_pause: pause, longest_pause: pause, ..RetryPolicy::default() }
}

fn faulty(site: &Site) -> Table {
    Table::new(site.faults.client(), TABLE)
}

async fn value(site: &Site, sort: &str) -> Option<i64> {
    site.table.get(&key(sort)).await.unwrap().and_then(|item| n(&item))
}

#[tokio::test]
async fn what_is_created_is_known_by_its_nonce() {
    let site = Site::new().await;
    let table = faulty(&site);
    site.faults.lose_answer_every(2);
    table.create(item("a", 1), Vec::new()).await.unwrap();
    table.create(item("b", 1), Vec::new()).await.unwrap();
    site.faults.lose_answer_every(0);
    // If no response was lost, creating the item again conflicts with the existing one.
    let Err(Failure::Cancelled(reasons)) = table.create(item("a", 1), Vec::new()).await else { panic!("it exists") };
    let [WriteRefusal::Refused(Some(found))] = reasons.as_slice() else { panic!("{reasons:?}") };
    assert_eq!(n(found), Some(1));
}

/// The response to the first attempt is lost, and another request changes the item before the
/// second attempt.
#[tokio::test]
async fn what_was_created_may_have_been_changed_since() {
    for others in [Vec::new(), vec![Write::Put(item("other", 1), Condition::item_missing())]] {
        let site = Site::new().await;
        let table = faulty(&site);
        let operation = if others.is_empty() { "PutItem" } else { "TransactWriteItems" };
        site.faults.trouble_at(InjectedFault::AnswerLost, 1, 1);
        let mut gate = site.faults.pause_before(operation, 2);
        let created = tokio::spawn(async move { table.create(item("a", 1), others).await });
        gate.reached().await;
        site.table.update(&Update::new(key("a")).set("n", number(2))).await.unwrap();
        gate.open();
        assert_eq!(created.await.unwrap(), Ok(()));
        assert_eq!(value(&site, "a").await, Some(2));
    }
}

#[tokio::test]
async fn a_creation_that_failed_says_whether_it_may_have_happened() {
    for others in [Vec::new(), vec![Write::Put(item("other", 1), Condition::item_missing())]] {
        let site = Site::new().await;
        let table = faulty(&site).with_retry(impatient());
        let create = || table.create(item("a", 1), others.clone());
        site.faults.trouble_at(InjectedFault::Disconnected, 1, u64::MAX);
        assert!(matches!(create().await, Err(Failure::Unavailable(_))), "no request was sent");
        site.faults.trouble_at(InjectedFault::Throttled, 1, u64::MAX);
        assert!(matches!(create().await, Err(Failure::Throttled(_))), "it was refused");
        site.faults.trouble_at(InjectedFault::AnswerLost, 1, u64::MAX);
        assert!(matches!(create().await, Err(Failure::Unknown(_))));
        site.table.write_many(Vec::new(), &[key("a"), key("other")]).await.unwrap();
        // Both attempts lost their responses, but the final read did not.
        site.faults.trouble_at(InjectedFault::AnswerLost, 1, 2);
        create().await.unwrap();
    }
}

#[tokio::test]
async fn a_refusal_says_whether_it_may_be_of_our_own_making() {
    let site = Site::new().await;
    let table = faulty(&site);
    table
        .put(item("a", 1).with("tags", map([("t".to_owned(), text("v"))].into())), &Condition::item_missing())
        .await
        .unwrap();
    let removal = Update::new(key("a")).remove(("tags", "t")).only_if(Condition::Exists(("tags", "t").into()));
    site.faults.lose_answer_every(1);
    let gate = site.faults.pause_after("UpdateItem", 2);
    let outcome = tokio::spawn({
        let (table, removal) = (table.clone(), removal.clone());
        async move { table.update(&removal).await }
    });
    let mut gate = gate;
    gate.reached().await;
    // The second attempt is refused. From here on, responses arrive.
    site.faults.lose_answer_every(0);
    gate.open();
    let first = outcome.await.unwrap();
    let second = table.update(&removal).await;
    let after_lost = |outcome: &table::Result<Item>| match outcome {
        Err(Failure::Refused { after_lost_answer, item: Some(_) }) => Some(*after_lost_answer),
        _ => None,
    };
    assert_eq!((after_lost(&first), after_lost(&second)), (Some(true), Some(false)));
}

#[tokio::test]
async fn a_tag_whose_deletion_lost_its_answer_is_deleted() {
    for bytes in [1, 2_000] {
        let site = Site::new().await;
        let server = &site.server;
        let run = server.run(&server.experiment("e").await).await;
        server.set_tag(&run, "t", &"v".repeat(bytes)).await.ok();
        site.faults.lose_answer_every(2);
        let tag = json!({ "run_id": run, "key": "t" });
        server.post("runs/delete-tag", tag.clone()).await.ok();
        site.faults.lose_answer_every(0);
        server.post("runs/delete-tag", tag).await.refused(404, "RESOURCE_DOES_NOT_EXIST");
    }
}

#[tokio::test]
async fn a_transaction_sent_twice_happens_once() {
    let site = Site::new().await;
    let table = faulty(&site);
    table.put(item("a", 1), &Condition::item_missing()).await.unwrap();
    let writes = [
        Write::Update(Update::new(key("a")).add("n", number(1)).only_if(Condition::Equals("n".into(), number(1)))),
        Write::Put(item("b", 1), Condition::item_missing()),
    ];
    let mut gate = site.faults.pause_after("TransactWriteItems", 1);
    site.faults.lose_answer_every(1);
    let outcome = tokio::spawn({
        let (table, writes) = (table.clone(), writes.clone());
        async move { table.transact(&writes).await }
    });
    gate.reached().await;
    site.faults.lose_answer_every(0);
    gate.open();
    outcome.await.unwrap().unwrap();
    assert_eq!(site.faults.calls("TransactWriteItems"), 2);
    assert_eq!((value(&site, "a").await, value(&site, "b").await), (Some(2), Some(1)));
    // A second call has another idempotency token, so it is cancelled instead of being treated as a
    // retry.
    let Err(Failure::Cancelled(reasons)) = table.transact(&writes).await else { panic!("it must be cancelled") };
    assert!(reasons.iter().all(|reason| matches!(reason, WriteRefusal::Refused(Some(_)))), "{reasons:?}");
}

#[tokio::test]
async fn patience_ends_in_an_answer_that_clients_repeat() {
    let site = Site::new().await;
    let (first_pause, longest_pause) = (Duration::from_millis(1), Duration::from_millis(2));
    let retry =
        RetryPolicy { attempts: 4, throttled_attempts: 3, first_pause, longest_pause, ..RetryPolicy::default() };
    let server = Server::on(&faulty(&site).with_retry(retry), Duration::from_millis(20)).await;
    let experiment = server.experiment("e").await;
    let run = server.run(&experiment).await;
    server.set_tag(&run, "large", &"v".repeat(2_000)).await.ok();
    let busy = json!({
        "error_code": "TEMPORARILY_UNAVAILABLE",
        "message": "The store is busy. Try again.",
        "sqlstate": "XXM00",
        "error_class": "CLIENT_INTERNAL_ERROR",
    });
    let throttled = json!({
        "error_code": "RESOURCE_EXHAUSTED",
        "message": "There are too many requests for the same data at this time. Try again later.",
        "sqlstate": "KAMC3",
        "error_class": "CP_REQUEST_RATE_LIMITED",
    });
    for (trouble, attempts, status, expected) in [
        (InjectedFault::Throttled, 3, 429, throttled),
        (InjectedFault::Disconnected, 4, 503, busy.clone()),
        (InjectedFault::AnswerLost, 4, 503, busy),
    ] {
        site.faults.trouble_at(trouble, 1, u64::MAX);
        for (path, body) in [
            ("experiments/create", json!({ "name": "n" })),
            ("experiments/set-experiment-tag", json!({ "experiment_id": experiment, "key": "k", "value": "v" })),
            ("runs/create", json!({ "experiment_id": experiment })),
            ("runs/search", json!({ "experiment_ids": [experiment] })),
            ("runs/log-metric", json!({ "run_id": run, "key": "m", "value": 1, "timestamp": 1 })),
            ("runs/log-parameter", json!({ "run_id": run, "key": "p", "value": "v".repeat(2_000) })),
            ("runs/delete", json!({ "run_id": run })),
        ] {
            site.faults.reset_calls();
            let answer = server.post(path, body).await;
            if trouble == InjectedFault::AnswerLost && path.ends_with("/create") && answer.status == 409 {
                answer.refused(409, "ABORTED");
                continue;
            }
            assert_eq!((answer.status, answer.body), (status, expected.clone()), "{path}");
            assert!(site.faults.all_calls().iter().all(|(_, calls)| *calls == attempts), "{path}");
        }
        site.faults.work_again();
    }
}

/// A transaction is not retried endlessly if it conflicts every time.
#[tokio::test]
async fn patience_with_conflicts_ends() {
    let site = Site::new().await;
    let table = faulty(&site).with_retry(impatient());
    site.faults.trouble_at(InjectedFault::Conflict, 1, u64::MAX);
    let write = [Write::Put(item("a", 1), Condition::item_missing())];
    assert!(matches!(table.transact(&write).await, Err(Failure::Unavailable(_))));
    assert_eq!(site.faults.calls("TransactWriteItems"), 2);
}

/// The response to the first attempt of a creation is lost, and the second attempt and the final
/// read are throttled. The error must not claim that nothing was created.
#[tokio::test]
async fn a_lost_answer_before_a_throttled_attempt_is_not_forgotten() {
    for others in [Vec::new(), vec![Write::Put(item("other", 1), Condition::item_missing())]] {
        let site = Site::new().await;
        let table = faulty(&site).with_retry(impatient());
        let operation = if others.is_empty() { "PutItem" } else { "TransactWriteItems" };
        site.faults.trouble_at(InjectedFault::AnswerLost, 1, 1);
        let mut gate = site.faults.pause_after(operation, 1);
        let created = tokio::spawn(async move { table.create(item("a", 1), others).await });
        gate.reached().await;
        site.faults.trouble_at(InjectedFault::Throttled, 1, u64::MAX);
        gate.open();
        let outcome = created.await.unwrap();
        assert!(matches!(outcome, Err(Failure::Unknown(_))), "{outcome:?}");
    }
}

#[tokio::test]
async fn batches_and_queries_go_on_to_the_end() {
    let site = Site::new().await;
    let meter = UsageMeter::default();
    let table = faulty(&site).in_background().metered(meter.clone());
    site.faults.halve_batch_every(1);
    site.faults.refuse_every(5);
    let keys: Vec<_> = (0..230).map(|number| key(&format!("{number:03}"))).collect();
    let items = (0..230).map(|number| item(&format!("{number:03}"), number).with("text", text("x".repeat(9_000))));
    table.write_many(items.collect(), &[]).await.unwrap();
    assert_eq!(table.get_many(&keys).await.unwrap().len(), 230);
    let missing = [key("none"), key("000")];
    assert_eq!(table.get_many(&missing).await.unwrap().into_keys().collect::<Vec<_>>(), [key("000")]);
    let twice = [key("000"), key("001"), key("000")];
    assert_eq!(table.get_many(&twice).await.unwrap().len(), 2);
    // The items have two megabytes, slightly more than two pages. The partition also contains
    // settings, which are outside of the range.
    let all = || partition().starting("000").until("229");
    let found = table.query(Query::of(all())).await.unwrap();
    assert!(found.iter().map(|item| item.key().unwrap()).eq(keys.iter().cloned()));
    let range = table.query(Query::of(partition().starting("010").until("019")).backwards()).await.unwrap();
    assert_eq!(range.first().and_then(n), Some(19));
    table.write_many(Vec::new(), &keys).await.unwrap();
    assert!(table.query(Query::of(all())).await.unwrap().is_empty());
    assert!(table.write_many(Vec::new(), &[]).await.is_ok() && table.get_many(&[]).await.unwrap().is_empty());
    let usage = meter.usage();
    assert!(usage.write_units >= 230.0 * 9.0 && usage.read_units >= 230.0 * 2.0, "{usage:?}");
    assert_eq!(usage.requests, usage.operations.values().sum::<u32>());
}

#[tokio::test]
async fn failures_that_no_attempt_can_mend() {
    let site = Site::new().await;
    let table = faulty(&site);
    let large = || text("x".repeat(410_000));
    assert_eq!(table.put(item("a", 1).with("x", large()), &Condition::item_missing()).await, Err(Failure::TooLarge));
    table.put(item("a", 1), &Condition::item_missing()).await.unwrap();
    assert_eq!(table.update(&Update::new(key("a")).set("x", large())).await.unwrap_err(), Failure::TooLarge);
    let write = [Write::Put(item("b", 1).with("x", large()), Condition::item_missing())];
    assert_eq!(table.transact(&write).await, Err(Failure::TooLarge));
    assert_eq!(table.write_many(vec![item("b", 1).with("x", large())], &[]).await, Err(Failure::TooLarge));
    let missing = table.update(&Update::new(key("none")).set("n", number(1))).await.unwrap_err();
    assert!(matches!(missing, Failure::Refused { item: None, after_lost_answer: false }));
    let upserted = table.update(&Update::upsert(key("none")).add("n", number(4))).await.unwrap();
    assert_eq!(n(&upserted), Some(4));
    let default = rows::Experiment::key(&ExperimentId::DEFAULT);
    let check = [Write::Check(default, Condition::item_exists()), Write::Delete(key("a"), Condition::item_exists())];
    table.transact(&check).await.unwrap();
    assert_eq!(value(&site, "a").await, None);
}
