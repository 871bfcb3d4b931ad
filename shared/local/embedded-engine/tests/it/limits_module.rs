//! The limits that `limits` adds to the engine, as callers observe them.
#![expect(clippy::float_cmp, reason = "units are whole or half, and so exact")]

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{
    AttributeValue, ConditionCheck, Delete, ItemCollectionMetrics, KeysAndAttributes, Put, PutRequest,
    ReturnConsumedCapacity, ReturnItemCollectionMetrics, TransactWriteItem, Update, WriteRequest,
};
use embedded_engine::limits::{EngineLimits, Throughput};
use futures::future::join_all;

use crate::table::{Item, TABLE, create, engine, get, indexed_item, item, key, put, text};

fn filled(partition: &str, sort: &str, bytes: usize) -> Item {
    item([("PK", text(partition)), ("SK", text(sort)), ("filling", text("x".repeat(bytes)))])
}

async fn code_of_put(client: &Client, item: Item) -> Option<String> {
    let answer = client.put_item().table_name(TABLE).set_item(Some(item)).send().await;
    answer.err().map(|error| error.code().unwrap_or("no code").to_owned())
}

async fn code_of_get(client: &Client, key: Item) -> Option<String> {
    let answer = client.get_item().table_name(TABLE).set_key(Some(key)).consistent_read(true).send().await;
    answer.err().map(|error| error.code().unwrap_or("no code").to_owned())
}

fn put_request(item: Item) -> WriteRequest {
    WriteRequest::builder().put_request(PutRequest::builder().set_item(Some(item)).build().unwrap()).build()
}

fn put_part(item: Item) -> TransactWriteItem {
    TransactWriteItem::builder().put(Put::builder().table_name(TABLE).set_item(Some(item)).build().unwrap()).build()
}

fn check_part(key: Item) -> TransactWriteItem {
    let check = ConditionCheck::builder().table_name(TABLE).set_key(Some(key));
    let check = check.condition_expression("attribute_not_exists(PK) OR attribute_exists(PK)").build().unwrap();
    TransactWriteItem::builder().condition_check(check).build()
}

/// Executes a transaction. Returns the codes of its cancellation reasons, or `None` if it was not
/// cancelled.
async fn reasons(client: &Client, parts: Vec<TransactWriteItem>) -> Option<Vec<String>> {
    let answer = client.transact_write_items().set_transact_items(Some(parts)).send().await;
    let error = answer.err()?.into_service_error();
    let TransactWriteItemsError::TransactionCanceledException(cancelled) = error else { panic!("{error:?}") };
    Some(cancelled.cancellation_reasons().iter().map(|reason| reason.code().unwrap().to_owned()).collect())
}

/// A clock that only advances on request.
#[derive(Clone, Default)]
struct Clock(Arc<AtomicU64>);

impl Clock {
    fn advance(&self, milliseconds: u64) {
        self.0.fetch_add(milliseconds, Ordering::Relaxed);
    }

    fn now(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }
}

const THROTTLED: Option<&str> = Some("ThrottlingException");

#[tokio::test]
async fn a_partition_takes_its_units_a_second_and_no_more() {
    let engine = engine().await;
    let clock = Clock::default();
    let limits = EngineLimits::with_clock(&engine, {
        let clock = clock.clone();
        move || clock.now()
    });
    let client = limits.client();
    let small = Throughput { reads: 4.0, writes: 10.0, burst: Duration::ZERO };
    limits.set_throughput(move |partition| (partition == "hot").then_some(small));
    for _ in 0..3 {
        for _ in 0..10 {
            assert_eq!(code_of_put(&client, key("hot", "a")).await, None);
        }
        assert_eq!(code_of_put(&client, key("hot", "a")).await.as_deref(), THROTTLED);
        assert_eq!(code_of_put(&client, key("cold", "a")).await, None, "other partitions are unlimited");
        for _ in 0..4 {
            assert_eq!(code_of_get(&client, key("hot", "a")).await, None);
        }
        assert_eq!(code_of_get(&client, key("hot", "a")).await.as_deref(), THROTTLED);
        clock.advance(1_000);
    }
    let usage = limits.usage()["hot"];
    assert_eq!((usage.write_units, usage.read_units), (30.0, 12.0));
    assert_eq!((usage.throttled_writes, usage.throttled_reads), (3, 3));
    assert_eq!(limits.usage()["cold"].throttled_writes, 0);
    limits.reset_usage();
    // A large item is admitted although it exceeds the remaining units. The deficit from its 25
    // units is then refilled at 10 units per second.
    assert_eq!(code_of_put(&client, filled("hot", "b", 25_000)).await, None);
    clock.advance(1_000);
    assert_eq!(code_of_put(&client, key("hot", "a")).await.as_deref(), THROTTLED);
    clock.advance(600);
    assert_eq!(code_of_put(&client, key("hot", "a")).await, None);
    assert_eq!(limits.usage()["hot"].write_units, 26.0);
}

#[tokio::test]
async fn unused_units_are_kept_for_a_burst() {
    let engine = engine().await;
    let clock = Clock::default();
    let limits = EngineLimits::with_clock(&engine, {
        let clock = clock.clone();
        move || clock.now()
    });
    let client = limits.client();
    limits.set_throughput(|_| Some(Throughput { reads: 1.0, writes: 2.0, burst: Duration::from_secs(20) }));
    let admitted = async || {
        let mut admitted = 0;
        while code_of_put(&client, key("p", "a")).await.is_none() {
            admitted += 1;
        }
        admitted
    };
    assert_eq!(admitted().await, 40, "the burst is full at first");
    clock.advance(5_000);
    assert_eq!(admitted().await, 10);
    clock.advance(3_600_000);
    assert_eq!(admitted().await, 40, "the burst is limited");
    assert_eq!(Throughput::BURST_DURATION, Duration::from_mins(5));
}

#[tokio::test]
async fn indexes_are_charged_to_the_partition_unless_they_are_global() {
    let engine = engine().await;
    let limits = EngineLimits::new(&engine);
    let client = limits.client();
    let mut indexed = indexed_item("p", "a", 10);
    indexed.insert("gsi1pk".to_owned(), text("g"));
    indexed.insert("gsi1sk".to_owned(), text("g"));
    let answer = client.put_item().table_name(TABLE).set_item(Some(indexed.clone())).send().await.unwrap();
    assert!(answer.consumed_capacity().is_none(), "it was not requested");
    // One unit for the item, and one for its entry in each of four local indexes.
    assert_eq!(limits.usage()["p"].write_units, 5.0);
    let update = client.update_item().table_name(TABLE).set_key(Some(key("p", "a"))).update_expression("SET n = :x");
    let update = update.expression_attribute_values(":x", text("x"));
    let answer = update.return_consumed_capacity(ReturnConsumedCapacity::Indexes).send().await.unwrap();
    assert_eq!(answer.consumed_capacity().unwrap().capacity_units(), Some(1.0));
    assert_eq!(limits.usage()["p"].write_units, 6.0);
    let query = client.query().table_name(TABLE).index_name("GSI1").key_condition_expression("#g=:g AND gsi1sk = :g");
    let query = query.expression_attribute_names("#g", "gsi1pk").expression_attribute_values(":g", text("g"));
    assert_eq!(query.send().await.unwrap().count(), 1);
    assert_eq!(limits.usage()["GSI1 g"].read_units, 0.5);
    let query = client.query().table_name(TABLE).index_name("LSI1").consistent_read(true);
    let query = query.key_condition_expression("(PK = :p) AND begins_with(lsi1sk, :l)");
    let query = query.expression_attribute_values(":p", text("p")).expression_attribute_values(":l", text("l"));
    assert_eq!(query.send().await.unwrap().count(), 1);
    assert_eq!(limits.usage()["p"].read_units, 1.0);
    // A write whose condition fails costs as much as a successful write.
    let refused = client.put_item().table_name(TABLE).set_item(Some(key("p", "a")));
    refused.condition_expression("attribute_not_exists(PK)").send().await.unwrap_err();
    assert_eq!(limits.usage()["p"].write_units, 7.0);
}

#[tokio::test]
async fn a_throttled_part_of_a_batch_is_left_over() {
    let engine = engine().await;
    let limits = EngineLimits::new(&engine);
    let client = limits.client();
    limits.set_throughput(|partition| (partition == "hot").then_some(Throughput::NONE));
    let items = [key("cold", "1"), key("hot", "1"), key("cold", "2"), key("hot", "2")];
    let write = client.batch_write_item().request_items(TABLE, items.iter().cloned().map(put_request).collect());
    let left = write.send().await.unwrap().unprocessed_items.unwrap();
    assert_eq!(left[TABLE], [put_request(items[1].clone()), put_request(items[3].clone())]);
    assert!(get(&engine.client(), key("cold", "2")).await.is_some());
    assert_eq!(get(&engine.client(), key("hot", "2")).await, None);

    let keys = KeysAndAttributes::builder().consistent_read(true).set_keys(Some(items.to_vec())).build().unwrap();
    let read = client.batch_get_item().request_items(TABLE, keys);
    let answer = read.return_consumed_capacity(ReturnConsumedCapacity::Total).send().await.unwrap();
    assert_eq!(answer.responses().unwrap()[TABLE].len(), 2);
    let left = &answer.unprocessed_keys().unwrap()[TABLE];
    assert_eq!((left.keys(), left.consistent_read()), (&[items[1].clone(), items[3].clone()][..], Some(true)));
    assert_eq!(answer.consumed_capacity()[0].capacity_units(), Some(2.0));
    assert_eq!(limits.usage()["cold"].read_units, 2.0);

    limits.set_throughput(|_| Some(Throughput::NONE));
    let write = client.batch_write_item().request_items(TABLE, vec![put_request(key("hot", "1"))]);
    let error = write.send().await.unwrap_err().into_service_error();
    assert!(error.is_provisioned_throughput_exceeded_exception(), "{error:?}");
}

#[tokio::test]
async fn a_throttled_part_cancels_a_transaction() {
    let engine = engine().await;
    let limits = EngineLimits::new(&engine);
    let client = limits.client();
    limits.set_throughput(|partition| (partition == "hot").then_some(Throughput::NONE));
    let parts = || vec![put_part(key("cold", "a")), check_part(key("hot", "a"))];
    assert_eq!(reasons(&client, parts()).await.unwrap(), ["None", "ThrottlingError"]);
    assert_eq!(get(&engine.client(), key("cold", "a")).await, None);
    limits.set_throughput(|_| None);
    assert_eq!(reasons(&client, parts()).await, None);
    // The successful transaction consumed two units in each partition, and the throttled
    // transaction consumed none.
    let usage = limits.usage();
    assert_eq!((usage["cold"].write_units, usage["hot"].write_units), (2.0, 2.0));
}

/// Of concurrent transactions that check the same item, at least one succeeds, and refused ones
/// have no effect.
#[tokio::test]
async fn transactions_that_only_check_the_same_item_conflict() {
    let engine = engine().await;
    let limits = EngineLimits::new(&engine);
    // The latency is so long that all transactions begin while the first one holds its items, even
    // on a busy machine.
    limits.set_latency(Duration::from_millis(500));
    let client = limits.client();
    let parts = |number: usize| vec![put_part(key("p", &number.to_string())), check_part(key("p", "checked"))];
    let outcomes = join_all((0..10).map(|number| reasons(&client, parts(number)))).await;
    let refused: Vec<_> = outcomes.iter().flatten().collect();
    assert!((1..10).contains(&refused.len()), "{outcomes:?}");
    assert!(refused.iter().all(|reasons| **reasons == ["None", "TransactionConflict"]), "{refused:?}");
    for (number, outcome) in outcomes.iter().enumerate() {
        let is_there = get(&engine.client(), key("p", &number.to_string())).await.is_some();
        assert_eq!(is_there, outcome.is_none());
    }
    limits.set_latency(Duration::ZERO);
    for number in 0..10 {
        assert_eq!(reasons(&client, parts(number)).await, None, "sequential transactions do not conflict");
    }
    // The engine itself has a single lock and no conflicts.
    let client = engine.client();
    let outcomes = join_all((0..10).map(|number| reasons(&client, parts(number)))).await;
    assert!(outcomes.iter().all(Option::is_none));
}

#[tokio::test]
async fn a_write_conflicts_with_a_transaction_and_not_with_a_write() {
    let engine = engine().await;
    let limits = EngineLimits::new(&engine);
    let client = limits.client();
    limits.set_latency(UNDER_WAY);
    let writes = (0..10).map(|_| code_of_put(&client, key("p", "a")));
    assert!(join_all(writes).await.iter().all(Option::is_none));
    let mut rounds = 0..ROUNDS;
    while !Box::pin(writes_conflict_with_a_transaction(&client)).await {
        assert!(rounds.next().is_some(), "writes do not conflict with a transaction");
    }
    let mut rounds = 0..ROUNDS;
    while !Box::pin(a_transaction_conflicts_with_a_write(&client)).await {
        assert!(rounds.next().is_some(), "a transaction does not conflict with a write");
    }
}

/// Duration of a request in flight, and the delay after which the overlapping requests start.
const UNDER_WAY: Duration = Duration::from_millis(300);
const LATER: Duration = Duration::from_millis(50);
/// Number of attempts. On a busy machine, the overlapping requests may start before the request in
/// flight, or after it has ended. It is unlikely that this happens in every round.
const ROUNDS: u32 = 20;

/// Checks whether a write and a batch conflict with a transaction that is in flight when they
/// start. Reads never conflict.
async fn writes_conflict_with_a_transaction(client: &Client) -> bool {
    let transaction = reasons(client, vec![put_part(key("p", "a")), put_part(key("p", "b"))]);
    let others = async {
        tokio::time::sleep(LATER).await;
        let read = code_of_get(client, key("p", "b")).await;
        let batch = vec![put_request(key("p", "b")), put_request(key("p", "c"))];
        let batch = client.batch_write_item().request_items(TABLE, batch).send();
        let (write, batch) = tokio::join!(code_of_put(client, key("p", "b")), batch);
        (read, write, batch.unwrap())
    };
    let (transaction, (read, write, batch)) = tokio::join!(transaction, others);
    assert_eq!(read, None);
    let left = batch.unprocessed_items().and_then(|left| left.get(TABLE)).cloned().unwrap_or_default();
    let are_refused = write.as_deref() == Some("TransactionConflictException") && left == [put_request(key("p", "b"))];
    transaction.is_none() && are_refused
}

/// Checks whether a transaction conflicts with a write that is in flight when it starts.
async fn a_transaction_conflicts_with_a_write(client: &Client) -> bool {
    let transaction = async {
        tokio::time::sleep(LATER).await;
        reasons(client, vec![put_part(key("p", "a")), put_part(key("p", "b"))]).await
    };
    let (write, transaction) = tokio::join!(code_of_put(client, key("p", "b")), transaction);
    write.is_none() && transaction.is_some_and(|reasons| reasons.join(" ") == "None TransactionConflict")
}

#[tokio::test]
async fn a_batch_reads_a_megabyte_of_a_partition() {
    let engine = engine().await;
    let client = EngineLimits::new(&engine).client();
    let keys: Vec<_> =
        ["a", "b"].iter().flat_map(|partition| (0..6).map(|sort| key(partition, &sort.to_string()))).collect();
    for key in &keys {
        let mut item = key.clone();
        item.insert("filling".to_owned(), text("x".repeat(300 << 10)));
        put(&engine.client(), item).await;
    }
    let asked = [&[key("a", "none")][..], &keys].concat();
    let mut wanted = Some(KeysAndAttributes::builder().consistent_read(true).set_keys(Some(asked)).build().unwrap());
    let (mut rounds, mut units) = (Vec::new(), 0.0);
    while let Some(keys) = wanted {
        let read = client.batch_get_item().request_items(TABLE, keys);
        let answer = read.return_consumed_capacity(ReturnConsumedCapacity::Total).send().await.unwrap();
        units += answer.consumed_capacity()[0].capacity_units().unwrap();
        rounds.push(answer.responses.unwrap()[TABLE].len());
        wanted = answer.unprocessed_keys.and_then(|mut tables| tables.remove(TABLE));
    }
    assert_eq!(rounds, [6, 6], "three items of each partition");
    // Each item costs 76 units, and the missing item costs one.
    assert_eq!(units, 12.0 * 76.0 + 1.0);
}

const FULL: Option<&str> = Some("ItemCollectionSizeLimitExceededException");

#[tokio::test]
async fn a_collection_at_its_limit_takes_what_does_not_let_it_grow() {
    let engine = engine().await;
    let limits = EngineLimits::new(&engine);
    let client = limits.client();
    let mut indexed = indexed_item("full", "indexed", 1_000);
    put(&engine.client(), indexed.clone()).await;
    put(&engine.client(), filled("full", "a", 10_000)).await;
    let bytes = limits.collection_bytes(TABLE, "full").await.unwrap();
    // The size of the names and values of the items, and of the keys in four local indexes.
    let entries = 4 * ("PKfull".len() + "SKindexed".len() + "lsi1sk".len() + "lsi1sk-indexed".len());
    let items = "PKfullSKindexedfilling".len()
        + 1_000
        + 4 * ("lsi1sk".len() + "lsi1sk-indexed".len())
        + "PKfullSKafilling".len()
        + 10_000;
    assert_eq!(bytes, u64::try_from(items + entries).unwrap());
    let limit = usize::try_from(bytes).unwrap();
    limits.set_collection_limit(move |partition| (partition == "full").then_some(limit));

    assert_eq!(code_of_put(&client, key("full", "new")).await.as_deref(), FULL);
    assert_eq!(code_of_put(&client, key("other", "new")).await, None);
    let update = |expression: &str, value: &str| {
        let update =
            client.update_item().table_name(TABLE).set_key(Some(key("full", "a"))).update_expression(expression);
        let update = update.expression_attribute_values(":x", text(value));
        async move { update.send().await.err().map(|error| error.code().unwrap().to_owned()) }
    };
    assert_eq!(update("SET n = :x", "x").await.as_deref(), FULL, "slightly larger");
    assert_eq!(update("SET filling = :x", &"y".repeat(10_000)).await, None, "the same size");
    indexed.insert("lsi1sk".to_owned(), text("longer than it was before"));
    assert_eq!(code_of_put(&client, indexed.clone()).await.as_deref(), FULL, "the index entry grows");
    let batch = client.batch_write_item().request_items(TABLE, vec![put_request(key("full", "new"))]);
    assert_eq!(batch.send().await.unwrap_err().code(), FULL);
    let swap = vec![put_part(filled("full", "b", 10_000)), delete_part(key("full", "a")), put_part(key("other", "b"))];
    let grow =
        vec![put_part(key("other", "b")), put_part(key("full", "c")), check_part(key("full", "a")), update_part()];
    let codes = reasons(&client, grow).await.unwrap();
    assert_eq!(codes, ["None", "ItemCollectionSizeLimitExceeded", "None", "ItemCollectionSizeLimitExceeded"]);
    assert_eq!(get(&engine.client(), key("other", "b")).await, None);
    assert_eq!(reasons(&client, swap).await, None, "one item replaces another");
    assert_eq!(update("SET filling = :x", "y").await.as_deref(), FULL, "the deleted item would be created again");
    client.delete_item().table_name(TABLE).set_key(Some(key("full", "b"))).send().await.unwrap();
    assert_eq!(code_of_put(&client, key("full", "new")).await, None, "there is space again");
    // If both a condition and a limit are violated, the caller gets the error about the condition.
    let refused = client.put_item().table_name(TABLE).set_item(Some(filled("full", "new", 20_000)));
    let refused = refused.condition_expression("attribute_not_exists(PK)").send().await.unwrap_err();
    assert_eq!(refused.code(), Some("ConditionalCheckFailedException"));
}

fn delete_part(key: Item) -> TransactWriteItem {
    let delete = Delete::builder().table_name(TABLE).set_key(Some(key)).build().unwrap();
    TransactWriteItem::builder().delete(delete).build()
}

/// Returns a transaction part that enlarges an item of the full collection.
fn update_part() -> TransactWriteItem {
    let update = Update::builder().table_name(TABLE).set_key(Some(key("full", "indexed")));
    let update =
        update.update_expression("SET more = :x").expression_attribute_values(":x", AttributeValue::Bool(true));
    TransactWriteItem::builder().update(update.build().unwrap()).build()
}

/// Returns the partitions, each with the lower bound of its size in GB.
fn sizes(metrics: Option<&HashMap<String, Vec<ItemCollectionMetrics>>>) -> Vec<(String, f64)> {
    let of_table = metrics.and_then(|metrics| metrics.get(TABLE)).map(Vec::as_slice).unwrap_or_default();
    let mut sizes: Vec<_> = of_table
        .iter()
        .map(|one| {
            let partition = one.item_collection_key().unwrap()["PK"].as_s().unwrap().clone();
            (partition, one.size_estimate_range_gb()[0])
        })
        .collect();
    sizes.sort_by(|one, other| one.0.cmp(&other.0));
    sizes
}

#[tokio::test]
async fn who_asks_for_the_sizes_of_collections_gets_them() {
    let engine = engine().await;
    let limits = EngineLimits::new(&engine);
    let client = limits.client();
    limits.set_collection_limit(|_| Some(10_000));
    let asked = Some(ReturnItemCollectionMetrics::Size);
    let writes = [filled("a", "1", 4_000), filled("b", "1", 6_000), filled("a", "2", 4_200)];
    let batch = client.batch_write_item().request_items(TABLE, writes.map(put_request).to_vec());
    let answer = batch.set_return_item_collection_metrics(asked.clone()).send().await.unwrap();
    assert_eq!(sizes(answer.item_collection_metrics()), [("a".to_owned(), 8.0), ("b".to_owned(), 6.0)]);
    let batch = client.batch_write_item().request_items(TABLE, vec![put_request(key("a", "3"))]);
    assert_eq!(sizes(batch.send().await.unwrap().item_collection_metrics()), [], "not requested");
    let parts = vec![put_part(filled("b", "2", 1_000)), put_part(filled("c", "1", 2_000))];
    let transaction = client.transact_write_items().set_transact_items(Some(parts));
    let answer = transaction.set_return_item_collection_metrics(asked.clone()).send().await.unwrap();
    assert_eq!(sizes(answer.item_collection_metrics()), [("b".to_owned(), 7.0), ("c".to_owned(), 2.0)]);
    let put = client.put_item().table_name(TABLE).set_item(Some(filled("c", "2", 7_000)));
    let answer = put.set_return_item_collection_metrics(asked).send().await.unwrap();
    assert_eq!(answer.item_collection_metrics().unwrap().size_estimate_range_gb(), [9.0, 10.0]);
}

#[tokio::test]
async fn tables_are_made_and_described_as_ever() {
    let engine = embedded_engine::Engine::memory().unwrap();
    let client = EngineLimits::new(&engine).client();
    let missing = client.get_item().table_name(TABLE).set_key(Some(key("p", "a"))).send().await.unwrap_err();
    assert!(missing.into_service_error().is_resource_not_found_exception());
    create(&client).await;
    put(&client, key("p", "a")).await;
    assert!(get(&client, key("p", "a")).await.is_some());
    assert_eq!(client.scan().table_name(TABLE).send().await.unwrap().count(), 1);
}
