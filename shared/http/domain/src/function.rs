//! A function as it is deployed.

/// A Lambda function of the stack, as `template.yaml` declares it.
///
/// A declaration names what the function uses and takes the rest from [`Function::BASE`]. The
/// program `template` of the crate `domains` turns it into resources and rights.
#[derive(Debug)]
pub struct Function {
    /// Name of its crate, its program and its log group.
    pub name: &'static str,
    /// Prefix of the names of its resources in `template.yaml`. It never changes, because
    /// the stack would replace resources of another name.
    pub resource: &'static str,
    /// Its purpose, in a sentence.
    pub description: &'static str,
    /// Paths whose requests reach it: as written, with everything below (`/x/{*path}`), or all that
    /// no other function serves ([`Function::EVERYTHING_ELSE`]). Empty if it serves no HTTP.
    pub paths: &'static [&'static str],
    /// Its rights on the table; `None` if it does not use the table.
    pub table: Option<TableRights>,
    /// Prefixes of the partition keys of the table that it may touch (`dynamodb:LeadingKeys`); empty
    /// for all. The keys of an index that it reads need such a prefix, too.
    pub key_prefixes: &'static [&'static str],
    /// Whether it writes the access table, which every function that answers requests may read.
    pub writes_access: bool,
    /// Its rights on the artifact bucket.
    pub bucket: &'static [BucketRight],
    /// Secrets that its environment refers to.
    pub secrets: &'static [Secret],
    /// Keys of KMS that it uses in its own name, besides those that encrypt the table and the bucket.
    pub keys: &'static [KmsKey],
    /// Queues that it sends to or consumes.
    pub queues: &'static [Queue],
    /// Names of the functions that it may invoke.
    pub invokes: &'static [&'static str],
    /// Its own URL outside the API, if it has one.
    pub url: Option<FunctionUrl>,
    /// The program that it runs.
    pub package: Package,
    /// The settings in its environment.
    pub settings: &'static [Setting],
    /// Memory, in MB. Lambda allots CPU in proportion.
    pub memory: u32,
    /// Timeout of an invocation, in seconds.
    pub timeout: u32,
    /// Whether a parameter of the stack, `<resource>Concurrency`, reserves its concurrency.
    pub has_concurrency: bool,
    /// Resource of the layer that it needs.
    pub layer: Option<&'static str>,
}

impl Function {
    /// Matches all paths that no other function serves.
    pub const EVERYTHING_ELSE: &'static str = "/{*path}";
    /// Default memory, in MB. A request needs a few; the CPU comes in proportion.
    pub const MEMORY: u32 = 512;
    /// Timeout behind the gateway, in seconds. The gateway gives up after 30, so an invocation that
    /// ends before that leaves an error in the function's log.
    pub const BEHIND_GATEWAY: u32 = 29;

    /// A function without paths, rights or resources of its own.
    pub const BASE: Self = Self {
        name: "",
        resource: "",
        description: "",
        paths: &[],
        table: None,
        key_prefixes: &[],
        writes_access: false,
        bucket: &[],
        secrets: &[],
        keys: &[],
        queues: &[],
        invokes: &[],
        url: None,
        package: Package::Zip,
        settings: &[],
        memory: Self::MEMORY,
        timeout: Self::BEHIND_GATEWAY,
        has_concurrency: false,
        layer: None,
    };
}

/// A secret in Parameter Store (`SecureString`). The environment has the name of the parameter, and
/// the function may read it, so the template never contains the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Secret {
    /// The environment variable that has the parameter's name.
    pub variable: &'static str,
    /// Last part of the parameter's name: `/mlflow/<stack>/<name>`.
    pub name: &'static str,
    /// Why the function needs it, for the reader of the template.
    pub why: &'static str,
}

/// A key of KMS that the function uses in its own name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KmsKey {
    /// The resource of the template that is the key.
    pub resource: &'static str,
    /// The environment variable that has the key's ARN.
    pub variable: &'static str,
    /// The IAM actions, such as `kms:Decrypt`.
    pub actions: &'static [&'static str],
    /// Why the function needs it, for the reader of the template.
    pub why: &'static str,
}

/// A queue of SQS with its dead-letter queue. Every function that uses a queue declares the same
/// one; the function that consumes it also has it made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Name of its resource in `template.yaml`. It never changes.
    pub resource: &'static str,
    /// What the function does with it.
    pub role: QueueRole,
    /// Why the function needs it, for the reader of the template.
    pub why: &'static str,
}

/// What a function does with a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueRole {
    /// It sends messages. The environment variable has the queue's URL.
    Sends {
        /// The variable.
        variable: &'static str,
    },
    /// Lambda invokes it with batches of messages.
    Consumes {
        /// Largest batch, in messages.
        batch: u32,
        /// Attempts before a message goes to the dead-letter queue.
        attempts: u32,
    },
}

/// A URL of a function outside the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionUrl {
    /// Whether the caller has to sign its requests (`AWS_IAM`). Otherwise, anyone can call it.
    pub is_signed: bool,
    /// Whether it streams its responses.
    pub streams: bool,
}

/// How a function's program is deployed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Package {
    /// A zip archive with the program of the crate.
    Zip,
    /// A container image, whose URI is a parameter of the stack.
    Image {
        /// The parameter.
        parameter: &'static str,
    },
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
