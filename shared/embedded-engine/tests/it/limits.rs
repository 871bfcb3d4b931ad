//! DynamoDB's limits: those the engine keeps, and those it does not, which the code must keep by itself.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{AttributeValue, Put, PutRequest, ReturnValue, TransactWriteItem, WriteRequest};

use crate::table::{Item, TABLE, binary_set, engine, item, key, put, text};

const LARGEST_ITEM: usize = 400 * 1024;
const LONGEST_EXPRESSION: usize = 4096;

/// The error's code, or nothing if there is none.
fn code<T, E: ProvideErrorMetadata, R>(answer: Result<T, SdkError<E, R>>) -> Option<&'static str> {
    let error = answer.err()?;
    Some(if error.code() == REFUSED { "ValidationException" } else { "another error" })
}

const REFUSED: Option<&str> = Some("ValidationException");

async fn code_of_put(client: &Client, item: Item) -> Option<&'static str> {
    code(client.put_item().table_name(TABLE).set_item(Some(item)).send().await)
}

async fn code_of_update(client: &Client, expression: String) -> Option<&'static str> {
    let update = client.update_item().table_name(TABLE).set_key(Some(key("p", "a"))).update_expression(expression);
    code(update.expression_attribute_values(":x", AttributeValue::N("1".to_owned())).send().await)
}

#[tokio::test]
async fn an_expression_has_4096_bytes() {
    let client = engine().await.client();
    for (length, expected) in [(LONGEST_EXPRESSION, None), (LONGEST_EXPRESSION + 1, REFUSED)] {
        assert_eq!(code_of_update(&client, format!("{:<length$}", "SET detail = :x")).await, expected);
        let condition = format!("{:<length$}", "attribute_exists(PK)");
        let put = client.put_item().table_name(TABLE).set_item(Some(key("p", "a"))).condition_expression(condition);
        assert_eq!(code(put.send().await), expected);
        let projection = format!("{:<length$}", "PK");
        let get = client.get_item().table_name(TABLE).set_key(Some(key("p", "a"))).projection_expression(projection);
        assert_eq!(code(get.send().await), expected);
    }
}

/// DynamoDB refuses all of these.
#[tokio::test]
async fn limits_the_engine_does_not_keep() {
    let client = engine().await.client();
    let mut counted = key("p", "a");
    counted.insert("n".to_owned(), AttributeValue::N("1".to_owned()));
    put(&client, counted).await;

    let sums: Vec<_> = (0..301).map(|number| format!("a{number}=n+:x")).collect();
    assert_eq!(code_of_update(&client, format!("SET {}", sums.join(","))).await, None, "301 operators, of 300");

    let condition = format!("attribute_exists(PK){}", " OR a<b".repeat(400));
    let check = client.put_item().table_name(TABLE).set_item(Some(key("p", "a"))).condition_expression(condition);
    assert_eq!(code(check.send().await), None, "801 operators, of 300");

    let operands: Vec<_> = (0..101).map(|number| format!(":{number}")).collect();
    let condition = format!("attribute_exists(PK) OR PK IN ({})", operands.join(","));
    let mut check = client.put_item().table_name(TABLE).set_item(Some(key("p", "a"))).condition_expression(condition);
    for operand in operands {
        check = check.expression_attribute_values(operand, text("p"));
    }
    assert_eq!(code(check.send().await), None, "101 operands of IN, of 100");

    let mut long = key("p", "b");
    long.insert("lsi1sk".to_owned(), text("x".repeat(1025)));
    assert_eq!(code_of_put(&client, long).await, None, "1,025 bytes of an index's sort key, of 1,024");
}

#[tokio::test]
async fn an_item_has_400_kilobytes_with_its_names() {
    let client = engine().await.client();
    let sized = |size: usize| {
        let mut item = key("p", "a");
        item.insert("filling".to_owned(), text("x".repeat(size - "PKpSKafilling".len())));
        item
    };
    assert_eq!(code_of_put(&client, sized(LARGEST_ITEM + 1)).await, REFUSED);
    assert_eq!(code_of_put(&client, sized(LARGEST_ITEM)).await, None);
    assert_eq!(code_of_update(&client, "SET n = :x".to_owned()).await, REFUSED, "an item that grows too large");
}

/// A binary set weighs as much as its members together, a list 3 bytes and 1 for each element besides.
#[tokio::test]
async fn the_weight_of_sets_and_lists() {
    let client = engine().await.client();
    let members = |room: usize| {
        let mut members: Vec<_> = (0..room / 24).map(|number| format!("{number:024}").into_bytes()).collect();
        members.push(vec![b'x'; room % 24]);
        members
    };
    let with = |value| item([("PK", text("p")), ("SK", text("a")), ("points", value)]);
    let room = LARGEST_ITEM - "PKpSKapoints".len();
    for (size, expected) in [(room, None), (room + 1, REFUSED)] {
        let members = members(size);
        let set: Vec<_> = members.iter().map(Vec::as_slice).collect();
        assert_eq!(code_of_put(&client, with(binary_set(&set))).await, expected, "a set of {size} bytes");
    }
    let elements = members(room).len();
    for (size, expected) in [(room - elements - 3, None), (room - elements - 2, REFUSED)] {
        let mut list = members(size);
        list.resize(elements, Vec::new());
        let list = list.into_iter().map(|element| AttributeValue::B(Blob::new(element))).collect();
        assert_eq!(code_of_put(&client, with(AttributeValue::L(list))).await, expected, "a list of {size} bytes");
    }
}

#[tokio::test]
async fn a_request_has_16_megabytes_and_a_transaction_4_of_100_items() {
    let engine = engine().await;
    let server = engine.serve(([127, 0, 0, 1], 0)).await.unwrap();
    for client in [engine.client(), server.client()] {
        // Each character takes six bytes in JSON, so that the items stay within their limit.
        let put = |number: usize| {
            let mut item = key("p", &number.to_string());
            item.insert("filling".to_owned(), text("\u{1}".repeat(150_000)));
            WriteRequest::builder().put_request(PutRequest::builder().set_item(Some(item)).build().unwrap()).build()
        };
        for (number, expected) in [(18, None), (19, Some(413))] {
            let batch = client.batch_write_item().request_items(TABLE, (0..number).map(put).collect()).send().await;
            let status = batch.err().map(|error| error.raw_response().unwrap().status().as_u16());
            assert_eq!(status, expected, "{number} puts of 900 KB");
        }
        let put = |number: usize, size: usize| {
            let mut item = key("t", &number.to_string());
            item.insert("filling".to_owned(), text("x".repeat(size)));
            let put = Put::builder().table_name(TABLE).set_item(Some(item)).build().unwrap();
            TransactWriteItem::builder().put(put).build()
        };
        for (number, size, expected) in
            [(100, 10, None), (101, 10, REFUSED), (10, 400_000, None), (11, 400_000, REFUSED)]
        {
            let puts = (0..number).map(|number| put(number, size)).collect();
            let transaction = client.transact_write_items().set_transact_items(Some(puts));
            assert_eq!(code(transaction.send().await), expected, "{number} puts of {size} bytes");
        }
    }
}

#[tokio::test]
async fn a_set_has_members_and_each_once() {
    let engine = engine().await;
    let server = engine.serve(([127, 0, 0, 1], 0)).await.unwrap();
    for client in [engine.client(), server.client()] {
        for members in [&[][..], &[b"twice", b"twice"]] {
            let set = binary_set(&members.iter().map(|member: &&[u8; 5]| &member[..]).collect::<Vec<_>>());
            let put = item([("PK", text("p")), ("SK", text("a")), ("points", set)]);
            assert_eq!(code_of_put(&client, put).await, REFUSED);
        }
        let number = item([("PK", text("p")), ("SK", text("a")), ("n", AttributeValue::N("one".to_owned()))]);
        assert_eq!(code_of_put(&client, number).await, REFUSED);
    }
}

#[tokio::test]
async fn adding_to_an_attribute_that_is_not_there_makes_it() {
    let client = engine().await.client();
    put(&client, key("p", "a")).await;
    let add = |sort: &str| {
        let update =
            client.update_item().table_name(TABLE).set_key(Some(key("p", sort))).update_expression("ADD points :x");
        let update = update.condition_expression("attribute_exists(PK)").return_values(ReturnValue::AllNew);
        update.expression_attribute_values(":x", binary_set(&[b"one", b"two"]))
    };
    let item = add("a").send().await.unwrap().attributes.unwrap();
    assert_eq!(item["points"], binary_set(&[b"one", b"two"]));
    let error = add("none").send().await.unwrap_err().into_service_error();
    assert!(error.is_conditional_check_failed_exception());
}
