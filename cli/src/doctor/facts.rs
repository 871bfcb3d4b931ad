//! The facts about a deployed stack: all that the checks need.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::requests::Unread;

/// Something that was looked at.
pub(super) type Seen<T> = Result<T, Unread>;

/// All that was read of a stack.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) stack: String,
    pub(super) region: String,
    /// The time of AWS, in ms since 1970.
    pub(super) now: i64,
    /// Seconds by which AWS's clock is ahead of this machine's.
    pub(super) clock_ahead: i64,
    pub(super) description: Description,
    /// By the names of functions; `None` for one that is missing.
    pub(super) functions: BTreeMap<&'static str, Seen<Option<Deployed>>>,
    /// The statements of each function's role.
    pub(super) rights: BTreeMap<&'static str, Seen<Vec<Statement>>>,
    pub(super) mapping: Seen<Option<Mapping>>,
    pub(super) table: Seen<Option<TableFacts>>,
    pub(super) access_table: Seen<Option<TableFacts>>,
    /// The layout that the table says it has.
    pub(super) layout: Seen<Option<i64>>,
    /// When the oldest thing was due that the indexer has put off, in ms since 1970.
    pub(super) oldest_due: Seen<Option<i64>>,
    /// The greatest age of changes that came to the indexer lately, in ms.
    pub(super) iterator_age: Seen<Option<f64>>,
    pub(super) cors: Seen<Vec<CorsRule>>,
    pub(super) lifecycle: Seen<Vec<LifecycleRule>>,
    /// The account's limit of concurrent executions.
    pub(super) sandboxes: Seen<u64>,
}

/// The stack, as it is described.
#[derive(Clone, Debug, Default)]
pub(super) struct Description {
    pub(super) status: String,
    pub(super) outputs: BTreeMap<String, String>,
    pub(super) parameters: BTreeMap<String, String>,
}

impl Description {
    pub(super) fn output(&self, name: &str) -> &str {
        self.outputs.get(name).map_or("", String::as_str)
    }

    pub(super) fn parameter(&self, name: &str) -> &str {
        self.parameters.get(name).map_or("", String::as_str)
    }

    /// The bucket, and the prefix of the artifacts in it: the stack's own, or that of a parameter.
    pub(super) fn bucket(&self) -> (&str, &str) {
        let root = self.parameter("ArtifactRoot").trim_start_matches("s3://");
        if root.is_empty() {
            return (self.output("BucketName"), "");
        }
        root.split_once('/').unwrap_or((root, ""))
    }
}

/// A function as it is deployed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Deployed {
    pub(super) role: String,
    pub(super) layers: Vec<String>,
    pub(super) reserved: Option<u64>,
}

/// A statement of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Statement {
    pub(super) allows: bool,
    pub(super) actions: Vec<String>,
    pub(super) resources: Vec<String>,
    pub(super) is_conditional: bool,
}

/// The mapping from the table's stream to the indexer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mapping {
    pub(super) id: String,
    pub(super) state: String,
    pub(super) last_result: String,
    pub(super) filters: Vec<Value>,
}

/// A table, as DynamoDB describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TableFacts {
    /// Partition key and sort key, of the table and of each index by its name.
    pub(super) keys: (String, String),
    pub(super) indexes: BTreeMap<String, (String, String)>,
    pub(super) has_stream: bool,
    pub(super) is_protected: bool,
}

/// A rule of a bucket for pages of other origins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CorsRule {
    pub(super) origins: BTreeSet<String>,
    pub(super) methods: BTreeSet<String>,
    pub(super) headers: BTreeSet<String>,
    pub(super) exposed: BTreeSet<String>,
}

/// A rule of a bucket about what it removes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LifecycleRule {
    pub(super) is_enabled: bool,
    pub(super) prefix: String,
    pub(super) ends_uploads: bool,
    pub(super) expires: bool,
}
