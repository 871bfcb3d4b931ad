//! The attributes of items: their names with their types, and groups that several rows share. Each
//! row declares its attributes next to its key, in [`rows`](crate::rows). Two constants with the
//! same stored name are attributes of different rows, with different types.

use std::fmt;
use std::marker::PhantomData;

pub use crate::kind::{
    ByteStrings, Bytes, Count, Counts, Kind, List, Mapping, Number, Numbers, Scalar, Set, Text, TextSet, Texts,
};
use crate::kind::{
    DatasetRecordId, Decimal, ExperimentId, LifecycleStage, ModelStage, ModelStatusNumber, RunStatus, ScorerId,
    TraceState, Typed, WideDigest,
};

/// The name of an attribute, with the type of its values.
pub struct Attribute<T: ?Sized> {
    name: &'static str,
    kind: PhantomData<fn() -> *const T>,
}

impl<T: ?Sized> Attribute<T> {
    /// Returns the stored name. A `<` in it begins a placeholder for any text.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }
}

impl<T: ?Sized> Clone for Attribute<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for Attribute<T> {}

impl<T: ?Sized> fmt::Debug for Attribute<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

impl<T: ?Sized> fmt::Display for Attribute<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

impl<T: ?Sized> From<Attribute<T>> for String {
    fn from(attribute: Attribute<T>) -> Self {
        attribute.name.to_owned()
    }
}

/// The description of an attribute of a row.
#[derive(Clone, Copy, Debug)]
pub struct AttributeDescription {
    /// Stored name. A `<` in it begins a placeholder for any text.
    pub name: &'static str,
    /// Type of the values.
    pub kind: Kind,
    /// Whether every item of the row has the attribute.
    pub is_required: bool,
    /// Content of the attribute, as a phrase for the table reference.
    pub about: &'static str,
}

impl AttributeDescription {
    /// Returns the description of an attribute that a row declares.
    pub(crate) const fn new<T: Typed + ?Sized>(
        attribute: Attribute<T>,
        is_required: bool,
        about: &'static str,
    ) -> Self {
        Self { name: attribute.name, kind: T::KIND, is_required, about }
    }

    /// Checks whether the name is a pattern for all attributes with a prefix.
    #[must_use]
    pub fn is_pattern(&self) -> bool {
        self.name.contains('<')
    }

    /// Checks whether this description applies to attributes of this name.
    #[must_use]
    pub fn is_named(&self, name: &str) -> bool {
        self.name.split_once('<').map_or(self.name == name, |(beginning, _)| name.starts_with(beginning))
    }
}

/// Returns the name of a metric's attribute. Only attributes of metrics start with a dot.
#[must_use]
pub fn metric_attribute(metric: &str) -> String {
    format!(".{metric}")
}

/// Returns the metric that an attribute belongs to, or `None` for other attributes.
#[must_use]
pub fn metric_of(attribute: &str) -> Option<&str> {
    attribute.strip_prefix('.')
}

macro_rules! names {
    ($($constant:ident: $kind:ty = $name:literal),+ $(,)?) => {
        $(
            #[doc = concat!("`", $name, "`. [`rows`](crate::rows) describes its content in each row.")]
            pub const $constant: Attribute<$kind> = Attribute { name: $name, kind: PhantomData };
        )+
    };
}

names! {
    ABANDONED: Number = "abandoned",
    ACCESS_ENDPOINTS: Texts = "endpoints",
    ADDED: Number = "added",
    ADDS_ONLY: Number = "adds",
    ALIASES: Counts = "aliases",
    ALL: Number = "all",
    ANSWER: Text = "answer",
    ARCHIVE: Text = "archive",
    ARCHIVED: Number = "archived",
    ARCHIVED_PER_PASS: Number = "archived_per_pass",
    ARCHIVED_SEGMENTS: Bytes = "segments",
    ARCHIVED_SPANS: Bytes = "archived_spans",
    ARCHIVE_AFTER: Text = "archive_after",
    ARCHIVE_SCANNED: Number = "archive_scanned",
    ARRIVED: Number = "arrived",
    ARTIFACT_URI: Text = "artifact_uri",
    ASSESSMENTS: Texts = "assessments",
    ASSIGNMENT: Count = "assignment",
    ATTACHED: Number = "attached",
    ATTEMPTS: Count = "attempts",
    BEHIND: Text = "behind",
    BLOCK_SPANS: Bytes = "spans",
    BODY: Text = "body",
    BYTES: Number = "bytes",
    BY_ID: Count = "by_id",
    CALLS: ByteStrings = "calls",
    CATEGORIES: Text = "categories",
    CHANGES: Number = "version",
    CHARTED: Bytes = "charted",
    CLAIMED: Text = "claimed",
    CLAIMED_UNTIL: Number = "claimed_until",
    CLIENT_REQUEST: Text = "client_request",
    CLOSING: Number = "closing",
    COMMENTS: Count = "comments",
    COMPLETED: Number = "completed",
    COMPLETED_BY: Text = "completed_by",
    CONFIG: Text = "config",
    CONFIGURATION: Text = "configuration",
    CONFIRMED_UNTIL: Number = "confirmed_until",
    CONTENT: Bytes = "content",
    CONTENT_ID: WideDigest = "content_id",
    CONTENT_PARTS: Count = "content_parts",
    CONTENT_PATH: Text = "content_path",
    CONTENT_SIZE: Count = "content_size",
    CONTEXTS: TextSet = "contexts",
    CORE: Bytes = "core",
    COUNT: Count = "count",
    CREATED: Number = "created",
    CREATED_BY: Text = "created_by",
    CREATED_RUNS: Number = "runs",
    CREATION_TIME: Number = "creation_time",
    DELETED_TIME: Number = "deleted_time",
    DESCRIPTION: Text = "description",
    DEVICE: Text = "device",
    DIGEST: Text = "digest",
    DIGESTS: Bytes = "digests",
    DIRECTORY: Text = "directory",
    DISABLED: Count = "disabled",
    DISPLAY_NAME: Text = "display_name",
    DUE: Number = "due",
    DURATION: Number = "duration",
    EDITS: Number = "edits",
    END_TIME: Number = "end_time",
    ENTRIES: List = "entries",
    EVENT: Text = "event",
    EVENTS: TextSet = "events",
    EXHAUSTED: Numbers = "exhausted",
    EXPERIMENT: ExperimentId = "experiment",
    EXPERIMENTS: Numbers = "experiments",
    EXPIRES: Number = "ttl",
    FIELDS: Text = "fields",
    FILED: Number = "filed",
    FILTER: Text = "filter",
    FORGOTTEN: Number = "forgotten",
    FROM: Text = "from",
    FULL: Number = "full",
    GENERATION: Count = "generation",
    GIT_REF: Text = "ref",
    GOES_TO: Text = "state",
    GRACE_UNTIL: Number = "grace_until",
    GRANTS: Texts = "grants",
    GREW: Number = "grew",
    HAS_QUOTA: Count = "has_quota",
    HEADS: Bytes = "heads",
    HISTORIES_ARCHIVED: Number = "histories_archived",
    HOME: Text = "home",
    HOOK: Number = "hook",
    ICONS: Text = "icons",
    ID: Text = "id",
    IDENTITIES: Texts = "identities",
    IMPORTED: Text = "imp",
    INDEXED: Text = "indexed",
    INPUT: Text = "input",
    INPUTS: WideDigest = "inputs",
    INSTRUCTION: Text = "instruction",
    IN_BLOCK: Number = "in_block",
    IN_MARK: Bytes = "in_mark",
    IN_WORKSPACE: Text = "in_workspace",
    ISSUED_BY: Text = "issued_by",
    ISSUER: Text = "issuer",
    ISSUE_STATUS: Text = "status",
    IS_ADMIN: Count = "admin",
    JOURNAL: Number = "journal",
    KEPT_FOR: Text = "kept_for",
    LAST_NUMBER: Number = "count",
    LAST_SEEN: Number = "last_seen",
    LATEST: Counts = "latest",
    LATEST_CREATED: Number = "lc",
    LATEST_DESCRIPTION: Text = "ld",
    LATEST_ICONS: Text = "li",
    LATEST_NUMBER: Count = "latest",
    LATEST_SOURCE_TYPE: Text = "lt",
    LATEST_STATUS: Text = "ls",
    LATEST_VERSION: Text = "latest",
    LAYOUT: Number = "layout",
    LEASED: Number = "leased",
    LEASE_HOLDER: Text = "lease_holder",
    LEASE_UNTIL: Number = "lease_until",
    LEVEL: Text = "level",
    LEVELS: Texts = "levels",
    LINKS: Number = "links",
    LINK_ROWS: List = "link_rows",
    LOCATION: Text = "location",
    LOOKED: Number = "looked",
    MARKED_AT: Number = "marked",
    METADATA: Texts = "metadata",
    METRIC: ByteStrings = ".<metric>",
    MODEL: Text = "model",
    MODEL_STATUS: ModelStatusNumber = "status",
    MODEL_TYPE: Text = "model_type",
    NAME: Text = "name",
    NAMES: Bytes = "names",
    NEWEST: Number = "newest",
    NONCE: Bytes = "nc",
    OBJECT: Bytes = "object",
    ONLY: Text = "only",
    OPENED_WITH: Text = "opened_with",
    ORDER: Number = "order",
    OVERDUE: Number = "overdue",
    OWN: TextSet = "own",
    OWNER: Text = "owner",
    PACKED: Count = "packed",
    PARAMS: Texts = "params",
    PARAM_ROWS: Count = "param_rows",
    PACKINGS: Number = "packings",
    PARTS: Count = "parts",
    PASSWORD: Text = "password",
    PENDING_SINCE: Number = "pending_since",
    POINTS: Bytes = "points",
    POLLED: Number = "polled",
    POSITION: Text = "position",
    POSTPONED_UNTIL: Number = "postponed_until",
    PROMPTS: TextSet = "prompts",
    PROVIDER: Text = "provider",
    QUEUE: Text = "queue",
    QUEUES: TextSet = "queues",
    QUOTAS: Numbers = "quotas",
    RATE: Decimal = "rate",
    REBUILD: Number = "rebuild",
    RECORD: DatasetRecordId = "record",
    RECORDS: Count = "records",
    REFERRER: Text = "referrer",
    REFRESH: Bytes = "refresh",
    RELEASED: Number = "released",
    RENAMED: Number = "renamed",
    RENEW_BY: Number = "renew_by",
    REQUEST: Text = "request",
    RESOURCE: Text = "resource",
    RESPONSE: Text = "response",
    REVIEW_STATUS: Text = "status",
    REVISION: Number = "rev",
    ROLE: Count = "role",
    ROLES: Counts = "roles",
    ROOM: Bytes = "room",
    ROW_KEY: Text = "key",
    ROW_VALUE: Text = "value",
    RULE_ADMINISTRATOR: Text = "rule_administrator",
    RULE_ROLES: Texts = "rule_roles",
    RUN: Text = "run",
    RUNS: TextSet = "runs",
    RUN_LINK: Text = "run_link",
    SCHEMA: Text = "schema",
    SCHEMAS: TextSet = "schemas",
    SCHEMA_VERSION: Number = "schema_version",
    SCORER: ScorerId = "scorer",
    SEARCHED: Text = "searched",
    SECRET: Bytes = "secret",
    SEEN: Number = "seen",
    SEGMENTS: Number = "segments",
    SERVER_ALIASES: Texts = "aliases",
    SEVERITY: Text = "severity",
    SHARD: Count = "shard",
    SHARDS: Count = "shards",
    SOURCE: Text = "source",
    SOURCE_RUN: Text = "source_run",
    SOURCE_TYPE: Text = "source_type",
    SPAN: Bytes = "span",
    STAGE: LifecycleStage = "stage",
    STAGE_VERSION: Count = "stage_version",
    STALE: List = "stale",
    START_TIME: Number = "start_time",
    STATE: TraceState = "state",
    STATUS: RunStatus = "status",
    STEP: Number = "step",
    STORAGE: Text = "storage",
    SUBJECT: Text = "subject",
    SUBPATH: Text = "subpath",
    SUBSCRIPTIONS: Texts = "subscriptions",
    TAGS: Texts = "tags",
    TAG_ROWS: Number = "tag_rows",
    TOKEN: Count = "token",
    TO_PACK: Number = "to_pack",
    TRACES: Number = "traces",
    TRACE_EXISTS: Number = "trace_exists",
    TYPE: Text = "type",
    UNSEEN: Number = "unseen",
    UNTIL: Number = "until",
    UPDATED: Number = "updated",
    UPDATED_BY: Text = "updated_by",
    URL: Text = "url",
    USER: Text = "user",
    USERS: TextSet = "users",
    USER_ID: Count = "user_id",
    VERSION: Count = "version",
    VERSIONS: Count = "versions",
    VERSION_STAGE: ModelStage = "stage",
    VERSION_STATUS: Text = "status",
    WAITS: Number = "waits",
    WEBHOOKS: TextSet = "webhooks",
    WEBHOOK_STATUS: Text = "webhook_status",
    WIDE: Number = "wide",
    WORKSPACE: Text = "workspace",
    WORKSPACE_ID: Text = "workspace_id",
    WRITTEN: Number = "written",
}

/// Attributes that hold the tags of a document.
pub const TAGGED: &[AttributeDescription] = attributes! {
    TAGS: Texts required "tags, except those with rows of their own",
    TAG_ROWS: Number "set if there may be rows of tags",
    FULL: Number "set if new tags and params get rows of their own",
};

/// Attributes that hold the params of a document.
pub const WITH_PARAMS: &[AttributeDescription] = attributes! {
    PARAMS: Texts required "params, except those with rows of their own",
    PARAM_ROWS: Count "the number of transactions that have written rows of params: a writer of a param either checks it against all rows or notices this change",
};

/// Attributes that record the origin of an entity: the request that created it, or the record that
/// it was imported from.
pub const CREATION: &[AttributeDescription] = attributes! {
    NONCE: Bytes "nonce, drawn by the request that created the item, to recognize it after a lost response",
    IMPORTED: Text "a hash of the record that it was imported from; missing if a client created it",
};

/// Attributes of a user's grant for one resource.
pub const GRANTED: &[AttributeDescription] = attributes! {
    USER_ID: Count required "the user's id: the grant does not apply to a later user of the same name",
    RESOURCE: Text "distinguishes the resource from others of its name, prefixed with its workspace and a `/` unless that is the default one; missing if no such resource existed at the time of the grant, which then grants nothing",
    NAME: Text required "the name of the resource, which may be truncated in the key",
    LEVEL: Text required "the level, by MLflow's name",
};

/// Attributes of an entity that is being removed permanently.
pub const REMOVAL: &[AttributeDescription] = attributes! {
    NONCE: Bytes required "nonce, drawn by the process that last wrote the row: only this process may delete it again",
};

/// Attributes of a webhook's delivery that is pending or has failed for good.
pub const DELIVERY: &[AttributeDescription] = attributes! {
    MODEL: Text required "the model of the event, as an attribute of `ModelKey`, which may be truncated in the key",
    EVENT: Text required "the id of the event",
    ATTEMPTS: Count required "the number of attempts so far",
    PENDING_SINCE: Number required "since when the delivery is attempted, in ms",
    ANSWER: Text "the outcome of the last attempt: the status, or why there was none",
    EXPIRES: Number required "when DynamoDB deletes the row, in seconds",
};

/// Attributes of a row that holds one tag or param.
pub const KEY_VALUE: &[AttributeDescription] = attributes! {
    ROW_KEY: Text required "the key, which may be truncated in the row's key",
    ROW_VALUE: Text required "the value",
};

/// Attributes with which the indexer keeps track of a changed run. The mark itself is an index key.
pub const MARKED: &[AttributeDescription] = attributes! {
    REVISION: Number "counts the changes that are relevant to the index",
    INDEXED: Text "the id of the indexing that put the item into the index in its current state",
    DUE: Number "only if the run had not ended when it was indexed: time in ms before which it need not be indexed again",
};

/// Attributes of a long content, except its size. Rows declare the size themselves, because some
/// rows require a content and others do not.
pub const LONG_CONTENT: &[AttributeDescription] = attributes! {
    CONTENT: Bytes "the content, compressed",
    CONTENT_ID: WideDigest "the hash that the parts are keyed by, if the content is too big for the item",
    CONTENT_PARTS: Count "the number of parts",
};

/// Attributes of a run's document, without params and tags.
pub const RUN_INFO: &[AttributeDescription] = attributes! {
    NAME: Text required "name",
    USER: Text required "the user who started it",
    STATUS: RunStatus required "MLflow's status",
    START_TIME: Number required "start time, in ms",
    END_TIME: Number "end time, in ms",
    ARTIFACT_URI: Text "where its artifacts are, if not in the experiment's default place for runs",
    STAGE: LifecycleStage "the run's own lifecycle stage",
    STAGE_VERSION: Count "the version of the experiment's stage when the run's own stage was set",
};

/// Attributes of an evaluation dataset that the rows which list the dataset repeat, unless its
/// texts are long.
pub const LISTED_DATASET: &[AttributeDescription] = attributes! {
    NAME: Text "name",
    CREATED: Number "when it was created, in ms, if its id does not begin with this time",
    CREATED_BY: Text "who created it",
};
