//! A function as it is deployed.

/// A Lambda function of the stack, as `template.yaml` declares it.
///
/// A declaration names what the function uses and takes the rest from [`Function::BASE`]. The
/// program `template` of the crate `domains` turns it into resources and rights.
#[derive(Debug)]
pub struct Function {
    /// Name of the function's crate, program and log group.
    pub name: &'static str,
    /// Prefix of the names of the function's resources in `template.yaml`. It must not change,
    /// because CloudFormation would replace the resources with new ones.
    pub resource: &'static str,
    /// Purpose of the function, in one sentence.
    pub description: &'static str,
    /// Paths that are routed to the function. Each is a single path, a path with everything below
    /// it (`/x/{*path}`), or [`Function::CATCH_ALL_PATH`] for all paths that no other function
    /// serves. Empty if the function does not serve HTTP.
    pub paths: &'static [&'static str],
    /// Rights of the function on the data table; `None` if it does not use the table.
    pub table: Option<TableRights>,
    /// Prefixes of the partition keys in the table that the function may access
    /// (`dynamodb:LeadingKeys`). Empty for all keys. If the function reads an index, the prefixes
    /// also have to cover the partition keys of the index.
    pub key_prefixes: &'static [&'static str],
    /// Whether the function writes the access table. All functions that answer requests may read
    /// the access table.
    pub writes_access: bool,
    /// Rights of the function on the artifact bucket.
    pub bucket: &'static [BucketRight],
    /// Secrets that the function's environment refers to.
    pub secrets: &'static [SecretParameter],
    /// KMS keys that the function uses directly, in addition to the keys that encrypt the table and
    /// the bucket.
    pub keys: &'static [KmsKey],
    /// Queues that the function sends to or consumes.
    pub queues: &'static [Queue],
    /// Names of the functions that this function may invoke.
    pub invokes: &'static [&'static str],
    /// URL of the function outside the API, if it has one.
    pub url: Option<FunctionUrl>,
    /// The program that the function runs.
    pub package: Package,
    /// The settings in the function's environment.
    pub settings: &'static [EnvironmentSetting],
    /// Memory, in MB. Lambda allots CPU in proportion.
    pub memory: u32,
    /// Timeout of an invocation, in seconds.
    pub timeout: u32,
    /// Whether a parameter of the stack, `<resource>Concurrency`, reserves concurrency for the
    /// function.
    pub has_concurrency: bool,
    /// Name of the resource of the layer that the function needs.
    pub layer: Option<&'static str>,
}

impl Function {
    /// Matches all paths that no other function serves.
    pub const CATCH_ALL_PATH: &'static str = "/{*path}";
    /// Default memory, in MB. A request needs only a few MB, but CPU is allotted in proportion.
    pub const DEFAULT_MEMORY_MB: u32 = 512;
    /// Memory size, in MB, at which Lambda allots a whole core. For pure computation, it costs no
    /// more than a smaller size, because the function finishes proportionally faster.
    pub const WHOLE_CORE_MB: u32 = 1_769;
    /// Timeout behind the gateway, in seconds. The gateway gives up after 30 seconds. The timeout
    /// is shorter, so that Lambda ends the invocation first and logs an error for it.
    pub const GATEWAY_TIMEOUT_SECONDS: u32 = 29;

    /// A function without any paths, rights or resources, from which declarations take their
    /// defaults.
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
        memory: Self::DEFAULT_MEMORY_MB,
        timeout: Self::GATEWAY_TIMEOUT_SECONDS,
        has_concurrency: false,
        layer: None,
    };
}

/// A secret in Parameter Store (`SecureString`). The environment contains the name of the
/// parameter, which the function may read, so the template never contains the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretParameter {
    /// Environment variable for the parameter's name.
    pub variable: &'static str,
    /// Last part of the parameter's name: `/mlflow/<stack>/<name>`. With `<name>/*`, the function
    /// may read all parameters below the name, and the environment contains the name alone.
    pub name: &'static str,
    /// Reason why the function needs the secret, as a comment in the template.
    pub why: &'static str,
}

/// A KMS key that the function uses directly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KmsKey {
    /// Name of the key's resource in `template.yaml`.
    pub resource: &'static str,
    /// Environment variable for the key's ARN.
    pub variable: &'static str,
    /// The IAM actions, such as `kms:Decrypt`.
    pub actions: &'static [&'static str],
    /// Reason why the function needs the key, as a comment in the template.
    pub why: &'static str,
}

/// An SQS queue with its dead-letter queue. Functions that use the same queue declare it with the
/// same resource name. The template creates the queue together with the function that consumes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Name of the queue's resource in `template.yaml`. It must not change, because CloudFormation
    /// would replace the queue.
    pub resource: &'static str,
    /// How the function uses the queue.
    pub role: QueueRole,
    /// Reason why the function needs the queue, as a comment in the template.
    pub why: &'static str,
}

/// How a function uses a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueRole {
    /// The function sends messages to the queue.
    Sends {
        /// Environment variable for the queue's URL.
        variable: &'static str,
    },
    /// Lambda invokes the function with batches of messages.
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
    /// Whether responses are streamed.
    pub streams: bool,
}

/// How a function's program is deployed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Package {
    /// A zip archive with the program of the crate.
    Zip,
    /// A container image, whose URI is a parameter of the stack.
    Image {
        /// Name of the parameter.
        parameter: &'static str,
    },
}

/// The rights of a function on the data table. No function may scan it.
#[derive(Debug)]
pub struct TableRights {
    /// The actions.
    pub actions: TableActions,
    /// The indexes that the function reads.
    pub indexes: Indexes,
    /// Reason why the function needs the rights, as a comment in the template.
    pub why: &'static str,
}

/// Kinds of requests to the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableActions {
    /// Read items with known keys, from several tables in one request.
    GetMany,
    /// Read items and query.
    Read,
    /// Read and write, including transactions.
    Write,
    /// Read and write, including transactions, but without transaction conditions on items that the
    /// transaction does not write.
    Change,
    /// Like `Write`, but without updates: items are only replaced as a whole.
    Replace,
    /// Like `Write`, but without batches of writes.
    WriteItems,
    /// Like `Change`, but without batches of writes.
    ChangeItems,
    /// Like `Change`, and read the table's stream.
    Index,
}

impl TableActions {
    /// Returns the IAM actions. A transaction is authorized by the actions of its parts.
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
            Self::Replace => &[
                "dynamodb:BatchGetItem",
                "dynamodb:BatchWriteItem",
                "dynamodb:ConditionCheckItem",
                "dynamodb:DeleteItem",
                "dynamodb:GetItem",
                "dynamodb:PutItem",
                "dynamodb:Query",
            ],
            Self::WriteItems => &[
                "dynamodb:BatchGetItem",
                "dynamodb:ConditionCheckItem",
                "dynamodb:DeleteItem",
                "dynamodb:GetItem",
                "dynamodb:PutItem",
                "dynamodb:Query",
                "dynamodb:UpdateItem",
            ],
            Self::ChangeItems => &[
                "dynamodb:BatchGetItem",
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

    /// Checks whether a function with these rights can write to the table.
    #[must_use]
    pub const fn writes(self) -> bool {
        !matches!(self, Self::GetMany | Self::Read)
    }
}

/// Indexes of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexes {
    /// No index.
    None,
    /// Only these indexes.
    Only(&'static [&'static str]),
    /// All indexes.
    All,
}

/// A right of a function on the bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketRight {
    /// List the names of objects. A function without this right gets 403 from S3 instead of 404 for
    /// an object that does not exist.
    List,
    /// Read objects, and sign URLs to read them.
    Read,
    /// Read, write and delete objects, and sign URLs that do so.
    Change,
    /// Write objects that do not need a multipart upload, and delete objects.
    Write,
    /// Delete objects.
    Delete,
    /// Store responses that are too long for a Lambda below `.answers/`.
    OffloadResponses,
    /// Read archived data below `.archive/`.
    ReadArchive,
}

impl BucketRight {
    /// Returns the S3 actions, and the suffix that follows the bucket and prefix in the ARN of the
    /// objects. The suffix is `None` if the actions apply to the bucket itself.
    #[must_use]
    pub const fn iam(self) -> (&'static [&'static str], Option<&'static str>) {
        match self {
            Self::List => (&["s3:ListBucket"], None),
            Self::Read => (&["s3:GetObject"], Some("/*")),
            // The function lists the parts of a multipart upload only if `MaxArtifactSize` limits
            // uploads.
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
            Self::Write => (&["s3:DeleteObject", "s3:PutObject"], Some("/*")),
            Self::Delete => (&["s3:DeleteObject"], Some("/*")),
            Self::OffloadResponses => (&["s3:PutObject"], Some("/.answers/*")),
            Self::ReadArchive => (&["s3:GetObject"], Some("/.archive/*")),
        }
    }

    /// Returns the actions on the KMS key of an encrypted bucket. Completing a multipart upload reads
    /// its parts, so it decrypts as well.
    #[must_use]
    pub const fn key_actions(self) -> &'static [&'static str] {
        match self {
            Self::List | Self::Delete => &[],
            Self::Read | Self::ReadArchive => &["kms:Decrypt"],
            Self::Change => &["kms:Decrypt", "kms:GenerateDataKey"],
            Self::Write | Self::OffloadResponses => &["kms:GenerateDataKey"],
        }
    }

    /// Returns the reason why a function has the right, as a comment in the template.
    #[must_use]
    pub const fn why(self) -> &'static str {
        match self {
            Self::List => "Without this right, S3 does not report which objects are missing.",
            Self::Read => {
                "Reads files, or signs URLs to read them. A URL grants no more than the rights of its signer."
            }
            Self::Change => {
                "For requests and signed URLs. The parts of uploads are listed only if MaxArtifactSize limits them."
            }
            Self::Write => "Stores files in a single request each, and deletes them.",
            Self::Delete => "Deletes the files of entities that it deletes.",
            Self::ReadArchive => "Reads archived spans of traces that change.",
            Self::OffloadResponses => {
                "Stores responses that are too long for a Lambda. Clients are redirected to the stored response."
            }
        }
    }
}

/// An environment variable of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnvironmentSetting {
    /// `ARTIFACT_ROOT` and `ARTIFACTS_DESTINATION`: where experiments and the server store
    /// artifacts.
    Artifacts,
    /// `ARTIFACTS_PRESIGNED_ONLY`: whether clients have to use presigned URLs.
    PresignedOnly,
    /// `MAX_ARTIFACT_SIZE`: maximum size of a file, in bytes.
    MaxArtifactSize,
    /// `ARTIFACTS_ORIGIN`: the origin that the page may read files from.
    ArtifactsOrigin,
    /// `SECRETS_KEY`: ARN of the KMS key that encrypts the secrets that users store, or an empty text.
    /// The function may create encrypted data keys.
    SealsSecrets,
    /// `SECRETS_KEY`, with the permission to decrypt data keys.
    OpensSecrets,
    /// `RUN_INDEXING_INTERVAL`: seconds between two passes over a run that is being logged to.
    RunIndexingInterval,
}
