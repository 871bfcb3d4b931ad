//! The table: every row of every domain, as partition key `/` sort key. The attributes of its items
//! follow in braces.
//!
//! Rows of domains whose functions are not built yet are declared here already, so that their place
//! in the table is decided once.

use model::{DatasetRecordId, EvaluationDatasetId, ExperimentId, ModelId, RunId, ScorerId, TraceId, UserName};

use crate::attributes::{
    AttributeDescription, CREATION, GRANTED, KEY_VALUE, LISTED_DATASET, LONG_CONTENT, MARKED, REMOVAL, RUN_INFO,
    TAGGED, WITH_PARAMS,
};
use crate::{
    Ascending, Bucket, Descending, DescendingDouble, Digest, Field, Key, KeyRange, ListKind, ModelKey, ModelKind, Name,
    Ordinal, OwnStage, Prefix, Segment, Shard, TokenPart, Value, WideDigest,
};

/// The description of a row, for the table reference.
#[derive(Clone, Copy, Debug)]
pub struct RowDescription {
    /// The row's type.
    pub name: &'static str,
    /// Pattern of the partition key.
    pub pk: &'static str,
    /// Pattern of the sort key.
    pub sk: &'static str,
    /// The content of the row.
    pub purpose: &'static str,
    /// Its attributes, without its key and those of indexes: its own, and groups that it shares
    /// with other rows.
    pub attributes: &'static [&'static [AttributeDescription]],
    /// Whether a key has the form of this row.
    pub has_form: fn(&Key) -> bool,
    /// Whether a key is one of this row, and can be read back.
    pub reads: fn(&Key) -> bool,
}

impl RowDescription {
    /// All attributes of the row, without its key and those of indexes.
    pub fn attributes(&self) -> impl Iterator<Item = &'static AttributeDescription> + use<> {
        self.attributes.iter().copied().flatten()
    }
}

rows! {
    // ---- an experiment, and rows of bounded number in it
    // -------------------------------------------------------------
    /// The experiment, a document: name, artifact location, lifecycle stage and its version, times, tags.
    Experiment = "EXP#" <experiment: ExperimentId> / "E#META" {
        NAME: Text required "name",
        WORKSPACE: Text "its workspace, where that is not the default one",
        OWNER: Text "the user who created it, where that is known",
        LOCATION: Text required "where it keeps its artifacts",
        CREATED: Number required "when it was created, in ms",
        UPDATED: Number required "when it was changed last, in ms",
        STAGE: LifecycleStage required "lifecycle stage",
        STAGE_VERSION: Count required "how often the stage has changed",
        REVISION: Number "there is one, so that the indexer is told of the removal",
        FORGOTTEN: Number "histories of metrics that are kept no longer are removed, of runs that ended until then, in ms",
        LOOKED: Number "when all its runs were last looked at for such histories, in ms",
        ..TAGGED, ..CREATION
    };
    /// A tag of the experiment that is too big for its document.
    ExperimentTag = "EXP#" <experiment: ExperimentId> / "E#TAG#" <tag: Name> { ..KEY_VALUE };

    /// A run, a document: info, params, tags, and the points of its first calls.
    Run = "EXP#" <experiment: ExperimentId> / "R#" <run: RunId> {
        LINKS: Number "it has rows of datasets or logged models",
        REBUILD: Number "set with the mark: all its entries in the index are to be put again, even those that should be there",
        DELETED_TIME: Number "when it was deleted by itself, in ms",
        OVERDUE: Number "set with the mark: it was not indexed in time, and is to be indexed at once",
        ROOM: Bytes "bytes that are removed when the run ends: a full partition takes only writes by which it does not grow",
        METRIC: ByteStrings "of a metric: the points of the run's first calls",
        JOURNAL: Number "set with the mark: there may be points in the journal; the number of calls that said so",
        LEASED: Number "set with the mark: calls that read this add to the journal, and write nothing here",
        CLOSING: Number "set with `leased`: calls must mark the run again; from this time on, in ms, each call under way has read this",
        SEEN: Number "the revision that was indexed last, where the mark stayed",
        PACKED: Count "how often points were packed into the metrics documents, when the run was indexed last",
        ..RUN_INFO, ..WITH_PARAMS, ..TAGGED, ..MARKED, ..CREATION
    };
    /// A param that is too big for the run's document, or one param too many for it.
    RunParam = "EXP#" <experiment: ExperimentId> / "R#" <run: RunId> "#PARAM#" <param: Name> { ..KEY_VALUE };
    /// A tag of a run, likewise.
    RunTag = "EXP#" <experiment: ExperimentId> / "R#" <run: RunId> "#TAG#" <tag: Name> { ..KEY_VALUE };
    /// A logged model of the run, and the step it was logged at.
    RunOutput = "EXP#" <experiment: ExperimentId> / "R#" <run: RunId> "#LM#" <model: Name> {
        MODEL: Text required "the model's id",
        STEP: Number required "the step it was logged at"
    };
    /// A dataset the run read, and the tags of this use of it.
    RunInput = "EXP#" <experiment: ExperimentId> / "R#" <run: RunId> "#INPUT#" <dataset: WideDigest> {
        NAME: Text required "the dataset's name",
        DIGEST: Text required "its digest, as the client computed it",
        TAGS: Texts required "tags of this use of it",
        ORDER: Number required "greater for what was logged later"
    };
    /// A logged model the run read.
    RunModelInput = "EXP#" <experiment: ExperimentId> / "R#" <run: RunId> "#LM_INPUT#" <model: Name> { MODEL: Text required "the model's id" };

    /// A logged model, a document: info, params, tags.
    LoggedModel = "EXP#" <experiment: ExperimentId> / "LM#" <model: ModelId> {
        NAME: Text required "name",
        MODEL_TYPE: Text required "what kind of model it is, as the client says",
        SOURCE_RUN: Text required "the run that made it, as the client says",
        MODEL_STATUS: ModelStatusNumber required "MLflow's number of the status",
        STAGE: LifecycleStage "lifecycle stage, where it was deleted",
        CREATED: Number required "when it was created, in ms",
        UPDATED: Number required "when it was changed last, in ms",
        ARTIFACT_URI: Text required "where its artifacts are",
        ..WITH_PARAMS, ..TAGGED, ..CREATION
    };
    /// The model's metrics: per metric the points logged for it, as a set.
    LoggedModelMetrics = "EXP#" <experiment: ExperimentId> / "LM#" <model: ModelId> "#METRIC" {
        METRIC: ByteStrings "of a metric: its points, each with the run and the dataset",
        SEGMENTS: Number "there are segments"
    };
    /// A param of a logged model that is too big for its document.
    LoggedModelParam = "EXP#" <experiment: ExperimentId> / "LM#" <model: ModelId> "#PARAM#" <param: Name> { ..KEY_VALUE };
    /// A tag of a logged model, likewise.
    LoggedModelTag = "EXP#" <experiment: ExperimentId> / "LM#" <model: ModelId> "#TAG#" <tag: Name> { ..KEY_VALUE };
    /// A UTC day on which traces of the experiment began, and over how many partitions they are spread. Written before the first of them.
    TraceDay = "EXP#" <experiment: ExperimentId> / "TRDAY#" <day: Ascending> {
        SHARDS: Count required "how many partitions",
        GREW: Number "when they became more, in ms"
    };
    /// A trace of the experiment that may have an assessment of its session. It is written before
    /// the assessment, and does not count while the trace has none.
    TraceOfSession = "EXP#" <experiment: ExperimentId> / "TRSESSION#" <trace: TraceId> {};
    /// A dataset that runs read: name, digest, the contexts it was read in; source, schema and profile, compressed, unless they are
    /// big. Its key is a hash of name and digest.
    Dataset = "EXP#" <experiment: ExperimentId> / "D#" <dataset: WideDigest> {
        NAME: Text required "name",
        DIGEST: Text required "digest, as the client computed it",
        SOURCE_TYPE: Text required "type of the source",
        CONTEXTS: TextSet required "the contexts in which it was read, each with a `=` before it; `-` for none",
        CONTENT_SIZE: Count required "the bytes of the content, before they were compressed",
        ..LONG_CONTENT
    };
    /// A run that read a dataset.
    DatasetLink = "EXP#" <experiment: ExperimentId> / "DLINK#" <dataset: WideDigest> "#" <run: RunId>;

    // ---- search, derived by the indexer: each list has partitions of its own, and so have the copies. Entries of one list are newest
    // first where their text or value is the same --------------------------------------------------------------------
    /// Names a list of the index, before its first entry is put. So all lists of an experiment can
    /// be found.
    IndexList = "EXP#" <experiment: ExperimentId> / "IX#" <entity_type: Name> "#" <kind: ListKind> "#" <of: Field> {
        NAME: Text required "the metric, the param or the field, which may be cut in the key"
    };
    /// Runs by a metric, greatest first.
    RankByMetric = "IX#" <experiment: ExperimentId> "#M#" <metric: Field> / "" <value: DescendingDouble> "#" <started: Descending> "#" <run: RunId>;
    /// Runs by a param.
    RankByParam = "IX#" <experiment: ExperimentId> "#P#" <param: Field> / "" <value: Value> "#" <started: Descending> "#" <run: RunId>;
    /// Entities that hold a token in a field: a trigram or, of a field that is indexed so, the whole value.
    FullText = "IX#" <experiment: ExperimentId> "#T#" <part: TokenPart> "#" <entity_type: Name> "#" <field: Field> / "" <token: Value> "#" <started: Descending> "#" <entity: Name>;
    /// A copy of an entity's values, as the indexer last read them. Its ranks and tokens follow
    /// from it. Newest first.
    IndexedCopy = "IX#" <experiment: ExperimentId> "#C" <stage: OwnStage> "#" <entity_type: Name> / "" <started: Descending> "#" <entity: Name> {
        PARAMS: Texts "params, all of them",
        TAGS: Texts "tags, all of them",
        METRIC: ByteStrings "of a metric: the latest point",
        LINK_ROWS: List "the rows of datasets and logged models",
        ENTRIES: List "in place of values, where these are too much: the entries of the index that follow from them",
        STALE: List "entries that were to be deleted when the copy was made",
        FIELDS: Text "which fields were indexed, as JSON, where these are not the usual ones",
        INDEXED: Text "the indexing that made the copy",
        ..RUN_INFO
    };

    /// An entity that changed shortly after it was indexed, and the time, in ms, when it may be indexed again: somebody looks then
    /// whether it was. Or a partition of traces (`traces`, day and number), and when it is to be packed.
    Postponed = "LATER#" <shard: Shard> / "DUE#" <due: Ascending> "#" <entity_type: Name> "#" <experiment: ExperimentId> "#" <entity: Name>;

    // ---- rows of unbounded number have a partition of their own
    // ------------------------------------------------------
    /// The points of some calls that log metrics, up to a KB, or of one: the tail that a process adds to. The stream's consumer packs them
    /// into the metrics documents, and deletes it.
    MetricJournal = "RUN#" <run: RunId> / "J#" <tail: Digest> { CALLS: ByteStrings required "the points of each call, packed" };
    /// The points of one call that is too large to share a tail: written at once, and never added to.
    JournalCall = "RUN#" <run: RunId> / "JC#" <call: Digest> { CALLS: ByteStrings required "the points of the call, packed: a set of one" };
    /// Names of metrics that calls log together again and again. The journal holds a hash in their
    /// place.
    JournalNames = "RUN#" <run: RunId> / "JN#" <names: WideDigest> { NAMES: Bytes required "the names, packed" };
    /// The run's metrics as they were packed last: per metric the latest point and the points that wait for a segment, as a set.
    RunMetrics = "RUN#" <run: RunId> / "L#METRIC" {
        METRIC: ByteStrings "of a metric: the latest point, and the points that wait for a segment",
        CHARTED: Bytes "of all its metrics: how many points are in segments and in chart rows, and up to where; missing where none is in a segment",
        PACKED: Count required "how often points were packed",
        WIDE: Number "there are further documents"
    };
    /// Further metrics of a wide run, spread by the metric's hash.
    RunMetricsBucket = "RUN#" <run: RunId> / "L#METRIC#" <bucket: Bucket> {
        METRIC: ByteStrings "of a metric: as in the first document",
        CHARTED: Bytes "as in the first document",
        PACKED: Count required "how often points were packed, when this was written"
    };
    /// Points of one metric, packed; keyed by the first of them in MLflow's order of history (timestamp, step) and a digest of all.
    MetricSegment = "RUN#" <run: RunId> / "MHIST#" <metric: Name> "#" <timestamp: Ascending> "#" <step: Ascending> "#" <points: Digest> {
        POINTS: Bytes required "the points, packed"
    };
    /// 256 evenly spaced points of about 1,000 in segments: charts of one metric with a long
    /// history are drawn from them. Four rows of a level make one of the next. Numbers count from 0
    /// on each level.
    MetricChart = "RUN#" <run: RunId> / "MCHART#" <metric: Name> "#" <level: Ordinal> "#" <number: Ordinal> {
        POINTS: Bytes required "the points, packed, in the order of steps",
        SPAN: Bytes required "how many these are, how many they stand for, and from where to where segments are that begin",
        DIGESTS: Bytes "of the first level: the hashes of the segments",
        PACKED: Count required "how often points had been packed into the metric's document when it was made"
    };
    /// A part of a dataset that is too big for its item. The hashes are of the dataset's name and
    /// digest, and of the content. The partition is the experiment's, and is removed with it.
    DatasetPart = "DATA#" <experiment: ExperimentId> "#" <dataset: WideDigest> / "D#PART#" <content: WideDigest> "#" <part: Ordinal> { CONTENT: Bytes required "the part" };
    /// Points of a logged model's metrics that its document has no room for.
    LoggedModelSegment = "MODEL#" <model: ModelId> / "MHIST#" <points: WideDigest> { POINTS: Bytes required "the points, packed" };
    /// A trace but for its spans, a document. Its id is the client's, so that only this row says its experiment. Or a stub: the runs that were
    /// linked to a trace before it came, which nobody is shown.
    Trace = "TRACE#" <trace: TraceId> / "T#HEAD" {
        EXPERIMENT: ExperimentId required "its experiment",
        START_TIME: Number required "when it began, in ms",
        DURATION: Number "how long it took, in ms",
        STATE: TraceState required "MLflow's state",
        REQUEST: Text "preview of the request",
        RESPONSE: Text "preview of the response",
        CLIENT_REQUEST: Text "the client's id of the request",
        TAGS: Texts required "tags",
        METADATA: Texts required "metadata",
        ASSESSMENTS: Texts required "assessments by their ids, as JSON",
        RUNS: TextSet "runs that it was linked to",
        PROMPTS: TextSet "prompt versions that it was linked to, as name/version",
        MARKED_AT: Number required "when its mark was put last, in ms",
        SHARD: Count "in which of its day's partitions its mark is; missing for the first",
        EDITS: Number required "counts the writes to the document, from a random number on: a document that is made a second time has other numbers",
        EXPIRES: Number "of a stub: until when it waits, in seconds; documents have none",
        ..CREATION
    };
    /// Packed spans of a trace: those of one export to this experiment, or a part of them. The key
    /// is a hash of the export's content, so that a repeated export is the same item. Spans that
    /// were sent to another experiment than the trace's do not belong to the trace. They are in a
    /// partition of that experiment.
    TraceSpans = "SPANS#" <experiment: ExperimentId> "#" <trace: TraceId> / "T#SPANS#" <export: WideDigest> "#" <part: Ordinal> {
        ARRIVED: Number required "when it came, in ms: of two exports of a span, the later counts",
        PARTS: Count required "of how many parts this is one",
        CONTENT: Bytes required "the spans, packed"
    };
    /// A mark: a trace of the experiment that began at this time of this UTC day, newest first. It
    /// is written before the trace gets the time. A mark does not count if its trace is missing or
    /// began at another time.
    TraceMark = "TR#" <experiment: ExperimentId> "#" <day: Ascending> "#" <shard: Ordinal> / "M#" <time: Descending> "#" <trace: TraceId> {
        MARKED_AT: Number required "when it was put, in ms: it is not taken away sooner than three minutes after that, unless the experiment is removed for good",
        BYTES: Number "of one that was put with spans: how many bytes these are",
        TO_PACK: Number "the stream tells the packer of it; taken off with `waits`",
        WAITS: Number "the packer passes over it until it is put again: its trace is too large for a block, or cannot be read"
    };
    /// A block of up to 128 traces that have not changed for some time, newest first. Searches read
    /// it in place of their documents. It owns the places after the key of the previous block, up
    /// to and including its own. Its key is the place of its oldest trace when it was made. A trace
    /// with a mark at its place is read from its document, and the block's copy of it does not
    /// count.
    TraceBlock = "TR#" <experiment: ExperimentId> "#" <day: Ascending> "#" <shard: Ordinal> / "B#" <time: Descending> "#" <trace: TraceId> {
        NEWEST: Number required "when the newest of its traces began, in ms",
        COUNT: Count required "how many traces",
        EDITS: Number required "a new random number with each write of the block",
        WRITTEN: Number required "when it was written, in ms",
        CORE: Bytes required "by column, packed: ids, times, durations, states, names, sessions, tokens",
        HEADS: Bytes required "the documents of its traces, packed",
        BLOCK_SPANS: Bytes required "the spans of how many of its traces each item of spans has, and the digest in its key",
        BEHIND: Text "of a block whose newer traces were cut off: where the block ended that they became"
    };
    /// Asks the stream's consumer to pack the partition. It stays: without it, nobody has packed the partition.
    Packing = "TR#" <experiment: ExperimentId> "#" <day: Ascending> "#" <shard: Ordinal> / "P" {
        TO_PACK: Number required "when it was asked for, in ms",
        FROM: Text "the place of the mark with which the pass begins, where one before it had too little time; missing for the oldest"
    };
    /// The lock for packing or removing the partition: only its holder does so.
    PackingLock = "TR#" <experiment: ExperimentId> "#" <day: Ascending> "#" <shard: Ordinal> / "L" {
        NONCE: Bytes required "a random number of the holder",
        UNTIL: Number required "until when, in ms"
    };
    /// The spans of some traces of a block, packed together. They are in partitions of their own:
    /// the other one has room for 10 GB, and needs it for marks. The key is a hash of the content,
    /// and nothing rewrites the item. The spans are also with their traces: a reader that misses an
    /// item reads them there.
    BlockSpans = "TS#" <experiment: ExperimentId> "#" <day: Ascending> "#" <shard: Ordinal> "#" <part: Ordinal> / "S#" <digest: WideDigest> {
        CONTENT: Bytes required "for each trace its id and its spans"
    };

    // ---- evaluation datasets and scorers -----------------------------------------------------------------------------
    /// An evaluation dataset, a document: name, tags, schema, number of records, digest, times, users, experiments.
    EvaluationDataset = "EVAL#" <dataset: EvaluationDatasetId> / "ED#META" {
        NAME: Text required "name",
        WORKSPACE: Text "its workspace, where that is not the default one",
        OWNER: Text "the user who created it, where that is known",
        DIGEST: Text required "digest",
        UPDATED: Number required "when it was changed last, in ms",
        CREATED_BY: Text "who created it",
        UPDATED_BY: Text "who changed it last",
        EXPERIMENTS: Numbers required "its experiments: when each was added, in ms",
        RECORDS: Count "how many records it has; missing before the first",
        SCHEMA_VERSION: Number "counts the changes of the schema, which is the content",
        REVISION: Number "there is one, so that the indexer is told of the removal",
        CONTENT_SIZE: Count "the bytes of the schema, before they were compressed; missing where there is none",
        ..TAGGED, ..LONG_CONTENT, ..CREATION
    };
    /// A record of it: inputs, outputs, expectations, tags and source, compressed, unless they are big; the hash of its inputs.
    /// Ids begin with the time of creation, so that a page of records is a range.
    EvaluationRecord = "EVAL#" <dataset: EvaluationDatasetId> / "ED#REC#" <record: DatasetRecordId> {
        INPUTS: WideDigest required "the hash of the inputs",
        UPDATED: Number required "when it was changed last, in ms",
        CREATED_BY: Text "who created it",
        UPDATED_BY: Text "who changed it last",
        CHANGES: Number "counts its changes",
        CONTENT_SIZE: Count required "the bytes of the content, before they were compressed",
        ..LONG_CONTENT
    };
    /// A tag of the dataset that is too big for its document.
    EvaluationDatasetTag = "EVAL#" <dataset: EvaluationDatasetId> / "ED#TAG#" <tag: Name> { ..KEY_VALUE };
    /// Claims the inputs of a record, by their hash, and names the record.
    EvaluationInputs = "EVALKEY#" <dataset: EvaluationDatasetId> / "ED#HASH#" <inputs: WideDigest> { RECORD: DatasetRecordId required "the record with these inputs" };
    /// A part of a content that is too big for a record's item or for the dataset's document.
    EvaluationPart = "EVALKEY#" <dataset: EvaluationDatasetId> / "ED#PART#" <content: WideDigest> "#" <part: Ordinal> { CONTENT: Bytes required "the part" };
    /// Lists an experiment's evaluation datasets, oldest first. Clients name experiments here that need not be there.
    ExperimentEvaluationDataset = "EVALEXP#" <experiment: Name> / "EDS#" <dataset: EvaluationDatasetId> { ..LISTED_DATASET };
    /// A scorer: its id, and a copy of its latest version.
    Scorer = "EXP#" <experiment: ExperimentId> / "SCORER#" <name: Name> {
        NAME: Text required "name",
        SCORER: ScorerId required "the scorer's id",
        VERSION: Count "the latest version; missing where all were deleted",
        CREATED: Number "when that was registered, in ms",
        CONTENT_SIZE: Count "the bytes of the content, before they were compressed",
        ..LONG_CONTENT
    };
    /// A version of a scorer, compressed, unless it is big.
    ScorerVersion = "EXP#" <experiment: ExperimentId> / "SCORERV#" <scorer: ScorerId> "#" <version: Ordinal> {
        VERSION: Count required "the version",
        CREATED: Number required "when it was registered, in ms",
        CONTENT_SIZE: Count required "the bytes of the content, before they were compressed",
        ..LONG_CONTENT, ..CREATION
    };
    /// A part of a version that is too big for an item.
    ScorerPart = "EXP#" <experiment: ExperimentId> / "SCORERPART#" <content: WideDigest> "#" <part: Ordinal> { CONTENT: Bytes required "the part" };
    /// On which traces a scorer runs by itself.
    ScorerOnlineConfig = "EXP#" <experiment: ExperimentId> / "SCORERCFG#" <scorer: ScorerId> {
        CONFIG: Text required "the configuration's id",
        RATE: Decimal required "which share of traces it runs on, as Python writes the number",
        FILTER: Text "which traces it runs on",
        EXPERIMENT: ExperimentId required "the experiment"
    };

    // ---- model registry ------------------------------------------------------------------------------------------
    /// A registered model, or a prompt, by its name. Its document has its number of versions, the
    /// latest version of each stage, aliases and tags. Its other rows are in the partition of its
    /// home. That is this partition unless the model was renamed, or the name had another model
    /// before.
    RegisteredModel = "RM#" <model: ModelKey> / "M#META" {
        NAME: Text required "name",
        ID: Text required "tells it from every other model, whatever their names were",
        WORKSPACE: Text "its workspace, where that is not the default one",
        OWNER: Text "the user who created it, where that is known",
        HOME: Text "the name of its home, where that is not its own",
        CREATED: Number required "when it was created, in ms",
        UPDATED: Number required "when it was changed last, in ms",
        RENAMED: Number "when it was renamed last, in ms: to MLflow, this changes all its versions",
        DESCRIPTION: Text required "description",
        EDITS: Number required "counts the writes to the document",
        VERSIONS: Count required "how many versions it has had",
        LATEST: Counts required "the greatest version of each stage",
        ALIASES: Counts required "the version of each alias",
        ..TAGGED, ..CREATION
    };
    /// The current name of the model whose rows this partition holds.
    ModelHome = "RM#" <home: ModelKey> / "M#HOME" {
        NAME: Text "the model's name; missing where it was deleted",
        WORKSPACE: Text "its workspace, where that is not the default one",
        ID: Text required "its id",
        RENAMED: Number "when it was renamed last, in ms"
    };
    /// A version of the model, a document.
    ModelVersion = "RM#" <home: ModelKey> / "M#V#" <version: Ordinal> {
        CREATED: Number required "when it was created, in ms",
        UPDATED: Number "when it was changed last, in ms, if it was",
        VERSION_STAGE: ModelStage required "stage",
        DESCRIPTION: Text "description, if it has one",
        SOURCE: Text required "where it is, as the client says",
        STORAGE: Text "where its artifacts are, if that is not its source",
        RUN: Text "its run",
        RUN_LINK: Text "a link to its run",
        UNSEEN: Number "how many tags were set without a look at how much it holds already",
        ..TAGGED, ..CREATION
    };
    /// A tag of a version that is too big for its document.
    ModelVersionTag = "RM#" <home: ModelKey> / "M#V#" <version: Ordinal> "#TAG#" <tag: Name> { ..KEY_VALUE };
    /// A tag of the model, likewise.
    ModelTag = "RM#" <home: ModelKey> / "M#TAG#" <tag: Name> { ..KEY_VALUE };
    /// A model version that names a run. The list belongs to the registry and is not in the run's
    /// partition: a version takes the run of its source without a check of that run. Each workspace
    /// has its own list.
    VersionOfRun = "MVRUN#" <run: ModelKey> / "MV#" <home: ModelKey> "#" <version: Ordinal> { HOME: Text required "the name of the home, which may be cut in the key" };

    // ---- workspaces, users, configuration --------------------------------------------------------------------------
    /// A workspace, a document.
    Workspace = "WORKSPACE#" <workspace: Name> / "WS#META" {
        ID: Text required "tells it from every other workspace, whatever their names were",
        BY_ID: Count "1, if roles and grants belong to it by its id; missing of a workspace made by 0.1.0, to which they belong by its name",
        DIRECTORY: Text "its directory of artifacts, where that is not its name: an earlier workspace had the name",
        CREATED: Number required "when it was created, in ms",
        DESCRIPTION: Text "description",
        LOCATION: Text "where its new experiments keep their artifacts, where that is not below the server's own place",
        ARCHIVE: Text "where MLflow's archive of traces would be; it is kept, and nothing is archived",
        ARCHIVE_AFTER: Text "after what time MLflow would archive traces; likewise",
        GOES_TO: Text "of a workspace that is being deleted, and takes no writes: the place to which its entities go",
        QUOTAS: Numbers "by what it bounds, such as runs or bytes: the most that a day may bring",
        EXHAUSTED: Numbers "by what it bounds: the UTC day, in days since 1970, that has brought its most",
        ..CREATION
    };
    /// The usage of a workspace on a UTC day.
    WorkspaceDay = "WORKSPACE#" <workspace: Name> / "WSDAY#" <day: Ascending> {
        CREATED_RUNS: Number "runs that were created",
        TRACES: Number "traces that began",
        BYTES: Number "bytes of spans that came"
    };
    /// Lists all workspaces but the default one, and those that nobody can name any more and whose contents are to be removed.
    ListedWorkspace = "WORKSPACES" / "WS#" <workspace: Name> { HAS_QUOTA: Count "1, if it has quotas" };
    /// A name that a deleted workspace had.
    FormerWorkspace = "WORKSPACES" / "WSUSED#" <workspace: Name>;
    /// Claims the name of an experiment, and lists the workspace's experiments by name, (LSI1) newest first and (LSI2) by their last change.
    ExperimentName = "WORKSPACE#" <workspace: Name> / "EXPNAME#" <name: Name> {
        NAME: Text required "the name, which may be cut in the key",
        EXPERIMENT: ExperimentId required "the experiment that has it"
    };
    /// Lists the registered models of a workspace by name, prompts apart, and (LSI2) by their last change.
    ModelName = "WORKSPACE#" <workspace: Name> / "RMNAME#" <kind: ModelKind> "#" <name: Name> { NAME: Text required "the name, which may be cut in the key" };
    /// Lists the workspace's evaluation datasets, oldest first.
    WorkspaceEvaluationDataset = "WORKSPACE#" <workspace: Name> / "EDS#" <dataset: EvaluationDatasetId> { ..LISTED_DATASET };
    /// Lists the workspace's scorers.
    WorkspaceScorer = "WORKSPACE#" <workspace: Name> / "SCORERS#" <experiment: ExperimentId> "#" <name: Name> {
        NAME: Text required "the name, which may be cut in the key"
    };
    /// A user's grant for an experiment.
    ExperimentPermission = "USER#" <user: UserName> / "U#PERM#" <experiment: ExperimentId> { ..GRANTED };
    /// The same for a registered model.
    ModelPermission = "USER#" <user: UserName> / "U#RPERM#" <model: ModelKey> { ..GRANTED };
    /// The same for a prompt.
    PromptPermission = "USER#" <user: UserName> / "U#PPERM#" <prompt: ModelKey> { ..GRANTED };
    /// The same for a scorer of an experiment.
    ScorerPermission = "USER#" <user: UserName> / "U#SPERM#" <experiment: ExperimentId> "#" <scorer: Name> {
        EXPERIMENT: ExperimentId required "the scorer's experiment",
        ..GRANTED
    };
    /// The same for a resource that this server does not have, by MLflow's name of its type. It is kept, and grants nothing.
    OtherPermission = "USER#" <user: UserName> / "U#OPERM#" <kind: Field> "#" <resource: Name> {
        IN_WORKSPACE: Text "the workspace in which it was granted, where that is not the default one",
        ..GRANTED
    };
    /// A user's grants for all resources of a type.
    TypePermissions = "USER#" <user: UserName> / "U#TPERM" {
        USER_ID: Count required "the user's id: a later user of the same name is granted nothing by it",
        LEVELS: Texts required "levels by type, both by MLflow's names; the workspace and a `/` come before the type, unless it is the default one"
    };
    /// One setting: the table's layout, TTL policies, indexed fields; also the counter of experiment ids.
    Config = "CONFIG" / "CFG#" <setting: Name> {
        LAST_NUMBER: Number "of the counter: the last number that was given out",
        LAYOUT: Number "of the layout: its number",
        EXPERIMENT: ExperimentId "of the fields of one experiment: the experiment",
        INDEXED: Text "of the fields: which tags are indexed, as JSON",
        SEARCHED: Text "of the fields: which of them are searched, as JSON",
        KEPT_FOR: Text "of a TTL policy: how long deleted entities are kept, such as 30d; of the TTL policy of traces: how long traces are kept",
        OWN: TextSet "of the TTL policy of traces: experiments that may have one of their own, which is a tag"
    };

    // ---- entities being removed for good: the row is written first and deleted last; a process
    // that finds one goes on ----
    /// A run that is being removed, and cannot be restored any more.
    RunRemoval = "REMOVAL" / "R#" <experiment: ExperimentId> "#" <run: RunId> {
        START_TIME: Number "when the run began, in ms: its copy in the index is found by it",
        ..REMOVAL
    };
    /// A logged model that is being removed.
    LoggedModelRemoval = "REMOVAL" / "LM#" <experiment: ExperimentId> "#" <model: ModelId> { ..REMOVAL };
    /// An experiment that is being removed, with all that is in it.
    ExperimentRemoval = "REMOVAL" / "E#" <experiment: ExperimentId> {
        WORKSPACE: Text "its workspace, where that is not the default one",
        ..REMOVAL
    };
}

#[cfg(test)]
mod tests;
