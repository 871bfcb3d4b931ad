//! Definitions of the tables, for `CreateTable` requests and for `template.yaml`.

use std::fmt::Write;

/// The definition of a secondary index: its name and its key attributes. All indexes project only
/// keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Index {
    /// Name of the index.
    pub name: &'static str,
    /// Attribute of the partition key. For a local index, it is the table's own partition key.
    pub partition: &'static str,
    /// Attribute of the sort key.
    pub sort: &'static str,
}

impl Index {
    const fn local(name: &'static str, sort: &'static str) -> Self {
        Self { name, partition: PK, sort }
    }

    const fn global(name: &'static str, partition: &'static str, sort: &'static str) -> Self {
        Self { name, partition, sort }
    }

    /// Checks whether the index spans partitions. Such an index is eventually consistent.
    #[must_use]
    pub fn is_global(&self) -> bool {
        self.partition != PK
    }
}

/// The first local index.
pub const LSI1: Index = Index::local("LSI1", "lsi1sk");
/// The second local index.
pub const LSI2: Index = Index::local("LSI2", "lsi2sk");
/// The third local index.
pub const LSI3: Index = Index::local("LSI3", "lsi3sk");
/// The fourth local index.
pub const LSI4: Index = Index::local("LSI4", "lsi4sk");
/// The fifth local index.
pub const LSI5: Index = Index::local("LSI5", "lsi5sk");
/// The first global index.
pub const GSI1: Index = Index::global("GSI1", "gsi1pk", "gsi1sk");
/// The second global index.
pub const GSI2: Index = Index::global("GSI2", "gsi2pk", "gsi2sk");
/// The third global index.
pub const GSI3: Index = Index::global("GSI3", "gsi3pk", "gsi3sk");
/// The fourth global index.
pub const GSI4: Index = Index::global("GSI4", "gsi4pk", "gsi4sk");
/// The fifth global index.
pub const GSI5: Index = Index::global("GSI5", "gsi5pk", "gsi5sk");

/// The local secondary indexes.
pub const LOCAL_INDEXES: [Index; 5] = [LSI1, LSI2, LSI3, LSI4, LSI5];
/// The global secondary indexes.
pub const GLOBAL_INDEXES: [Index; 5] = [GSI1, GSI2, GSI3, GSI4, GSI5];

/// Attribute of the partition key.
pub const PK: &str = "PK";
/// Attribute of the sort key.
pub const SK: &str = "SK";
/// Attribute that holds the time, in seconds, after which DynamoDB may remove an item.
pub const TTL: &str = "ttl";

/// The definition of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableDefinition {
    /// Local indexes.
    pub local_indexes: &'static [Index],
    /// Global indexes.
    pub global_indexes: &'static [Index],
    /// Whether the table has a stream of its changes, with new and old images.
    pub has_stream: bool,
}

/// The data table.
pub const DATA: TableDefinition =
    TableDefinition { local_indexes: &LOCAL_INDEXES, global_indexes: &GLOBAL_INDEXES, has_stream: true };
/// The access table. It has no stream, so that password hashes never leave the table.
pub const ACCESS: TableDefinition = TableDefinition { local_indexes: &[], global_indexes: &[], has_stream: false };

impl TableDefinition {
    /// Returns all attributes that are part of a key. They are strings.
    pub fn key_attributes(&self) -> impl Iterator<Item = &'static str> + use<> {
        let local = self.local_indexes.iter().map(|index| index.sort);
        let global = self.global_indexes.iter().flat_map(|index| [index.partition, index.sort]);
        [PK, SK].into_iter().chain(local).chain(global)
    }

    /// Returns the keys and indexes as properties of an `AWS::DynamoDB::Table`, indented for
    /// `template.yaml`.
    #[must_use]
    pub fn cloudformation(&self) -> String {
        let mut yaml = String::from("      AttributeDefinitions:\n");
        for attribute in self.key_attributes() {
            let _ = writeln!(yaml, "        - {{ AttributeName: {attribute}, AttributeType: S }}");
        }
        yaml.push_str("      KeySchema:\n");
        yaml.push_str(&key_schema("        ", PK, SK));
        for (kind, indexes) in [("Local", self.local_indexes), ("Global", self.global_indexes)] {
            if !indexes.is_empty() {
                let _ = writeln!(yaml, "      {kind}SecondaryIndexes:");
            }
            for index in indexes {
                yaml.push_str(&index_yaml(index));
            }
        }
        if self.has_stream {
            let _ = writeln!(yaml, "      StreamSpecification: {{ StreamViewType: NEW_AND_OLD_IMAGES }}");
        }
        let _ = writeln!(yaml, "      {ON_DEMAND}");
        let _ = writeln!(yaml, "      TimeToLiveSpecification: {{ AttributeName: {TTL}, Enabled: true }}");
        yaml
    }
}

/// Limits of the units per second, which apply if the stack's parameters set them. A global index
/// has limits of its own, and local indexes share those of the table.
const ON_DEMAND: &str = "OnDemandThroughput: !If [HasUnitLimits, { MaxReadRequestUnits: !Ref MaxReadUnits, \
                         MaxWriteRequestUnits: !Ref MaxWriteUnits }, !Ref AWS::NoValue]";

fn index_yaml(index: &Index) -> String {
    let keys = key_schema("            ", index.partition, index.sort);
    let name = index.name;
    let bound = if index.is_global() { format!("          {ON_DEMAND}\n") } else { String::new() };
    format!(
        "        - IndexName: {name}\n          KeySchema:\n{keys}          Projection: {{ ProjectionType: KEYS_ONLY }}\n{bound}"
    )
}

fn key_schema(indent: &str, partition: &str, sort: &str) -> String {
    format!(
        "{indent}- {{ AttributeName: {partition}, KeyType: HASH }}\n{indent}- {{ AttributeName: {sort}, KeyType: RANGE }}\n"
    )
}
