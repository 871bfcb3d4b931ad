//! The table as DynamoDB is told to make it, and the same as a piece of `template.yaml`.

use std::fmt::Write;

/// Local secondary indexes: name and sort key; the partition key is the table's.
pub const LOCAL_INDEXES: &[(&str, &str)] =
    &[("LSI1", "lsi1sk"), ("LSI2", "lsi2sk"), ("LSI3", "lsi3sk"), ("LSI4", "lsi4sk"), ("LSI5", "lsi5sk")];

/// Global secondary indexes: name, partition key, sort key.
pub const GLOBAL_INDEXES: &[(&str, &str, &str)] = &[
    ("GSI1", "gsi1pk", "gsi1sk"),
    ("GSI2", "gsi2pk", "gsi2sk"),
    ("GSI3", "gsi3pk", "gsi3sk"),
    ("GSI4", "gsi4pk", "gsi4sk"),
    ("GSI5", "gsi5pk", "gsi5sk"),
];

/// The partition key's attribute.
pub const PK: &str = "PK";
/// The sort key's attribute.
pub const SK: &str = "SK";
/// The attribute that holds the time, in seconds, after which DynamoDB may remove an item.
pub const TTL: &str = "ttl";

/// Every attribute that is part of a key; all are strings.
pub fn key_attributes() -> impl Iterator<Item = &'static str> {
    let local = LOCAL_INDEXES.iter().map(|(_, sort)| *sort);
    let global = GLOBAL_INDEXES.iter().flat_map(|(_, partition, sort)| [*partition, *sort]);
    [PK, SK].into_iter().chain(local).chain(global)
}

/// The keys and indexes as properties of an `AWS::DynamoDB::Table`, indented for `template.yaml`.
#[must_use]
pub fn cloudformation() -> String {
    let mut yaml = String::from("      AttributeDefinitions:\n");
    for attribute in key_attributes() {
        let _ = writeln!(yaml, "        - {{ AttributeName: {attribute}, AttributeType: S }}");
    }
    yaml.push_str("      KeySchema:\n");
    yaml.push_str(&key_schema("        ", PK, SK));
    yaml.push_str("      LocalSecondaryIndexes:\n");
    for (index, sort) in LOCAL_INDEXES {
        yaml.push_str(&index_yaml(index, PK, sort));
    }
    yaml.push_str("      GlobalSecondaryIndexes:\n");
    for (index, partition, sort) in GLOBAL_INDEXES {
        yaml.push_str(&index_yaml(index, partition, sort));
    }
    let _ = writeln!(yaml, "      StreamSpecification: {{ StreamViewType: NEW_AND_OLD_IMAGES }}");
    let _ = writeln!(yaml, "      TimeToLiveSpecification: {{ AttributeName: {TTL}, Enabled: true }}");
    yaml
}

fn index_yaml(index: &str, partition: &str, sort: &str) -> String {
    let keys = key_schema("            ", partition, sort);
    format!(
        "        - IndexName: {index}\n          KeySchema:\n{keys}          Projection: {{ ProjectionType: KEYS_ONLY }}\n"
    )
}

fn key_schema(indent: &str, partition: &str, sort: &str) -> String {
    format!(
        "{indent}- {{ AttributeName: {partition}, KeyType: HASH }}\n{indent}- {{ AttributeName: {sort}, KeyType: RANGE }}\n"
    )
}
