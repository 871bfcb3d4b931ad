//! Requests without a socket and over loopback, whose results are checked with the SDK.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{
    ConditionCheck, Delete, DeleteRequest, KeysAndAttributes, Put, PutRequest, ReturnValue,
    ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update, WriteRequest,
};
use embedded_engine::{Engine, EngineError};

use crate::table::{TABLE, binary_set, create, engine, get, indexed_item, item, key, put, text};

const ALL_OLD: ReturnValuesOnConditionCheckFailure = ReturnValuesOnConditionCheckFailure::AllOld;

#[tokio::test]
async fn without_a_socket() {
    every_request(&engine().await.client()).await;
}

/// Repeats the requests on disk, where a batch of writes is one commit.
#[tokio::test]
async fn on_disk() {
    let directory = tempfile::tempdir().unwrap();
    let client = Engine::open(directory.path()).unwrap().client();
    create(&client).await;
    every_request(&client).await;
}

#[tokio::test]
async fn over_loopback() {
    let engine = engine().await;
    let server = engine.serve(([127, 0, 0, 1], 0)).await.unwrap();
    every_request(&server.client()).await;
    assert!(get(&engine.client(), key("p", "a")).await.is_some(), "it is the same engine");

    let url = server.url();
    server.shutdown().await.unwrap();
    let gone = embedded_engine::client_for_endpoint(&url).list_tables().send().await.unwrap_err();
    assert!(gone.as_service_error().is_none(), "{gone:?}");
}

#[tokio::test]
async fn only_loopback_is_served() {
    let refused = Engine::memory().unwrap().serve(([0, 0, 0, 0], 0)).await.unwrap_err();
    assert!(matches!(refused, EngineError::Io(_)), "{refused}");
}

async fn every_request(client: &Client) {
    items_come_back(client).await;
    a_batch_of_writes(client).await;
    a_failed_condition_shows_the_item(client).await;
    a_cancelled_transaction_says_why(client).await;
    binary_sets_add_and_delete(client).await;
    local_indexes_are_queried_by_prefix(client).await;
    unknown_tables_are_not_found(client).await;
}

async fn items_come_back(client: &Client) {
    let item = indexed_item("p", "a", 100);
    put(client, item.clone()).await;
    assert_eq!(get(client, key("p", "a")).await, Some(item.clone()));
    let keys = KeysAndAttributes::builder().keys(key("p", "a")).keys(key("p", "none")).consistent_read(true);
    let batch = client.batch_get_item().request_items(TABLE, keys.build().unwrap()).send().await.unwrap();
    assert_eq!(batch.responses.unwrap()[TABLE], vec![item]);
    client.delete_item().table_name(TABLE).set_key(Some(key("p", "a"))).send().await.unwrap();
    assert_eq!(get(client, key("p", "a")).await, None);
}

async fn a_batch_of_writes(client: &Client) {
    put(client, indexed_item("batch", "old", 1)).await;
    let delete = DeleteRequest::builder().set_key(Some(key("batch", "old"))).build().unwrap();
    let new = PutRequest::builder().set_item(Some(indexed_item("batch", "new", 2))).build().unwrap();
    let writes = vec![
        WriteRequest::builder().delete_request(delete).build(),
        WriteRequest::builder().put_request(new.clone()).build(),
    ];
    let done = client.batch_write_item().request_items(TABLE, writes).send().await.unwrap();
    assert!(done.unprocessed_items.unwrap_or_default().is_empty());
    assert_eq!(get(client, key("batch", "old")).await, None);
    assert_eq!(get(client, key("batch", "new")).await, Some(indexed_item("batch", "new", 2)));
    let twice = WriteRequest::builder().put_request(new).build();
    let refused = client.batch_write_item().request_items(TABLE, vec![twice.clone(), twice]).send().await.unwrap_err();
    assert_eq!(refused.code(), Some("ValidationException"));
}

async fn a_failed_condition_shows_the_item(client: &Client) {
    let item = indexed_item("p", "a", 1);
    put(client, item.clone()).await;
    let again = client.put_item().table_name(TABLE).set_item(Some(key("p", "a")));
    let again =
        again.condition_expression("attribute_not_exists(PK)").return_values_on_condition_check_failure(ALL_OLD);
    let error = again.send().await.unwrap_err().into_service_error();
    let aws_sdk_dynamodb::operation::put_item::PutItemError::ConditionalCheckFailedException(failed) = error else {
        panic!("{error:?}")
    };
    assert_eq!(failed.item(), Some(&item));
}

async fn a_cancelled_transaction_says_why(client: &Client) {
    let item = indexed_item("p", "a", 1);
    put(client, item.clone()).await;
    let put = Put::builder().table_name(TABLE).set_item(Some(key("p", "new"))).build().unwrap();
    let update = Update::builder().table_name(TABLE).set_key(Some(key("p", "a"))).update_expression("SET detail = :x");
    let update = update.expression_attribute_values(":x", text("x")).condition_expression("attribute_not_exists(PK)");
    let update = update.return_values_on_condition_check_failure(ALL_OLD).build().unwrap();
    let check = ConditionCheck::builder().table_name(TABLE).set_key(Some(key("p", "none")));
    let check = check.condition_expression("attribute_exists(PK)").build().unwrap();
    let delete = Delete::builder().table_name(TABLE).set_key(Some(key("p", "other"))).build().unwrap();
    let transaction = client
        .transact_write_items()
        .transact_items(TransactWriteItem::builder().put(put).build())
        .transact_items(TransactWriteItem::builder().update(update).build())
        .transact_items(TransactWriteItem::builder().condition_check(check).build())
        .transact_items(TransactWriteItem::builder().delete(delete).build());

    let error = transaction.send().await.unwrap_err().into_service_error();
    let TransactWriteItemsError::TransactionCanceledException(cancelled) = error else { panic!("{error:?}") };
    let codes: Vec<_> = cancelled.cancellation_reasons().iter().map(|reason| reason.code().unwrap()).collect();
    assert_eq!(codes, ["None", "ConditionalCheckFailed", "ConditionalCheckFailed", "None"]);
    assert_eq!(cancelled.cancellation_reasons()[1].item(), Some(&item));
    assert_eq!(get(client, key("p", "new")).await, None);
}

async fn binary_sets_add_and_delete(client: &Client) {
    let update = |expression: &str, members: &[&[u8]]| {
        let update =
            client.update_item().table_name(TABLE).set_key(Some(key("p", "set"))).update_expression(expression);
        let update = update.expression_attribute_values(":x", binary_set(members));
        async move { update.return_values(ReturnValue::AllNew).send().await.unwrap().attributes.unwrap() }
    };
    update("ADD points :x", &[b"one", b"two"]).await;
    assert_eq!(update("ADD points :x", &[b"two", b"three"]).await["points"].as_bs().unwrap().len(), 3);
    let left = update("DELETE points :x", &[b"one", b"three", b"none"]).await;
    assert_eq!(left["points"], binary_set(&[b"two"]));
    let emptied = update("DELETE points :x", &[b"two"]).await;
    assert_eq!(emptied, key("p", "set"), "removing the last member removes the attribute");
}

async fn local_indexes_are_queried_by_prefix(client: &Client) {
    for (sort, position) in [("1", "a#2"), ("2", "a#1"), ("3", "b#1")] {
        put(client, item([("PK", text("q")), ("SK", text(sort)), ("lsi1sk", text(position)), ("detail", text("x"))]))
            .await;
    }
    let query = client.query().table_name(TABLE).index_name("LSI1").consistent_read(true);
    let query = query.key_condition_expression("PK = :p AND begins_with(lsi1sk, :s)");
    let query = query.expression_attribute_values(":p", text("q")).expression_attribute_values(":s", text("a#"));
    let found = query.send().await.unwrap();
    let sorted: Vec<_> = found.items().iter().map(|item| item["SK"].as_s().unwrap().as_str()).collect();
    assert_eq!(sorted, ["2", "1"]);
    assert_eq!(found.items()[0].len(), 3, "keys only");
}

async fn unknown_tables_are_not_found(client: &Client) {
    let get = client.get_item().table_name("unknown").set_key(Some(key("p", "a"))).send().await;
    assert!(get.unwrap_err().into_service_error().is_resource_not_found_exception());
    let again = client.describe_table().table_name(TABLE).send().await.unwrap();
    assert_eq!(again.table().unwrap().local_secondary_indexes().len(), 4);
}

#[tokio::test]
async fn a_repeated_transaction_is_executed_once() {
    let client = engine().await.client();
    let update = Update::builder().table_name(TABLE).set_key(Some(key("p", "a"))).update_expression("ADD n :x");
    let one = aws_sdk_dynamodb::types::AttributeValue::N("1".to_owned());
    let update = update.expression_attribute_values(":x", one.clone()).build().unwrap();
    let update = TransactWriteItem::builder().update(update).build();
    for _ in 0..3 {
        let transaction = client.transact_write_items().client_request_token("token").transact_items(update.clone());
        transaction.send().await.unwrap();
    }
    assert_eq!(get(&client, key("p", "a")).await.unwrap()["n"], one);
}

#[tokio::test]
async fn engines_in_memory_are_apart() {
    let (one, other) = (engine().await, Engine::memory().unwrap());
    put(&one.client(), key("p", "a")).await;
    assert!(other.client().list_tables().send().await.unwrap().table_names().is_empty());
    create(&other.client()).await;
    assert_eq!(get(&other.client(), key("p", "a")).await, None);
}
