//! DynamoDB's limits. The engine enforces some of them. Callers have to observe the others
//! themselves.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{
    AttributeValue, ConditionCheck, KeysAndAttributes, Put, PutRequest, ReturnValue, TransactWriteItem, WriteRequest,
};
use embedded_engine::limits::EngineLimits;

use crate::table::{Item, TABLE, binary_set, engine, indexed_item, item, key, put, text};

const LARGEST_ITEM: usize = 400 * 1024;
const LONGEST_EXPRESSION: usize = 4096;

/// Returns the code of the error, or `None` if there is none.
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

/// Requests that DynamoDB rejects, but the bare engine accepts, are rejected by `limits`.
#[tokio::test]
async fn limits_the_engine_does_not_keep() {
    let engine = engine().await;
    let limited = EngineLimits::new(&engine).client();
    let mut counted = key("p", "a");
    counted.insert("n".to_owned(), AttributeValue::N("1".to_owned()));
    put(&engine.client(), counted).await;
    for (client, beyond) in [(engine.client(), None), (limited, REFUSED)] {
        for (operators, expected) in [(300, None), (301, beyond)] {
            let sums: Vec<_> = (0..operators).map(|number| format!("a{number}=n+:x")).collect();
            assert_eq!(code_of_update(&client, format!("SET {}", sums.join(","))).await, expected, "of an update");
            // The condition has a function, then two operators for each repetition, and a `NOT` if
            // the number of operators has to be even.
            let not = if operators % 2 == 0 { "NOT " } else { "" };
            let condition = format!("{not}attribute_not_exists(a){}", " OR a<b".repeat((operators - 1) / 2));
            let check = client.put_item().table_name(TABLE).set_item(Some(key("p", "a")));
            let check = check.condition_expression(condition).return_values(ReturnValue::None);
            let found = code(check.send().await).filter(|code| *code != "another error");
            assert_eq!(found, expected, "of a condition");
            put(&client, item([("PK", text("p")), ("SK", text("a")), ("n", AttributeValue::N("1".to_owned()))])).await;
        }
        for (operands, expected) in [(100, None), (101, beyond)] {
            let operands: Vec<_> = (0..operands).map(|number| format!(":{number}")).collect();
            let condition = format!("PK IN ({})", operands.join(","));
            let mut check =
                client.put_item().table_name(TABLE).set_item(Some(key("p", "c"))).condition_expression(condition);
            for operand in operands {
                check = check.expression_attribute_values(operand, text("p"));
            }
            let found = code(check.send().await);
            assert_eq!(found, expected.or(Some("another error")), "there is no such item");
        }
        for (attribute, most) in [("lsi1sk", 1_024), ("gsi1sk", 1_024), ("gsi1pk", 2_048)] {
            for (bytes, expected) in [(most, None), (most + 1, beyond)] {
                let value = text("x".repeat(bytes));
                let mut long =
                    item([("PK", text("p")), ("SK", text("b")), ("gsi1pk", text("g")), ("gsi1sk", text("g"))]);
                long.insert(attribute.to_owned(), value.clone());
                assert_eq!(code_of_put(&client, long.clone()).await, expected, "{bytes} bytes of {attribute}");
                let update = client.update_item().table_name(TABLE).set_key(Some(key("p", "b")));
                let update =
                    update.update_expression("SET #k = :v, n = :v").expression_attribute_names("#k", attribute);
                let update = update.expression_attribute_values(":v", value);
                assert_eq!(code(update.send().await), expected, "{bytes} bytes of {attribute}, set");
                let put = Put::builder().table_name(TABLE).set_item(Some(long.clone())).build().unwrap();
                let transaction =
                    client.transact_write_items().transact_items(TransactWriteItem::builder().put(put).build());
                assert_eq!(code(transaction.send().await), expected, "{bytes} bytes of {attribute}, in a transaction");
                let put = PutRequest::builder().set_item(Some(long)).build().unwrap();
                let put = WriteRequest::builder().put_request(put).build();
                let batch = client.batch_write_item().request_items(TABLE, vec![put]);
                assert_eq!(code(batch.send().await), expected, "{bytes} bytes of {attribute}, in a batch");
            }
        }
    }
}

/// Limits that both DynamoDB and the engine enforce.
#[tokio::test]
async fn limits_the_engine_keeps() {
    let engine = engine().await;
    for client in [engine.client(), EngineLimits::new(&engine).client()] {
        for (partition, sort, expected) in
            [(2_048, 1_024, None), (2_049, 1, REFUSED), (1, 1_025, REFUSED), (0, 1, REFUSED), (1, 0, REFUSED)]
        {
            let long = key(&"p".repeat(partition), &"s".repeat(sort));
            assert_eq!(code_of_put(&client, long).await, expected, "keys of {partition} and {sort} bytes");
        }
        let mut empty = key("p", "a");
        empty.insert("lsi1sk".to_owned(), text(""));
        assert_eq!(code_of_put(&client, empty).await, REFUSED, "an empty key of an index");

        let nested = |levels: usize| {
            let value = (1..levels).fold(text("x"), |value, _| AttributeValue::L(vec![value]));
            item([("PK", text("p")), ("SK", text("n")), ("nested", value)])
        };
        for (levels, expected) in [(32, None), (33, REFUSED)] {
            assert_eq!(code_of_put(&client, nested(levels)).await, expected, "{levels} levels");
        }
        for (digits, expected) in [(38, None), (39, REFUSED)] {
            let number = AttributeValue::N("9".repeat(digits));
            let put = item([("PK", text("p")), ("SK", text("d")), ("n", number)]);
            assert_eq!(code_of_put(&client, put).await, expected, "{digits} digits");
        }

        let put = |sort: usize| {
            let put = PutRequest::builder().set_item(Some(key("p", &sort.to_string()))).build().unwrap();
            WriteRequest::builder().put_request(put).build()
        };
        // The batch addresses a single partition, or several.
        for (number, expected) in [(25, None), (26, REFUSED)] {
            let batch = client.batch_write_item().request_items(TABLE, (0..number).map(put).collect());
            assert_eq!(code(batch.send().await), expected, "a batch of {number}");
        }
        let twice = client.batch_write_item().request_items(TABLE, vec![put(1), put(1)]);
        assert_eq!(code(twice.send().await), REFUSED, "an item twice in a batch");
        for (number, expected) in [(100, None), (101, REFUSED)] {
            let keys = (0..number).map(|number| key(&format!("p{}", number % 3), &number.to_string())).collect();
            let keys = KeysAndAttributes::builder().set_keys(Some(keys)).build().unwrap();
            let batch = client.batch_get_item().request_items(TABLE, keys);
            assert_eq!(code(batch.send().await), expected, "{number} keys");
        }
        let keys = KeysAndAttributes::builder().set_keys(Some(vec![key("p", "1"), key("p", "1")])).build().unwrap();
        assert_eq!(code(client.batch_get_item().request_items(TABLE, keys).send().await), REFUSED, "a key twice");
        let check = |sort: &str| {
            let check = ConditionCheck::builder().table_name(TABLE).set_key(Some(key("p", sort)));
            let check = check.condition_expression("attribute_exists(PK)").build().unwrap();
            TransactWriteItem::builder().condition_check(check).build()
        };
        let twice = client.transact_write_items().transact_items(check("1")).transact_items(check("1"));
        assert_eq!(code(twice.send().await), REFUSED, "an item twice in a transaction");
    }
}

/// A page of a query ends before the item that would make it exceed 1 MB.
#[tokio::test]
async fn a_page_has_a_megabyte() {
    let engine = engine().await;
    for sort in 0..6 {
        put(&engine.client(), indexed_item("q", &sort.to_string(), 300 << 10)).await;
    }
    for client in [engine.client(), EngineLimits::new(&engine).client()] {
        let query = client.query().table_name(TABLE).key_condition_expression("PK = :p");
        let page = query.expression_attribute_values(":p", text("q")).send().await.unwrap();
        assert_eq!((page.items().len(), page.last_evaluated_key.is_some()), (3, true));
    }
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

/// An index entry consists of the keys of the table and of the index, with their names.
#[tokio::test]
async fn an_item_has_400_kilobytes_with_its_entries_in_local_indexes() {
    let engine = engine().await;
    let limited = EngineLimits::new(&engine).client();
    let indexes = ["lsi1sk", "lsi3sk"];
    let sized = |size: usize| {
        let own = "PKpSKafilling".len() + indexes.len() * "lsi1skkey".len();
        let entries = indexes.len() * "PKpSKalsi1skkey".len();
        let mut item = key("p", "a");
        item.extend(indexes.map(|name| (name.to_owned(), text("key"))));
        item.insert("filling".to_owned(), text("x".repeat(size - own - entries)));
        item
    };
    for (client, beyond) in [(engine.client(), None), (limited, REFUSED)] {
        for (size, expected) in [(LARGEST_ITEM, None), (LARGEST_ITEM + 1, beyond)] {
            assert_eq!(code_of_put(&client, sized(size)).await, expected, "a put of {size} bytes");
            let put = Put::builder().table_name(TABLE).set_item(Some(sized(size))).build().unwrap();
            let parts = [TransactWriteItem::builder().put(put).build()];
            let transaction = client.transact_write_items().set_transact_items(Some(parts.into()));
            let refused = transaction.send().await.err().map(aws_sdk_dynamodb::Error::from);
            let is_size = |error: &aws_sdk_dynamodb::Error| format!("{error:?}").contains("Item size has exceeded");
            assert_eq!(refused.is_some(), expected.is_some(), "a transaction of {size} bytes");
            assert!(refused.is_none_or(|error| is_size(&error)));
            let put = PutRequest::builder().set_item(Some(sized(size))).build().unwrap();
            let put = WriteRequest::builder().put_request(put).build();
            let batch = client.batch_write_item().request_items(TABLE, vec![put]);
            assert_eq!(code(batch.send().await), expected, "a batch of {size} bytes");
        }
        // An update that sets the key of another index, and thereby adds the item's entry in that
        // index.
        for (room, expected) in [(0, beyond), ("lsi2skkeyPKpSKalsi2skkey".len(), None)] {
            put(&engine.client(), sized(LARGEST_ITEM - room)).await;
            let update = client.update_item().table_name(TABLE).set_key(Some(key("p", "a")));
            let update =
                update.update_expression("SET lsi2sk = :k").expression_attribute_values(":k", text("key")).send();
            assert_eq!(code(update.await), expected, "an update where {room} bytes are left");
        }
        let update =
            client.update_item().table_name(TABLE).set_key(Some(key("p", "a"))).update_expression("REMOVE filling");
        assert_eq!(code(update.send().await), None, "an update that makes it smaller");
    }
}

/// A binary set has the size of its members. A list takes 3 bytes, and 1 more for each element.
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
        // Each character takes six bytes in JSON, so that the request exceeds its limit while the
        // items stay within theirs.
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
