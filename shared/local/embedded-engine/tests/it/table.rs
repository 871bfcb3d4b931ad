//! The test table. It has four local indexes and a global one, which project only keys, and a
//! stream.

use std::collections::HashMap;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::create_table::builders::CreateTableFluentBuilder;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType,
    LocalSecondaryIndex, Projection, ProjectionType, ScalarAttributeType, StreamSpecification, StreamViewType,
};
use embedded_engine::Engine;

pub(crate) const TABLE: &str = "table";
pub(crate) const LOCAL_INDEXES: [(&str, &str); 4] =
    [("LSI1", "lsi1sk"), ("LSI2", "lsi2sk"), ("LSI3", "lsi3sk"), ("LSI4", "lsi4sk")];

pub(crate) type Item = HashMap<String, AttributeValue>;

/// Returns an engine in memory with the table.
pub(crate) async fn engine() -> Engine {
    let engine = Engine::memory().unwrap();
    create(&engine.client()).await;
    engine
}

pub(crate) async fn create(client: &Client) {
    let mut table = client.create_table().table_name(TABLE).billing_mode(BillingMode::PayPerRequest);
    table = with_attributes(table, ["PK", "SK", "gsi1pk", "gsi1sk"]).set_key_schema(Some(keys("PK", "SK")));
    for (name, sort) in LOCAL_INDEXES {
        let index = LocalSecondaryIndex::builder().index_name(name).set_key_schema(Some(keys("PK", sort)));
        table = with_attributes(table, [sort]).local_secondary_indexes(index.projection(keys_only()).build().unwrap());
    }
    let index = GlobalSecondaryIndex::builder().index_name("GSI1").set_key_schema(Some(keys("gsi1pk", "gsi1sk")));
    let images = StreamViewType::NewAndOldImages;
    table
        .global_secondary_indexes(index.projection(keys_only()).build().unwrap())
        .stream_specification(
            StreamSpecification::builder().stream_enabled(true).stream_view_type(images).build().unwrap(),
        )
        .send()
        .await
        .unwrap();
}

fn with_attributes<const N: usize>(mut table: CreateTableFluentBuilder, names: [&str; N]) -> CreateTableFluentBuilder {
    for name in names {
        let attribute = AttributeDefinition::builder().attribute_name(name).attribute_type(ScalarAttributeType::S);
        table = table.attribute_definitions(attribute.build().unwrap());
    }
    table
}

fn keys(partition: &str, sort: &str) -> Vec<KeySchemaElement> {
    let key = |name: &str, kind| KeySchemaElement::builder().attribute_name(name).key_type(kind).build().unwrap();
    vec![key(partition, KeyType::Hash), key(sort, KeyType::Range)]
}

fn keys_only() -> Projection {
    Projection::builder().projection_type(ProjectionType::KeysOnly).build()
}

pub(crate) fn text(value: impl Into<String>) -> AttributeValue {
    AttributeValue::S(value.into())
}

pub(crate) fn binary_set(members: &[&[u8]]) -> AttributeValue {
    AttributeValue::Bs(members.iter().map(|member| Blob::new(*member)).collect())
}

pub(crate) fn key(pk: &str, sk: &str) -> Item {
    item([("PK", text(pk)), ("SK", text(sk))])
}

pub(crate) fn item<const N: usize>(attributes: [(&str, AttributeValue); N]) -> Item {
    attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns an item that has a key in each local index, and an attribute with this number of bytes.
pub(crate) fn indexed_item(pk: &str, sk: &str, filling: usize) -> Item {
    let mut item = key(pk, sk);
    for (_, sort) in LOCAL_INDEXES {
        item.insert(sort.to_owned(), text(format!("{sort}-{sk}")));
    }
    item.insert("filling".to_owned(), text("x".repeat(filling)));
    item
}

pub(crate) async fn put(client: &Client, item: Item) {
    client.put_item().table_name(TABLE).set_item(Some(item)).send().await.unwrap();
}

pub(crate) async fn get(client: &Client, key: Item) -> Option<Item> {
    client.get_item().table_name(TABLE).set_key(Some(key)).send().await.unwrap().item
}
