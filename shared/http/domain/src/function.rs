//! A function as it is deployed.

/// A Lambda function of the stack, as `template.yaml` declares it.
#[derive(Debug)]
pub struct Function {
    /// Name of its crate, of its program, and of its log group.
    pub name: &'static str,
    /// Beginning of the names of its resources in `template.yaml`. It never changes: under another
    /// name, they would be made again.
    pub resource: &'static str,
    /// Its purpose, in a sentence.
    pub description: &'static str,
    /// Paths whose requests reach it: as written, with everything below (`/x/{*path}`), or all that no other
    /// function has ([`Function::EVERYTHING_ELSE`]). Empty if it serves no HTTP.
    pub paths: &'static [&'static str],
    /// Its rights on the table; `None` if it does not know the table.
    pub table: Option<TableRights>,
    /// Whether it writes the table of access, which every function that answers requests may read.
    pub writes_access: bool,
    /// Its rights on the bucket with the artifacts.
    pub bucket: &'static [BucketRight],
    /// Names of the secrets that it reads.
    pub secrets: &'static [&'static str],
    /// The settings in its environment.
    pub settings: &'static [Setting],
    /// Memory, in MB. Lambda gives it the processor in proportion.
    pub memory: u32,
    /// Longest duration of a call, in seconds.
    pub timeout: u32,
    /// Whether a parameter of the stack, `<resource>Concurrency`, reserves its sandboxes.
    pub has_concurrency: bool,
    /// Resource of the layer that it needs.
    pub layer: Option<&'static str>,
}

impl Function {
    /// All paths that no other function has.
    pub const EVERYTHING_ELSE: &'static str = "/{*path}";
    /// Memory of a function, in MB. A request needs a few; the processor comes in proportion.
    pub const MEMORY: u32 = 512;
    /// Longest duration of a call through the gateway, in seconds. The gateway hangs up after 30. A
    /// call that ends before leaves an error in the function's log.
    pub const BEHIND_GATEWAY: u32 = 29;
}

/// The rights of a function on the table. None may scan it.
#[derive(Debug)]
pub struct TableRights {
    /// The actions.
    pub actions: TableActions,
    /// Which indexes it reads.
    pub indexes: Indexes,
    /// Why it needs that, for the reader of the template.
    pub why: &'static str,
}

/// Kinds of requests to the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableActions {
    /// Reads items whose keys it knows, of several tables together.
    GetMany,
    /// Reads items and queries.
    Read,
    /// Reads and writes, with transactions.
    Write,
    /// The same without conditions on items that it does not write.
    Change,
    /// The same as `Change`, and reads the table's stream.
    Index,
}

impl TableActions {
    /// The IAM actions. A transaction is authorized by the actions of its parts.
    #[must_use]
    pub const fn iam(self) -> &'static [&'static str] {
        match self {
            Self::GetMany => &["dynamodb:BatchGetItem"],
            Self::Read => &["dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Query"],
            Self::Write => &[
                "dynamodb:BatchGetItem",
                "dynamodb:BatchWriteItem",
                "dynamodb:ConditionCheckItem",
                "dynamodb:DeleteItem",
                "dynamodb:GetItem",
                "dynamodb:PutItem",
                "dynamodb:Query",
                "dynamodb:UpdateItem",
            ],
            Self::Change | Self::Index => &[
                "dynamodb:BatchGetItem",
                "dynamodb:BatchWriteItem",
                "dynamodb:DeleteItem",
                "dynamodb:GetItem",
                "dynamodb:PutItem",
                "dynamodb:Query",
                "dynamodb:UpdateItem",
            ],
        }
    }

    /// Whether a function with these rights can fill a partition.
    #[must_use]
    pub const fn writes(self) -> bool {
        !matches!(self, Self::GetMany | Self::Read)
    }
}

/// Indexes of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexes {
    /// None.
    None,
    /// These.
    Only(&'static [&'static str]),
    /// All.
    All,
}

/// A right of a function on the bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketRight {
    /// List names. Without it, S3 would not say which objects are missing.
    List,
    /// Read objects, and sign URLs that do.
    Read,
    /// Read, write and remove objects, and sign URLs that do.
    Change,
    /// Remove objects.
    Remove,
    /// Put answers that are too long for a Lambda below `.answers/`.
    PutAnswers,
}

impl BucketRight {
    /// The S3 actions, and the suffix of the bucket's path: `None` for an action on the bucket
    /// itself.
    #[must_use]
    pub const fn iam(self) -> (&'static [&'static str], Option<&'static str>) {
        match self {
            Self::List => (&["s3:ListBucket"], None),
            Self::Read => (&["s3:GetObject"], Some("/*")),
            // The parts of an upload are listed only where MaxArtifactSize bounds them.
            Self::Change => (
                &[
                    "s3:AbortMultipartUpload",
                    "s3:DeleteObject",
                    "s3:GetObject",
                    "s3:ListMultipartUploadParts",
                    "s3:PutObject",
                ],
                Some("/*"),
            ),
            Self::Remove => (&["s3:DeleteObject"], Some("/*")),
            Self::PutAnswers => (&["s3:PutObject"], Some("/.answers/*")),
        }
    }

    /// Why a function has it, for the reader of the template.
    #[must_use]
    pub const fn why(self) -> &'static str {
        match self {
            Self::List => "Without this right, S3 would not say which objects are missing.",
            Self::Read => {
                "It reads files, or signs URLs to read them: a URL carries no more than the rights of its signer."
            }
            Self::Change => {
                "What it does itself, and what its URLs allow. Parts are listed only where MaxArtifactSize bounds them."
            }
            Self::Remove => "The files of what it removes.",
            Self::PutAnswers => {
                "An answer that is longer than a function may give is put there, and its client is sent to it."
            }
        }
    }
}

/// A variable of a function's environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// `ARTIFACT_ROOT` and `ARTIFACTS_DESTINATION`: where experiments and the server keep artifacts.
    Artifacts,
    /// `ARTIFACTS_PRESIGNED_ONLY`: whether clients are to use presigned URLs only.
    PresignedOnly,
    /// `MAX_ARTIFACT_SIZE`: bytes of the longest file.
    LongestArtifact,
    /// `ARTIFACTS_ORIGIN`: the origin that the page may read files from.
    ArtifactsOrigin,
    /// `RUN_INDEXING_INTERVAL`: seconds between two passes over a run that is being logged to.
    RunIndexingInterval,
}
