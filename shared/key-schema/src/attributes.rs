//! The attributes of items: their names, and the groups of them that several rows have. Each row
//! declares its attributes with its key, in [`rows`](crate::rows).

use model::{DatasetRecordId, ExperimentId, LifecycleStage, ModelStage, RunStatus, ScorerId, TraceState};

use crate::{Segment, WideDigest};

/// An attribute of a row.
#[derive(Clone, Copy, Debug)]
pub struct Attribute {
    /// Its name. From a `<` on, the name may be any text.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Whether every item of the row has it.
    pub is_required: bool,
    /// Its content.
    pub about: &'static str,
}

/// The type of an attribute, and the meaning of its text or number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A string.
    Text,
    /// A lifecycle stage, by its name.
    Stage,
    /// The status of a run, by its name.
    RunStatus,
    /// The stage of a model version, by its name.
    VersionStage,
    /// The state of a trace, by its name.
    TraceState,
    /// The id of an experiment.
    ExperimentId,
    /// The id of a record of an evaluation dataset.
    RecordId,
    /// The id of a scorer.
    ScorerId,
    /// A hash of 128 bits, in hexadecimal digits.
    Hash,
    /// A decimal number, as a string.
    Decimal,
    /// A whole number.
    Number,
    /// A whole number of 32 bits that is not negative.
    Count,
    /// The status of a logged model, by MLflow's number.
    ModelStatus,
    /// Bytes.
    Bytes,
    /// A set of byte strings.
    Set,
    /// A set of byte strings that are texts.
    TextSet,
    /// A map of strings.
    Texts,
    /// A map of whole numbers.
    Numbers,
    /// A map of whole numbers of 32 bits that are not negative.
    Counts,
    /// A list.
    List,
}

impl Kind {
    /// DynamoDB's name of it in an item's JSON.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Number | Self::Count | Self::ModelStatus => "N",
            Self::Bytes => "B",
            Self::Set | Self::TextSet => "BS",
            Self::Texts | Self::Numbers | Self::Counts => "M",
            Self::List => "L",
            _ => "S",
        }
    }

    /// Its name in the table reference.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.code() {
            "N" => "number",
            "B" => "binary",
            "BS" => "binary set",
            "M" => "map",
            "L" => "list",
            _ => "string",
        }
    }

    /// Whether a string or a number can be of this kind. Of other types, it is known by their type alone.
    #[must_use]
    pub fn reads(self, text: &str) -> bool {
        match self {
            Self::Stage => LifecycleStage::from_name(text).is_some(),
            Self::RunStatus => RunStatus::from_name(text).is_some(),
            Self::VersionStage => ModelStage::from_name(text).is_some(),
            Self::TraceState => TraceState::from_name(text).is_some(),
            Self::ExperimentId => text.parse().ok().and_then(ExperimentId::from_number).is_some(),
            Self::RecordId => DatasetRecordId::parse(text).is_some(),
            Self::ScorerId => ScorerId::parse(text).is_some(),
            Self::Hash => WideDigest::read(text).is_some(),
            Self::Decimal => text.parse::<f64>().is_ok(),
            Self::Number => text.parse::<i64>().is_ok(),
            Self::Count => text.parse::<u32>().is_ok(),
            Self::ModelStatus => matches!(text, "0" | "1" | "2" | "3"),
            _ => true,
        }
    }

    /// The kind of the values of a map.
    #[must_use]
    pub fn of_values(self) -> Option<Self> {
        match self {
            Self::Texts => Some(Self::Text),
            Self::Numbers => Some(Self::Number),
            Self::Counts => Some(Self::Count),
            _ => None,
        }
    }
}

impl Attribute {
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
    ($($constant:ident = $name:literal),+ $(,)?) => {
        $(
            #[doc = concat!("`", $name, "`; [`rows`](crate::rows) say of each row what it holds.")]
            pub const $constant: &str = $name;
        )+
    };
}

names! {
    ALIASES = "aliases",
    ARCHIVE = "archive",
    ARCHIVE_AFTER = "archive_after",
    ARRIVED = "arrived",
    ARTIFACT_URI = "artifact_uri",
    ASSIGNMENT = "assignment",
    ASSESSMENTS = "assessments",
    BEHIND = "behind",
    BLOCK_SPANS = "spans",
    BYTES = "bytes",
    CALLS = "calls",
    CHARTED = "charted",
    CLIENT_REQUEST = "client_request",
    CLOSING = "closing",
    CONFIG = "config",
    CONTENT = "content",
    CONTENT_ID = "content_id",
    CONTENT_PARTS = "content_parts",
    CONTENT_SIZE = "content_size",
    CONTEXTS = "contexts",
    CORE = "core",
    COUNT = "count",
    CREATED = "created",
    CREATED_BY = "created_by",
    CREATION_TIME = "creation_time",
    DELETED_TIME = "deleted_time",
    DESCRIPTION = "description",
    DIGEST = "digest",
    DIGESTS = "digests",
    DISABLED = "disabled",
    DUE = "due",
    DURATION = "duration",
    EDITS = "edits",
    END_TIME = "end_time",
    ENTRIES = "entries",
    EXHAUSTED = "exhausted",
    EXPERIMENT = "experiment",
    EXPERIMENTS = "experiments",
    EXPIRES = "ttl",
    FIELDS = "fields",
    FILTER = "filter",
    FORGOTTEN = "forgotten",
    FROM = "from",
    FULL = "full",
    GRANTS = "grants",
    GREW = "grew",
    HAS_QUOTA = "has_quota",
    HEADS = "heads",
    HOME = "home",
    ID = "id",
    INDEXED = "indexed",
    INPUTS = "inputs",
    IN_WORKSPACE = "in_workspace",
    IS_ADMIN = "admin",
    JOURNAL = "journal",
    KEPT_FOR = "kept_for",
    LATEST = "latest",
    LAYOUT = "layout",
    LEASED = "leased",
    LEVEL = "level",
    LEVELS = "levels",
    LINKS = "links",
    LINK_ROWS = "link_rows",
    LOCATION = "location",
    LOOKED = "looked",
    MARKED_AT = "marked",
    METADATA = "metadata",
    METRIC = ".<metric>",
    MODEL = "model",
    MODEL_TYPE = "model_type",
    NAME = "name",
    NAMES = "names",
    NEWEST = "newest",
    NONCE = "nc",
    ONLY = "only",
    OPENED_WITH = "opened_with",
    ORDER = "order",
    OVERDUE = "overdue",
    OWN = "own",
    OWNER = "owner",
    PACKED = "packed",
    PARAMS = "params",
    PARAM_ROWS = "param_rows",
    PARTS = "parts",
    PASSWORD = "password",
    POINTS = "points",
    PROMPTS = "prompts",
    QUOTAS = "quotas",
    RATE = "rate",
    REBUILD = "rebuild",
    RECORD = "record",
    RECORDS = "records",
    RENAMED = "renamed",
    REQUEST = "request",
    RESOURCE = "resource",
    RESPONSE = "response",
    REVISION = "rev",
    ROLE = "role",
    ROLES = "roles",
    ROOM = "room",
    ROW_KEY = "key",
    ROW_VALUE = "value",
    RUN = "run",
    RUN_LINK = "run_link",
    RUNS = "runs",
    SCHEMA_VERSION = "schema_version",
    SCORER = "scorer",
    SEARCHED = "searched",
    SECRET = "secret",
    SEEN = "seen",
    SEGMENTS = "segments",
    SHARD = "shard",
    SHARDS = "shards",
    SOURCE = "source",
    SOURCE_RUN = "source_run",
    SOURCE_TYPE = "source_type",
    SPAN = "span",
    STAGE = "stage",
    STAGE_VERSION = "stage_version",
    STALE = "stale",
    STATE = "state",
    START_TIME = "start_time",
    STATUS = "status",
    STEP = "step",
    STORAGE = "storage",
    TAGS = "tags",
    TAG_ROWS = "tag_rows",
    TOKEN = "token",
    TO_PACK = "to_pack",
    TRACES = "traces",
    UNSEEN = "unseen",
    UNTIL = "until",
    UPDATED = "updated",
    UPDATED_BY = "updated_by",
    USER = "user",
    USER_ID = "user_id",
    VERSION = "version",
    VERSIONS = "versions",
    WAITS = "waits",
    WIDE = "wide",
    WORKSPACE = "workspace",
    WRITTEN = "written",
}

/// The attributes of a document about its tags.
pub const TAGGED: &[Attribute] = attributes! {
    TAGS: Texts required "tags, but for those that have rows of their own",
    TAG_ROWS: Number "there may be rows of tags",
    FULL: Number "new tags and params get rows of their own",
};

/// The attributes of a document about its params.
pub const WITH_PARAMS: &[Attribute] = attributes! {
    PARAMS: Texts required "params, but for those that have rows of their own",
    PARAM_ROWS: Count "the number of transactions that have written rows of params: a writer of a param checks it against all rows, or sees this change",
};

/// The attributes of an item about its creation by a client.
pub const CREATION: &[Attribute] = attributes! {
    NONCE: Bytes "nonce, drawn by the request that created it, to tell its item from another's after a lost answer",
};

/// A user's grant for one resource.
pub const GRANTED: &[Attribute] = attributes! {
    USER_ID: Count required "the user's id: a later user of the same name is granted nothing by it",
    RESOURCE: Text "tells the resource from another of its name, after its workspace and a `/` unless that is the default one; missing if there was none when it was granted: then it grants nothing",
    NAME: Text required "the resource, which may be cut in the key",
    LEVEL: Text required "the level, by MLflow's name",
};

/// The attributes of an entity that is being removed for good.
pub const REMOVAL: &[Attribute] = attributes! {
    NONCE: Bytes required "nonce, drawn by the process that wrote the row last: only that one takes it back",
};

/// The row of a tag or a param.
pub const KEY_VALUE: &[Attribute] = attributes! {
    ROW_KEY: Text required "the key, which may be cut in the row's own",
    ROW_VALUE: Text required "the value",
};

/// The attributes of an item that the indexer needs. The mark itself is the key of an index.
pub const MARKED: &[Attribute] = attributes! {
    REVISION: Number "counts the changes that matter to the index",
    INDEXED: Text "the indexing that put the item into the index as it is",
    DUE: Number "of a run that had not ended then: before this time, in ms, it need not be indexed again",
};

/// A long content. Rows declare its size themselves: some have items without a content.
pub const LONG_CONTENT: &[Attribute] = attributes! {
    CONTENT: Bytes "the content, compressed",
    CONTENT_ID: Hash "in place of the content, where it is too big for the item: the hash its parts are named by",
    CONTENT_PARTS: Count "how many parts there are",
};

/// The attributes of a run's document, without params and tags.
pub const RUN_INFO: &[Attribute] = attributes! {
    NAME: Text required "name",
    USER: Text required "who started it",
    STATUS: RunStatus required "MLflow's status",
    START_TIME: Number required "when it began, in ms",
    END_TIME: Number "when it ended, in ms",
    ARTIFACT_URI: Text "where its artifacts are, if that is not where its experiment keeps those of its runs",
    STAGE: Stage "the lifecycle stage of the run by itself",
    STAGE_VERSION: Count "the version of the experiment's stage at which the run's own was set",
};

/// How lists of evaluation datasets repeat a dataset, unless its texts are long.
pub const LISTED_DATASET: &[Attribute] = attributes! {
    NAME: Text "name",
    CREATED_BY: Text "who created it",
};
