//! The attributes of items: their names with their types, and the groups of them that several rows
//! have. Each row declares its attributes with its key, in [`rows`](crate::rows). Two constants with
//! one stored name are attributes of different rows, of different types.

use std::fmt;
use std::marker::PhantomData;

pub use crate::kind::{
    ByteStrings, Bytes, Count, Counts, Kind, List, Mapping, Number, Numbers, Scalar, Set, Text, TextSet, Texts,
};
use crate::kind::{
    DatasetRecordId, Decimal, ExperimentId, LifecycleStage, ModelStage, ModelStatusNumber, RunStatus, ScorerId,
    TraceState, Typed, WideDigest,
};

/// An attribute: its name, and the type of its values.
pub struct Attribute<T: ?Sized> {
    name: &'static str,
    kind: PhantomData<fn() -> *const T>,
}

impl<T: ?Sized> Attribute<T> {
    /// Its name. From a `<` on, the name may be any text.
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

/// An attribute of a row.
#[derive(Clone, Copy, Debug)]
pub struct AttributeDescription {
    /// Its name. From a `<` on, the name may be any text.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Whether every item of the row has it.
    pub is_required: bool,
    /// Its content.
    pub about: &'static str,
}

impl AttributeDescription {
    /// An attribute of a row that declares it with this type.
    pub(crate) const fn new<T: Typed + ?Sized>(
        attribute: Attribute<T>,
        is_required: bool,
        about: &'static str,
    ) -> Self {
        Self { name: attribute.name, kind: T::KIND, is_required, about }
    }

    /// Whether it means many attributes with the same beginning of their names.
    #[must_use]
    pub fn is_pattern(&self) -> bool {
        self.name.contains('<')
    }

    /// Whether an attribute of this name is meant.
    #[must_use]
    pub fn is_named(&self, name: &str) -> bool {
        self.name.split_once('<').map_or(self.name == name, |(beginning, _)| name.starts_with(beginning))
    }
}

/// The attribute of a metric. No other begins with a dot.
#[must_use]
pub fn metric_attribute(metric: &str) -> String {
    format!(".{metric}")
}

/// The metric of an attribute, if it is one's.
#[must_use]
pub fn metric_of(attribute: &str) -> Option<&str> {
    attribute.strip_prefix('.')
}

macro_rules! names {
    ($($constant:ident: $kind:ty = $name:literal),+ $(,)?) => {
        $(
            #[doc = concat!("`", $name, "`; [`rows`](crate::rows) say of each row what it holds.")]
            pub const $constant: Attribute<$kind> = Attribute { name: $name, kind: PhantomData };
        )+
    };
}

names! {
    ALIASES: Counts = "aliases",
    ARCHIVE: Text = "archive",
    ARCHIVE_AFTER: Text = "archive_after",
    ARRIVED: Number = "arrived",
    ARTIFACT_URI: Text = "artifact_uri",
    ASSESSMENTS: Texts = "assessments",
    ASSIGNMENT: Count = "assignment",
    BEHIND: Text = "behind",
    BLOCK_SPANS: Bytes = "spans",
    BYTES: Number = "bytes",
    BY_ID: Count = "by_id",
    CALLS: ByteStrings = "calls",
    CHANGES: Number = "version",
    CHARTED: Bytes = "charted",
    CLIENT_REQUEST: Text = "client_request",
    CLOSING: Number = "closing",
    CONFIG: Text = "config",
    CONTENT: Bytes = "content",
    CONTENT_ID: WideDigest = "content_id",
    CONTENT_PARTS: Count = "content_parts",
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
    DIGEST: Text = "digest",
    DIRECTORY: Text = "directory",
    DIGESTS: Bytes = "digests",
    DISABLED: Count = "disabled",
    DUE: Number = "due",
    DURATION: Number = "duration",
    EDITS: Number = "edits",
    END_TIME: Number = "end_time",
    ENTRIES: List = "entries",
    EXHAUSTED: Numbers = "exhausted",
    EXPERIMENT: ExperimentId = "experiment",
    EXPERIMENTS: Numbers = "experiments",
    EXPIRES: Number = "ttl",
    FIELDS: Text = "fields",
    FILTER: Text = "filter",
    FORGOTTEN: Number = "forgotten",
    FROM: Text = "from",
    FULL: Number = "full",
    GOES_TO: Text = "state",
    GRANTS: Texts = "grants",
    GREW: Number = "grew",
    HAS_QUOTA: Count = "has_quota",
    HEADS: Bytes = "heads",
    HOME: Text = "home",
    ID: Text = "id",
    INDEXED: Text = "indexed",
    INPUTS: WideDigest = "inputs",
    IN_WORKSPACE: Text = "in_workspace",
    IS_ADMIN: Count = "admin",
    JOURNAL: Number = "journal",
    KEPT_FOR: Text = "kept_for",
    LAST_NUMBER: Number = "count",
    LATEST: Counts = "latest",
    LAYOUT: Number = "layout",
    LEASED: Number = "leased",
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
    ONLY: Text = "only",
    OPENED_WITH: Text = "opened_with",
    ORDER: Number = "order",
    OVERDUE: Number = "overdue",
    OWN: TextSet = "own",
    OWNER: Text = "owner",
    PACKED: Count = "packed",
    PARAMS: Texts = "params",
    PARAM_ROWS: Count = "param_rows",
    PARTS: Count = "parts",
    PASSWORD: Text = "password",
    POINTS: Bytes = "points",
    PROMPTS: TextSet = "prompts",
    QUOTAS: Numbers = "quotas",
    RATE: Decimal = "rate",
    REBUILD: Number = "rebuild",
    RECORD: DatasetRecordId = "record",
    RECORDS: Count = "records",
    RENAMED: Number = "renamed",
    REQUEST: Text = "request",
    RESOURCE: Text = "resource",
    RESPONSE: Text = "response",
    REVISION: Number = "rev",
    ROLE: Count = "role",
    ROLES: Counts = "roles",
    ROOM: Bytes = "room",
    ROW_KEY: Text = "key",
    ROW_VALUE: Text = "value",
    RUN: Text = "run",
    RUNS: TextSet = "runs",
    RUN_LINK: Text = "run_link",
    SCHEMA_VERSION: Number = "schema_version",
    SCORER: ScorerId = "scorer",
    SEARCHED: Text = "searched",
    SECRET: Bytes = "secret",
    SEEN: Number = "seen",
    SEGMENTS: Number = "segments",
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
    TAGS: Texts = "tags",
    TAG_ROWS: Number = "tag_rows",
    TOKEN: Count = "token",
    TO_PACK: Number = "to_pack",
    TRACES: Number = "traces",
    UNSEEN: Number = "unseen",
    UNTIL: Number = "until",
    UPDATED: Number = "updated",
    UPDATED_BY: Text = "updated_by",
    USER: Text = "user",
    USER_ID: Count = "user_id",
    VERSION: Count = "version",
    VERSIONS: Count = "versions",
    VERSION_STAGE: ModelStage = "stage",
    WAITS: Number = "waits",
    WIDE: Number = "wide",
    WORKSPACE: Text = "workspace",
    WORKSPACE_ID: Text = "workspace_id",
    WRITTEN: Number = "written",
}

/// The attributes of a document about its tags.
pub const TAGGED: &[AttributeDescription] = attributes! {
    TAGS: Texts required "tags, but for those that have rows of their own",
    TAG_ROWS: Number "there may be rows of tags",
    FULL: Number "new tags and params get rows of their own",
};

/// The attributes of a document about its params.
pub const WITH_PARAMS: &[AttributeDescription] = attributes! {
    PARAMS: Texts required "params, but for those that have rows of their own",
    PARAM_ROWS: Count "the number of transactions that have written rows of params: a writer of a param checks it against all rows, or sees this change",
};

/// The attributes of an item about its creation by a client.
pub const CREATION: &[AttributeDescription] = attributes! {
    NONCE: Bytes "nonce, drawn by the request that created it, to tell its item from another's after a lost answer",
};

/// A user's grant for one resource.
pub const GRANTED: &[AttributeDescription] = attributes! {
    USER_ID: Count required "the user's id: a later user of the same name is granted nothing by it",
    RESOURCE: Text "tells the resource from another of its name, after its workspace and a `/` unless that is the default one; missing if there was none when it was granted: then it grants nothing",
    NAME: Text required "the resource, which may be cut in the key",
    LEVEL: Text required "the level, by MLflow's name",
};

/// The attributes of an entity that is being removed for good.
pub const REMOVAL: &[AttributeDescription] = attributes! {
    NONCE: Bytes required "nonce, drawn by the process that wrote the row last: only that one takes it back",
};

/// The row of a tag or a param.
pub const KEY_VALUE: &[AttributeDescription] = attributes! {
    ROW_KEY: Text required "the key, which may be cut in the row's own",
    ROW_VALUE: Text required "the value",
};

/// The attributes of an item that the indexer needs. The mark itself is the key of an index.
pub const MARKED: &[AttributeDescription] = attributes! {
    REVISION: Number "counts the changes that matter to the index",
    INDEXED: Text "the indexing that put the item into the index as it is",
    DUE: Number "of a run that had not ended then: before this time, in ms, it need not be indexed again",
};

/// A long content. Rows declare its size themselves: some have items without a content.
pub const LONG_CONTENT: &[AttributeDescription] = attributes! {
    CONTENT: Bytes "the content, compressed",
    CONTENT_ID: WideDigest "in place of the content, where it is too big for the item: the hash its parts are named by",
    CONTENT_PARTS: Count "how many parts there are",
};

/// The attributes of a run's document, without params and tags.
pub const RUN_INFO: &[AttributeDescription] = attributes! {
    NAME: Text required "name",
    USER: Text required "who started it",
    STATUS: RunStatus required "MLflow's status",
    START_TIME: Number required "when it began, in ms",
    END_TIME: Number "when it ended, in ms",
    ARTIFACT_URI: Text "where its artifacts are, if that is not where its experiment keeps those of its runs",
    STAGE: LifecycleStage "the lifecycle stage of the run by itself",
    STAGE_VERSION: Count "the version of the experiment's stage at which the run's own was set",
};

/// How lists of evaluation datasets repeat a dataset, unless its texts are long.
pub const LISTED_DATASET: &[AttributeDescription] = attributes! {
    NAME: Text "name",
    CREATED_BY: Text "who created it",
};
