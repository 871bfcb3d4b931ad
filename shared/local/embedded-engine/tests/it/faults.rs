//! Each fault, as callers observe it.

use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes, Put, PutRequest, TransactWriteItem, WriteRequest};
use embedded_engine::Engine;
use embedded_engine::faults::{FaultInjector, InjectedFault};

use crate::table::{Item, TABLE, engine, get, item, key, put, text};

async fn injector() -> (Engine, FaultInjector) {
    let engine = engine().await;
    let faults = FaultInjector::new(engine.http_client());
    (engine, faults)
}

/// Adds 1 to a counter. Returns the code of the error, or `io` for a lost connection.
async fn count(client: &Client) -> Result<(), String> {
    let update =
        client.update_item().table_name(TABLE).set_key(Some(key("p", "counter"))).update_expression("ADD n :one");
    let update = update.expression_attribute_values(":one", AttributeValue::N("1".to_owned()));
    code(update.send().await)
}

fn code<T, E: ProvideErrorMetadata, R>(answer: Result<T, SdkError<E, R>>) -> Result<(), String> {
    match answer {
        Ok(_) => Ok(()),
        Err(SdkError::DispatchFailure(failure)) if failure.is_io() => Err("io".to_owned()),
        Err(error) => Err(error.code().unwrap_or("no code").to_owned()),
    }
}

async fn counted(engine: &Engine) -> Option<String> {
    let counter = get(&engine.client(), key("p", "counter")).await?;
    Some(counter["n"].as_n().unwrap().clone())
}

fn errors(answers: &[Result<(), String>]) -> Vec<&str> {
    answers.iter().map(|answer| answer.as_ref().err().map_or("", String::as_str)).collect()
}

#[tokio::test]
async fn a_refused_call_is_not_executed() {
    let (engine, faults) = injector().await;
    let client = faults.client();
    faults.refuse_every(2);
    let mut answers = Vec::new();
    for _ in 0..8 {
        answers.push(count(&client).await);
    }
    let throughput = "ProvisionedThroughputExceededException";
    assert_eq!(
        errors(&answers),
        ["", "ThrottlingException", "", throughput, "", "TransactionConflictException", "", "ThrottlingException"]
    );
    assert_eq!(counted(&engine).await.as_deref(), Some("4"));

    faults.refuse_every(1);
    let reads = [(); 3].map(|()| client.get_item().table_name(TABLE).set_key(Some(key("p", "a"))));
    let mut answers = Vec::new();
    for read in reads {
        answers.push(code(read.send().await));
    }
    assert_eq!(errors(&answers), ["ThrottlingException", throughput, "ThrottlingException"], "reads do not conflict");
    assert!(client.list_tables().send().await.is_ok(), "operations on tables have no faults");

    faults.refuse_every(0);
    assert_eq!(count(&client).await, Ok(()));
}

#[tokio::test]
async fn a_transaction_in_conflict_is_cancelled() {
    let (_engine, faults) = injector().await;
    faults.refuse_every(1);
    let put = |sort| {
        let put = Put::builder().table_name(TABLE).set_item(Some(key("p", sort))).build().unwrap();
        TransactWriteItem::builder().put(put).build()
    };
    let client = faults.client();
    let transaction = client.transact_write_items().transact_items(put("a")).transact_items(put("b"));
    let first = transaction.clone().send().await.unwrap_err().into_service_error();
    assert_eq!(first.code(), Some("ThrottlingException"));
    let second = transaction.clone().send().await.unwrap_err().into_service_error();
    assert!(second.is_provisioned_throughput_exceeded_exception());
    let third = transaction.send().await.unwrap_err().into_service_error();
    let TransactWriteItemsError::TransactionCanceledException(cancelled) = third else { panic!("{third:?}") };
    let codes: Vec<_> = cancelled.cancellation_reasons().iter().map(|reason| reason.code().unwrap()).collect();
    assert_eq!(codes, ["TransactionConflict", "None"]);
}

#[tokio::test]
async fn a_trouble_begins_and_ends_where_it_was_asked_to() {
    let (engine, faults) = injector().await;
    let client = faults.client();
    faults.trouble_at(InjectedFault::Conflict, 2, 2);
    let mut answers = Vec::new();
    for _ in 0..4 {
        answers.push(count(&client).await);
    }
    assert_eq!(errors(&answers), ["", "TransactionConflictException", "TransactionConflictException", ""]);
    assert_eq!(counted(&engine).await.as_deref(), Some("2"));
    // `GetItem` can neither conflict nor be halved, so it succeeds.
    for trouble in [InjectedFault::Conflict, InjectedFault::Halved] {
        faults.trouble_at(trouble, 1, 1);
        assert!(get(&client, key("p", "counter")).await.is_some());
    }
}

#[tokio::test]
async fn a_call_whose_answer_is_lost_is_executed() {
    let (engine, faults) = injector().await;
    faults.lose_answer_every(2);
    let mut answers = Vec::new();
    for _ in 0..4 {
        answers.push(count(&faults.client()).await);
    }
    assert_eq!(errors(&answers), ["", "io", "", "InternalServerError"]);
    assert_eq!(counted(&engine).await.as_deref(), Some("4"));
}

#[tokio::test]
async fn a_refused_call_has_no_answer_to_lose() {
    let (engine, faults) = injector().await;
    faults.refuse_every(2);
    faults.lose_answer_every(2);
    let mut answers = Vec::new();
    for _ in 0..4 {
        answers.push(count(&faults.client()).await);
    }
    assert_eq!(errors(&answers), ["", "ThrottlingException", "io", "ProvisionedThroughputExceededException"]);
    assert_eq!(counted(&engine).await.as_deref(), Some("2"));
}

#[tokio::test]
async fn half_a_batch_is_left_over() {
    let (engine, faults) = injector().await;
    let client = faults.client();
    faults.halve_batch_every(2);
    let request = |sort: usize| {
        let put = PutRequest::builder().set_item(Some(key("p", &sort.to_string()))).build().unwrap();
        WriteRequest::builder().put_request(put).build()
    };
    let write = client.batch_write_item().request_items(TABLE, (0..5).map(request).collect());
    assert!(write.clone().send().await.unwrap().unprocessed_items().unwrap().is_empty());
    for sort in 0..5 {
        let delete = engine.client().delete_item().table_name(TABLE).set_key(Some(key("p", &sort.to_string())));
        delete.send().await.unwrap();
    }
    let left = write.send().await.unwrap().unprocessed_items.unwrap();
    assert_eq!(left[TABLE], [request(3), request(4)]);
    assert!(get(&client, key("p", "2")).await.is_some());
    assert_eq!(get(&client, key("p", "3")).await, None, "not executed");

    faults.halve_batch_every(1);
    let keys = ["0", "1", "2"].map(|sort| key("p", sort)).to_vec();
    let wanted = KeysAndAttributes::builder().projection_expression("SK").set_keys(Some(keys));
    let mut wanted = Some(wanted.build().unwrap());
    let mut rounds = Vec::new();
    while let Some(keys) = wanted {
        let mut answer = client.batch_get_item().request_items(TABLE, keys).send().await.unwrap();
        rounds.push(answer.responses.take().unwrap()[TABLE].len());
        wanted = answer.unprocessed_keys.and_then(|mut keys| keys.remove(TABLE));
        assert!(wanted.as_ref().is_none_or(|keys| keys.projection_expression() == Some("SK")));
    }
    assert_eq!(rounds, [2, 1], "at least one key is processed");
}

#[tokio::test]
async fn a_frozen_global_index_is_behind_until_it_catches_up() {
    let (engine, faults) = injector().await;
    let client = faults.client();
    let indexed = |sort: &str, position: &str| {
        item([
            ("PK", text("p")),
            ("SK", text(sort)),
            ("gsi1pk", text("all")),
            ("gsi1sk", text(position)),
            ("lsi1sk", text(position)),
        ])
    };
    put(&client, indexed("stays", "1")).await;
    put(&client, indexed("moves", "2")).await;
    put(&client, indexed("goes", "3")).await;
    faults.freeze_global_indexes(&engine).unwrap();
    put(&client, indexed("moves", "0")).await;
    put(&client, indexed("comes", "4")).await;
    client.delete_item().table_name(TABLE).set_key(Some(key("p", "goes"))).send().await.unwrap();

    assert_eq!(query(&client, "GSI1").await, ["stays", "moves", "goes"]);
    assert_eq!(query(&client, "LSI1").await, ["moves", "stays", "comes"], "local indexes are never stale");
    assert!(get(&client, key("p", "comes")).await.is_some());

    faults.freeze_global_indexes(&engine).unwrap();
    assert_eq!(query(&client, "GSI1").await, ["moves", "stays", "comes"], "frozen anew");
    put(&client, indexed("last", "5")).await;
    faults.catch_up();
    assert_eq!(query(&client, "GSI1").await, ["moves", "stays", "comes", "last"]);
}

async fn query(client: &Client, index: &str) -> Vec<String> {
    let (attribute, value) = if index == "GSI1" { ("gsi1pk", "all") } else { ("PK", "p") };
    let query =
        client.query().table_name(TABLE).index_name(index).key_condition_expression(format!("{attribute} = :v"));
    let found = query.expression_attribute_values(":v", text(value)).send().await.unwrap();
    found.items().iter().map(|item: &Item| item["SK"].as_s().unwrap().clone()).collect()
}

#[tokio::test]
async fn calls_are_counted_by_operation() {
    let (_engine, faults) = injector().await;
    let client = faults.client();
    faults.refuse_every(2);
    for _ in 0..2 {
        let _ = count(&client).await;
    }
    client.list_tables().send().await.unwrap();
    assert_eq!(faults.calls("UpdateItem"), 2, "refused calls included");
    assert_eq!(faults.clone().all_calls(), [("ListTables".to_owned(), 1), ("UpdateItem".to_owned(), 2)]);
    faults.reset_calls();
    assert_eq!(faults.calls("UpdateItem"), 0);
}

#[tokio::test]
async fn a_call_waits_at_a_gate() {
    let (engine, faults) = injector().await;
    let mut gate = faults.pause_before("UpdateItem", 2);
    count(&faults.client()).await.unwrap();
    let client = faults.client();
    let held = tokio::spawn(async move { count(&client).await });
    gate.reached().await;
    gate.reached().await;
    assert_eq!(counted(&engine).await.as_deref(), Some("1"), "held before it is executed");
    count(&faults.client()).await.unwrap();
    assert_eq!(counted(&engine).await.as_deref(), Some("2"), "the third call passes");
    gate.open();
    held.await.unwrap().unwrap();
    assert_eq!(counted(&engine).await.as_deref(), Some("3"));

    let mut gate = faults.pause_after("UpdateItem", 1);
    let client = faults.client();
    let held = tokio::spawn(async move { count(&client).await });
    gate.reached().await;
    assert_eq!(counted(&engine).await.as_deref(), Some("4"), "held after it was executed");
    assert!(!held.is_finished());
    drop(gate);
    held.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_dropped_gate_stops_no_call() {
    let (_engine, faults) = injector().await;
    drop(faults.pause_before("UpdateItem", 1));
    let passed = tokio::time::timeout(Duration::from_mins(5), count(&faults.client())).await;
    assert_eq!(passed, Ok(Ok(())));
}
