//! Facts about a deployed stack, as input of the checks.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::aws_requests::UnreadFact;

/// A fact, or the reason why it could not be read.
pub(super) type FactResult<T> = Result<T, UnreadFact>;

/// All facts about a stack.
#[derive(Clone, Debug)]
pub(super) struct StackFacts {
    pub(super) stack: String,
    pub(super) region: String,
    /// Current time by AWS's clock, in ms since 1970.
    pub(super) now: i64,
    /// Seconds by which AWS's clock is ahead of this machine's clock.
    pub(super) clock_ahead: i64,
    pub(super) description: StackDescription,
    /// Functions by name; `None` for a missing function.
    pub(super) functions: BTreeMap<&'static str, FactResult<Option<DeployedFunction>>>,
    /// Policy statements of each function's role.
    pub(super) rights: BTreeMap<&'static str, FactResult<Vec<PolicyStatement>>>,
    pub(super) mapping: FactResult<Option<EventSourceMapping>>,
    pub(super) table: FactResult<Option<TableFacts>>,
    pub(super) access_table: FactResult<Option<TableFacts>>,
    /// Layout version stored in the table.
    pub(super) layout: FactResult<Option<i64>>,
    /// Time when the oldest postponed work of the indexer was due, in ms since 1970.
    pub(super) oldest_due: FactResult<Option<i64>>,
    /// Greatest age in ms that recent changes had when they reached the indexer.
    pub(super) iterator_age: FactResult<Option<f64>>,
    pub(super) cors: FactResult<Vec<CorsRule>>,
    pub(super) lifecycle: FactResult<Vec<LifecycleRule>>,
    /// The account's limit of concurrent executions.
    pub(super) sandboxes: FactResult<u64>,
}

/// Status, outputs and parameters of the stack.
#[derive(Clone, Debug, Default)]
pub(super) struct StackDescription {
    pub(super) status: String,
    pub(super) outputs: BTreeMap<String, String>,
    pub(super) parameters: BTreeMap<String, String>,
}

impl StackDescription {
    pub(super) fn output(&self, name: &str) -> &str {
        self.outputs.get(name).map_or("", String::as_str)
    }

    pub(super) fn parameter(&self, name: &str) -> &str {
        self.parameters.get(name).map_or("", String::as_str)
    }

    /// Returns the URI below which the stack stores artifacts.
    pub(super) fn artifact_root(&self) -> String {
        let (bucket, prefix) = self.bucket();
        format!("s3://{bucket}/{prefix}").trim_end_matches('/').to_owned()
    }

    /// Returns the artifact bucket, and the prefix of artifacts in it. It is the stack's own
    /// bucket, or one given by a parameter.
    pub(super) fn bucket(&self) -> (&str, &str) {
        let root = self.parameter("ArtifactRoot").trim_start_matches("s3://");
        if root.is_empty() {
            return (self.output("BucketName"), "");
        }
        root.split_once('/').unwrap_or((root, ""))
    }
}

/// A deployed function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DeployedFunction {
    pub(super) role: String,
    pub(super) layers: Vec<String>,
    pub(super) reserved: Option<u64>,
}

/// A statement of an IAM policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PolicyStatement {
    pub(super) allows: bool,
    pub(super) actions: Vec<String>,
    pub(super) resources: Vec<String>,
    pub(super) is_conditional: bool,
}

/// The event source mapping from the table's stream to the indexer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct EventSourceMapping {
    pub(super) id: String,
    pub(super) state: String,
    pub(super) last_result: String,
    pub(super) filters: Vec<Value>,
}

/// Description of a DynamoDB table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TableFacts {
    /// Names of the table's partition key and sort key. `indexes` has the names of those keys for
    /// each index.
    pub(super) keys: (String, String),
    pub(super) indexes: BTreeMap<String, (String, String)>,
    pub(super) has_stream: bool,
    pub(super) is_protected: bool,
}

/// A CORS rule of a bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CorsRule {
    pub(super) origins: BTreeSet<String>,
    pub(super) methods: BTreeSet<String>,
    pub(super) headers: BTreeSet<String>,
    pub(super) exposed: BTreeSet<String>,
}

/// A lifecycle rule of a bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LifecycleRule {
    pub(super) is_enabled: bool,
    pub(super) prefix: String,
    pub(super) ends_uploads: bool,
    pub(super) expires: bool,
}
