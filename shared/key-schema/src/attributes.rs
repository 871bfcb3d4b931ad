//! The attributes of items: their names, and the groups of them that several rows have. What a row holds is declared beside its
//! key, in [`rows`](crate::rows).

/// An attribute of a row.
#[derive(Clone, Copy, Debug)]
pub struct Attribute {
    /// Its name; what follows a `<` stands for any text.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// What it holds.
    pub about: &'static str,
}

/// The type of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A string.
    Text,
    /// A number.
    Number,
    /// Bytes.
    Bytes,
    /// A set of byte strings.
    Set,
    /// A map.
    Map,
    /// A list.
    List,
}

impl Kind {
    /// What DynamoDB calls it in an item's JSON.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Text => "S",
            Self::Number => "N",
            Self::Bytes => "B",
            Self::Set => "BS",
            Self::Map => "M",
            Self::List => "L",
        }
    }

    /// What the table reference calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Number => "number",
            Self::Bytes => "binary",
            Self::Set => "binary set",
            Self::Map => "map",
            Self::List => "list",
        }
    }
}

impl Attribute {
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
    ARTIFACT_URI = "artifact_uri",
    CONFIG = "config",
    CONTENT = "content",
    CONTENT_ID = "content_id",
    CONTENT_PARTS = "content_parts",
    CONTENT_SIZE = "content_size",
    CONTEXTS = "contexts",
    COUNT = "count",
    CREATED = "created",
    CREATED_BY = "created_by",
    DESCRIPTION = "description",
    DIGEST = "digest",
    EDITS = "edits",
    END_TIME = "end_time",
    ENTRIES = "entries",
    EXPERIMENT = "experiment",
    EXPERIMENTS = "experiments",
    FIELDS = "fields",
    FILTER = "filter",
    FULL = "full",
    HOME = "home",
    ID = "id",
    INDEXED = "indexed",
    INPUTS = "inputs",
    LATEST = "latest",
    LINKS = "links",
    LINK_ROWS = "link_rows",
    LOCATION = "location",
    METRIC = ".<metric>",
    MODEL = "model",
    MODEL_TYPE = "model_type",
    NAME = "name",
    NONCE = "nonce",
    ORDER = "order",
    PARAMS = "params",
    PARAM_ROWS = "param_rows",
    POINTS = "points",
    RATE = "rate",
    REBUILD = "rebuild",
    RECORD = "record",
    RECORDS = "records",
    RENAMED = "renamed",
    REVISION = "rev",
    ROW_KEY = "key",
    ROW_VALUE = "value",
    RUN = "run",
    RUN_LINK = "run_link",
    SCHEMA_VERSION = "schema_version",
    SCORER = "scorer",
    SEARCHED = "searched",
    SEGMENTS = "segments",
    SOURCE = "source",
    SOURCE_RUN = "source_run",
    SOURCE_TYPE = "source_type",
    STAGE = "stage",
    STAGE_VERSION = "stage_version",
    STALE = "stale",
    START_TIME = "start_time",
    STATUS = "status",
    STEP = "step",
    STORAGE = "storage",
    TAGS = "tags",
    TAG_ROWS = "tag_rows",
    UNSEEN = "unseen",
    UPDATED = "updated",
    UPDATED_BY = "updated_by",
    USER = "user",
    VERSION = "version",
    VERSIONS = "versions",
    WIDE = "wide",
    WORKSPACE = "workspace",
}

/// What a document holds of its tags.
pub const TAGGED: &[Attribute] = attributes! {
    TAGS: Map "tags, but for those that have rows of their own",
    TAG_ROWS: Number "there may be rows of tags",
    FULL: Number "new tags and params get rows of their own",
};

/// What a document holds of its params.
pub const WITH_PARAMS: &[Attribute] = attributes! {
    PARAMS: Map "params, but for those that have rows of their own",
    PARAM_ROWS: Number "how many transactions have written rows of params: who adds a param checks it against all rows, or sees this change",
};

/// What the item of something that clients create holds of its creation.
pub const CREATION: &[Attribute] = attributes! {
    NONCE: Bytes "drawn by the request that created it, to tell its item from another's after a lost answer",
};

/// The row of a tag or a param.
pub const KEY_VALUE: &[Attribute] = attributes! {
    ROW_KEY: Text "the key, which may be cut in the row's own",
    ROW_VALUE: Text "the value",
};

/// What the indexer has to know of an item. The mark itself is the key of an index.
pub const MARKED: &[Attribute] = attributes! {
    REVISION: Number "counts the changes that matter to the index",
    INDEXED: Text "the indexing that put the item into the index as it is",
};

/// A long content.
pub const LONG_CONTENT: &[Attribute] = attributes! {
    CONTENT: Bytes "the content, compressed",
    CONTENT_SIZE: Number "its bytes before they were compressed",
    CONTENT_ID: Text "in place of the content, where it is too big for the item: the hash its parts are named by",
    CONTENT_PARTS: Number "how many parts there are",
};

/// What a run's document holds besides params and tags.
pub const RUN_INFO: &[Attribute] = attributes! {
    NAME: Text "name",
    USER: Text "who started it",
    STATUS: Text "MLflow's status",
    START_TIME: Number "when it began, in ms",
    END_TIME: Number "when it ended, in ms",
    ARTIFACT_URI: Text "where its artifacts are",
    STAGE: Text "the lifecycle stage of the run by itself",
    STAGE_VERSION: Number "the version of the experiment's stage at which the run's own was set",
};

/// How lists of evaluation datasets repeat a dataset, unless its texts are long.
pub const LISTED_DATASET: &[Attribute] = attributes! {
    NAME: Text "name",
    CREATED_BY: Text "who created it",
};
