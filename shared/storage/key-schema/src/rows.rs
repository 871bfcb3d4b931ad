//! The data table: the rows of all domains. The declaration of a row consists of its partition key,
//! a `/`, its sort key, and the attributes of its items in braces.
//!
//! The table also contains rows of domains whose functions do not exist yet, so that their keys are
//! reserved.

use model::{
    ArchiveObject, DatasetRecordId, EvaluationDatasetId, ExperimentId, IssueId, LabelSchemaId, McpServerName,
    McpVersion, ModelId, ReviewQueueId, RunId, ScorerId, SkillName, TraceId, UserName, WebhookEventId, WebhookId,
};

use crate::attributes::{
    AttributeDescription, CREATION, DELIVERY, GRANTED, KEY_VALUE, LISTED_DATASET, LONG_CONTENT, MARKED, REMOVAL,
    RUN_INFO, TAGGED, WITH_PARAMS,
};
use crate::{
    Ascending, Bucket, Descending, DescendingDouble, Digest, Field, Key, KeyRange, ListKind, ModelKey, ModelKind, Name,
    Ordinal, OwnStage, Prefix, Segment, SequenceNumber, Shard, TokenPart, Value, WideDigest,
};

/// The description of a row, for the table reference.
#[derive(Clone, Copy, Debug)]
pub struct RowDescription {
    /// Name of the row's type.
    pub name: &'static str,
    /// Pattern of the partition key.
    pub pk: &'static str,
    /// Pattern of the sort key.
    pub sk: &'static str,
    /// Content of the row.
    pub purpose: &'static str,
    /// Attributes of the row, without the attributes of its key and of indexes: the row's own
    /// attributes, and groups that it shares with other rows.
    pub attributes: &'static [&'static [AttributeDescription]],
    /// Checks whether a key has the form of this row.
    pub has_form: fn(&Key) -> bool,
    /// Checks whether a key belongs to this row and can be parsed.
    pub reads: fn(&Key) -> bool,
}

impl RowDescription {
    /// Returns all attributes of the row, except its key and those of indexes.
    pub fn attributes(&self) -> impl Iterator<Item = &'static AttributeDescription> + use<> {
        self.attributes.iter().copied().flatten()
    }
}

rows! {
    // ---- experiments, and rows whose number in an experiment is bounded
    // ----------------------------
    /// An experiment, a document: name, artifact location, lifecycle stage and its version, times,
    /// tags.
    Experiment = "EXP#" <experiment: ExperimentId> / "E#META" {
        NAME: Text required "name",
        WORKSPACE: Text "its workspace, unless that is the default one",
        OWNER: Text "the user who created it, if known",
        LOCATION: Text required "its artifact location",
        CREATED: Number required "when it was created, in ms",
        UPDATED: Number required "when it was last changed, in ms",
        STAGE: LifecycleStage required "lifecycle stage",
        STAGE_VERSION: Count required "how often the stage has changed",
        REVISION: Number "always set, so that the stream reports the removal of the experiment to the indexer",
        FORGOTTEN: Number "expired histories of metrics have been removed from runs that ended up to this time, in ms",
        LOOKED: Number "when all its runs were last checked for expired histories, in ms",
        HISTORIES_ARCHIVED: Number "histories of metrics have been archived from runs that ended up to this time, in ms",
        ARCHIVE_SCANNED: Number "when all its runs were last checked for histories to archive, in ms",
        ..TAGGED, ..CREATION
    };
    /// A tag of the experiment that is too big for its document.
    ExperimentTag = "EXP#" <experiment: ExperimentId> / "E#TAG#" <tag: Name> { ..KEY_VALUE };

    /// A run, a document: info, params, tags, and the points of its first calls.
    Run = "EXP#" <experiment: ExperimentId> / "R#" <run: RunId> {
        LINKS: Number "set if it has rows of datasets or logged models",
        REBUILD: Number "set with the mark: all its index entries have to be written again, even those that should exist already",
        DELETED_TIME: Number "when it was deleted on its own, in ms",
        OVERDUE: Number "set with the mark: it was not indexed in time, and has to be indexed immediately",
        ROOM: Bytes "padding that is removed when the run ends, because a full partition only accepts writes that do not grow it",
        METRIC: ByteStrings "by metric: the points of the run's first calls",
        JOURNAL: Number "set with the mark: the journal may have points; counts the calls that have set it",
        LEASED: Number "set with the mark: calls that read it add to the journal without writing to this document",
        CLOSING: Number "set with `leased`: calls have to mark the run again; from this time on, in ms, all calls in flight have read this",
        SEEN: Number "the last indexed revision, if the mark was kept",
        PACKED: Count "how often points had been packed into the metrics documents when the run was last indexed",
        ..RUN_INFO, ..WITH_PARAMS, ..TAGGED, ..MARKED, ..CREATION
    };
    /// A param that is too big for the run's document, or was added when the document was full.
    RunParam = "EXP#" <experiment: ExperimentId> / "R#" <run: RunId> "#PARAM#" <param: Name> { ..KEY_VALUE };
    /// A tag that is too big for the run's document, or was added when the document was full.
    RunTag = "EXP#" <experiment: ExperimentId> / "R#" <run: RunId> "#TAG#" <tag: Name> { ..KEY_VALUE };
    /// A logged model of the run, with the step at which it was logged.
    RunOutput = "EXP#" <experiment: ExperimentId> / "R#" <run: RunId> "#LM#" <model: Name> {
        MODEL: Text required "the model's id",
        STEP: Number required "the step at which it was logged"
    };
    /// A dataset that the run read, with the tags of this use.
    RunInput = "EXP#" <experiment: ExperimentId> / "R#" <run: RunId> "#INPUT#" <dataset: WideDigest> {
        NAME: Text required "the dataset's name",
        DIGEST: Text required "its digest, as computed by the client",
        TAGS: Texts required "tags of this use",
        ORDER: Number required "greater for datasets that were logged later"
    };
    /// A logged model that the run read.
    RunModelInput = "EXP#" <experiment: ExperimentId> / "R#" <run: RunId> "#LM_INPUT#" <model: Name> { MODEL: Text required "the model's id" };

    /// A logged model, a document: info, params, tags.
    LoggedModel = "EXP#" <experiment: ExperimentId> / "LM#" <model: ModelId> {
        NAME: Text required "name",
        MODEL_TYPE: Text required "type of the model, as given by the client",
        SOURCE_RUN: Text required "the run that created it, as given by the client",
        MODEL_STATUS: ModelStatusNumber required "the status, as MLflow's number",
        STAGE: LifecycleStage "lifecycle stage, if it was deleted",
        CREATED: Number required "when it was created, in ms",
        UPDATED: Number required "when it was last changed, in ms",
        ARTIFACT_URI: Text required "where its artifacts are",
        ..WITH_PARAMS, ..TAGGED, ..CREATION
    };
    /// The metrics of a logged model: for each metric, the set of points logged for it.
    LoggedModelMetrics = "EXP#" <experiment: ExperimentId> / "LM#" <model: ModelId> "#METRIC" {
        METRIC: ByteStrings "by metric: its points, each with the run and the dataset",
        SEGMENTS: Number "set if there are segments"
    };
    /// A param of a logged model that is too big for its document.
    LoggedModelParam = "EXP#" <experiment: ExperimentId> / "LM#" <model: ModelId> "#PARAM#" <param: Name> { ..KEY_VALUE };
    /// A tag of a logged model that is too big for its document.
    LoggedModelTag = "EXP#" <experiment: ExperimentId> / "LM#" <model: ModelId> "#TAG#" <tag: Name> { ..KEY_VALUE };
    /// A UTC day on which traces of the experiment began, with the number of partitions they are
    /// spread over. Written before the first of these traces.
    TraceDay = "EXP#" <experiment: ExperimentId> / "TRDAY#" <day: Ascending> {
        SHARDS: Count required "number of partitions",
        GREW: Number "when this number last grew, in ms",
        FILED: Number "when all traces of the day had been archived to files, in ms",
        PACKINGS: Number "counts the passes that packed traces of the day after it had ended; missing before the first",
        ARCHIVED: Number "when the spans of all its blocks had been archived, in ms; removed when traces of the day are packed"
    };
    /// A trace of the experiment that may have an assessment of its session. Written before the
    /// assessment, and ignored while the trace has none.
    TraceOfSession = "EXP#" <experiment: ExperimentId> / "TRSESSION#" <trace: TraceId> {};
    /// A dataset that runs read: name, digest, the contexts it was read in; and source, schema and
    /// profile, compressed, unless they are big. Keyed by a hash of name and digest.
    Dataset = "EXP#" <experiment: ExperimentId> / "D#" <dataset: WideDigest> {
        NAME: Text required "name",
        DIGEST: Text required "digest, as computed by the client",
        SOURCE_TYPE: Text required "type of the source",
        CONTEXTS: TextSet required "the contexts in which it was read, each prefixed with `=`; `-` for none",
        CONTENT_SIZE: Count required "size of the content in bytes, before compression",
        ..LONG_CONTENT
    };
    /// A run that read a dataset.
    DatasetLink = "EXP#" <experiment: ExperimentId> / "DLINK#" <dataset: WideDigest> "#" <run: RunId>;

    // ---- search, derived by the indexer: each list has its own partitions, and so have the
    // copies. Entries of a list with the same text or value are sorted newest first ----
    /// Registers a list of the index before its first entry is written, so that all lists of an
    /// experiment can be found.
    IndexList = "EXP#" <experiment: ExperimentId> / "IX#" <entity_type: Name> "#" <kind: ListKind> "#" <of: Field> {
        NAME: Text required "the metric, the param or the field, which may be truncated in the key"
    };
    /// Runs by a metric, greatest value first.
    RankByMetric = "IX#" <experiment: ExperimentId> "#M#" <metric: Field> / "" <value: DescendingDouble> "#" <started: Descending> "#" <run: RunId>;
    /// Runs by a param.
    RankByParam = "IX#" <experiment: ExperimentId> "#P#" <param: Field> / "" <value: Value> "#" <started: Descending> "#" <run: RunId>;
    /// Entities that contain a token in a field: a trigram, or the whole value of a field that is
    /// indexed by value.
    FullText = "IX#" <experiment: ExperimentId> "#T#" <part: TokenPart> "#" <entity_type: Name> "#" <field: Field> / "" <token: Value> "#" <started: Descending> "#" <entity: Name>;
    /// A copy of an entity's values as the indexer last read them. Its index entries are derived
    /// from it. Newest first.
    IndexedCopy = "IX#" <experiment: ExperimentId> "#C" <stage: OwnStage> "#" <entity_type: Name> / "" <started: Descending> "#" <entity: Name> {
        PARAMS: Texts "all params",
        TAGS: Texts "all tags",
        METRIC: ByteStrings "by metric: the latest point",
        LINK_ROWS: List "the rows of datasets and logged models",
        ENTRIES: List "index entries that were derived from the values, if the values themselves are too large to store",
        STALE: List "entries that were due for deletion when the copy was made",
        FIELDS: Text "the indexed fields, as JSON, if not the default ones",
        INDEXED: Text "the id of the indexing that made the copy",
        ..RUN_INFO
    };

    /// Work that is postponed until a time, in ms, at which a scheduled tick checks it. For an entity that
    /// changed shortly after it was indexed, this is the time from which it may be indexed again. For a
    /// partition of traces (`traces`, day and number), it is the time at which the partition is packed.
    Postponed = "LATER#" <shard: Shard> / "DUE#" <due: Ascending> "#" <entity_type: Name> "#" <experiment: ExperimentId> "#" <entity: Name>;

    // ---- rows of unbounded number, which have partitions of their own
    // ----------------------------
    /// A tail: the points of one or several calls that log metrics, up to 1 KB, to which one
    /// process adds. The stream's consumer packs them into the metrics documents and deletes the
    /// tail.
    MetricJournal = "RUN#" <run: RunId> / "J#" <tail: Digest> { CALLS: ByteStrings required "the points of each call, packed" };
    /// The points of one call that is too large to share a tail. Never added to.
    JournalCall = "RUN#" <run: RunId> / "JC#" <call: Digest> { CALLS: ByteStrings required "the points of the call, packed: a set of one element" };
    /// Names of metrics that calls repeatedly log together. The journal contains a hash in place of
    /// the names.
    JournalNames = "RUN#" <run: RunId> / "JN#" <names: WideDigest> { NAMES: Bytes required "the names, packed" };
    /// The run's metrics as of the last packing: for each metric, the latest point and the points
    /// that wait for a segment, as a set.
    RunMetrics = "RUN#" <run: RunId> / "L#METRIC" {
        METRIC: ByteStrings "by metric: the latest point, and the points that wait for a segment",
        CHARTED: Bytes "for all its metrics: how many points are in segments and in chart rows, and up to which place; missing if no metric has a segment",
        PACKED: Count required "how often points have been packed",
        WIDE: Number "set if there are further metrics documents"
    };
    /// Further metrics of a wide run, distributed by the hash of the metric's name.
    RunMetricsBucket = "RUN#" <run: RunId> / "L#METRIC#" <bucket: Bucket> {
        METRIC: ByteStrings "by metric: as in the first document",
        CHARTED: Bytes "as in the first document",
        PACKED: Count required "how often points had been packed when this document was written"
    };
    /// Packed points of one metric. Keyed by the first of them in the order of MLflow's history
    /// (timestamp, step) and a digest of all.
    MetricSegment = "RUN#" <run: RunId> / "MHIST#" <metric: Name> "#" <timestamp: Ascending> "#" <step: Ascending> "#" <points: Digest> {
        POINTS: Bytes required "the points, packed or compressed"
    };
    /// 256 evenly spaced points out of about 1,000 in segments. The chart of a metric with a long
    /// history is drawn from these rows. Four rows of a level make one of the next. Numbers start
    /// at 0 on each level.
    MetricChart = "RUN#" <run: RunId> / "MCHART#" <metric: Name> "#" <level: Ordinal> "#" <number: Ordinal> {
        POINTS: Bytes required "the points, packed, sorted by step",
        SPAN: Bytes required "the number of these points, the number of points they represent, and the range of places at which the represented segments begin",
        DIGESTS: Bytes "only on the first level: the hashes of the segments",
        PACKED: Count required "how often points had been packed into the metric's document when the row was made"
    };
    /// Segments of one metric that were moved to an object of the archive, which is the
    /// concatenation of their contents. Written before the segments are deleted. Numbered per
    /// metric, so that two processes cannot archive the same segments twice.
    ArchivedSegments = "RUN#" <run: RunId> / "MARCHIVE#" <metric: Name> "#" <number: Ordinal> {
        OBJECT: Bytes required "the object's name",
        ARCHIVED_SEGMENTS: Bytes required "for each segment, in the order of the object: the time and the step of its first point, the hash of its points, their number, and the length of its content",
        NEWEST: Number required "the time of the latest point, in ms"
    };
    /// A part of a dataset that is too big for its item. The hashes are those of the dataset's name
    /// and digest, and of the content. The partition belongs to the experiment and is removed with
    /// it.
    DatasetPart = "DATA#" <experiment: ExperimentId> "#" <dataset: WideDigest> / "D#PART#" <content: WideDigest> "#" <part: Ordinal> { CONTENT: Bytes required "the part" };
    /// Points of a logged model's metrics that do not fit into its metrics document.
    LoggedModelSegment = "MODEL#" <model: ModelId> / "MHIST#" <points: WideDigest> { POINTS: Bytes required "the points, packed" };
    /// A trace without its spans, a document. Its id comes from the client, so only this row says
    /// which experiment it is in. Or the pointer of a packed trace, whose document is in the block
    /// that covers its place. Or a stub: links to runs that were made before the trace arrived.
    /// Stubs are never shown.
    Trace = "TRACE#" <trace: TraceId> / "T#HEAD" {
        EXPERIMENT: ExperimentId required "its experiment",
        START_TIME: Number required "when it began, in ms",
        DURATION: Number "its duration, in ms",
        STATE: TraceState "MLflow's state; missing in a pointer",
        REQUEST: Text "preview of the request",
        RESPONSE: Text "preview of the response",
        CLIENT_REQUEST: Text "the client's request id",
        TAGS: Texts "tags; missing in a pointer",
        METADATA: Texts "metadata; missing in a pointer",
        ASSESSMENTS: Texts "assessments by id, as JSON; missing in a pointer",
        RUNS: TextSet "runs that it is linked to",
        PROMPTS: TextSet "prompt versions that it is linked to, as name/version",
        MARKED_AT: Number "when its mark was last written, in ms; missing in a pointer",
        SHARD: Count "the number of the partition of its day that has its mark; missing for the first",
        EDITS: Number required "counts the writes to the document, starting at a random number, so that a document that is created again has other numbers",
        EXPIRES: Number "only in a stub: when it expires, in seconds",
        IN_BLOCK: Number "1 in the pointer of a packed trace; 2 in a document whose earlier spans are in the block that covers its place",
        IN_MARK: Bytes "if a mark at its place has the spans of the export that created it: the digest in the key of that mark",
        ..CREATION
    };
    /// Packed spans of a trace: those of one export to this experiment, or a part of them. Keyed by
    /// a hash of the export's content, so that a repeated export writes the same item. Spans that
    /// were sent to another experiment than the trace's do not belong to the trace. They are in a
    /// partition of that experiment.
    TraceSpans = "SPANS#" <experiment: ExperimentId> "#" <trace: TraceId> / "T#SPANS#" <export: WideDigest> "#" <part: Ordinal> {
        ARRIVED: Number required "when it arrived, in ms: if a span is in two exports, the later one wins; negative for copies of spans in a mark or a block, which sort before everything else",
        PARTS: Count required "number of parts of the export",
        ADDS_ONLY: Number "set if the sender may not change traces: a span of any other export takes precedence, and of two such exports the earlier one",
        CONTENT: Bytes required "the spans, packed"
    };
    /// A mark: a trace of the experiment that began at this time of this UTC day, newest first.
    /// Written before the trace gets the time. Ignored if the trace is missing or began at another
    /// time.
    TraceMark = "TR#" <experiment: ExperimentId> "#" <day: Ascending> "#" <shard: Ordinal> / "M#" <time: Descending> "#" <trace: TraceId> {
        MARKED_AT: Number required "when it was written, in ms: it is kept for at least three minutes after that, unless the experiment is removed permanently",
        BYTES: Number "only if it was written with spans: their size in bytes",
        IMPORTED: Text "set if an import wrote it, or if its trace is being archived to a file, in which case it identifies the attempt; its trace does not count as usage",
        TO_PACK: Number "set so that the stream reports the mark to the packer; removed together with `waits`",
        TRACE_EXISTS: Number "set if the trace existed before, so that it is not counted as usage again",
        WAITS: Number "the packer skips the mark until it is written again, because its trace is too large for a block, or cannot be read"
    };
    /// A mark that also has spans: those of the export that created the trace. It is kept while the
    /// trace's document refers to it. Otherwise its spans are ignored, and it is a mark like any other.
    TraceMarkWithSpans = "TR#" <experiment: ExperimentId> "#" <day: Ascending> "#" <shard: Ordinal> / "M#" <time: Descending> "#" <trace: TraceId> "#" <export: WideDigest> {
        MARKED_AT: Number required "when it was written, in ms",
        ARRIVED: Number required "when its spans arrived, in ms",
        CONTENT: Bytes required "the spans, packed",
        BYTES: Number "the size of the spans in bytes, if usage is counted",
        TO_PACK: Number "set so that the stream reports the mark to the packer; removed together with `waits`",
        WAITS: Number "the packer skips the mark until it is written again, because its trace is too large for a block, or cannot be read"
    };
    /// A block of up to 128 traces that have not changed for some time, newest first. Searches read
    /// the block instead of the documents of these traces. A trace's place is the time and the id in
    /// its key. The block's own key is the place that its oldest trace had when the block was made. A
    /// block covers the places after the previous block's key, up to and including its own key. A
    /// trace with a mark is read from its document, and the block's copy of it is ignored.
    TraceBlock = "TR#" <experiment: ExperimentId> "#" <day: Ascending> "#" <shard: Ordinal> / "B#" <time: Descending> "#" <trace: TraceId> {
        NEWEST: Number required "when its newest trace began, in ms",
        COUNT: Count required "number of traces",
        EDITS: Number required "a new random number for each write of the block",
        WRITTEN: Number required "when it was written, in ms",
        CORE: Bytes required "by column, packed: ids, times, durations, states, names, sessions, tokens",
        HEADS: Bytes required "the documents of its traces, packed",
        BLOCK_SPANS: Bytes required "for each item of spans: the number of traces it covers, and the digest in its key",
        ARCHIVED_SPANS: Bytes "the archived spans, by digest: each with an object of the archive and a range of it",
        BEHIND: Text "only in a block whose newer traces were split off: the end of the block that they were moved to",
        RELEASED: Number "set if the table has no other copies of its traces: pointers have replaced their documents, unless a trace has a mark"
    };
    /// Requests that the stream's consumer packs the partition. The row is kept: if it is missing,
    /// the partition has never been packed.
    Packing = "TR#" <experiment: ExperimentId> "#" <day: Ascending> "#" <shard: Ordinal> / "P" {
        TO_PACK: Number required "when packing was requested, in ms",
        FROM: Text "the place of the mark at which the pass starts, if the previous pass ran out of time; missing to start with the oldest",
        ALL: Number "set if traces are packed even if they are few, because the day is being archived"
    };
    /// The lock for packing or removing traces of the partition.
    PackingLock = "TR#" <experiment: ExperimentId> "#" <day: Ascending> "#" <shard: Ordinal> / "L" {
        NONCE: Bytes required "a random number of the holder",
        UNTIL: Number required "when it expires, in ms"
    };
    /// Packed spans of some traces of a block. They have partitions of their own, because the
    /// partition of the block is limited to 10 GB and needs the space for marks. The key is a hash
    /// of the content, and the item is never rewritten.
    BlockSpans = "TS#" <experiment: ExperimentId> "#" <day: Ascending> "#" <shard: Ordinal> "#" <part: Ordinal> / "S#" <digest: WideDigest> {
        CONTENT: Bytes required "for each trace, its id and its spans"
    };

    // ---- evaluation datasets and scorers
    // ------------------------------------------------------------
    /// An evaluation dataset, a document: name, tags, schema, number of records, digest, times,
    /// users, experiments.
    EvaluationDataset = "EVAL#" <dataset: EvaluationDatasetId> / "ED#META" {
        NAME: Text required "name",
        WORKSPACE: Text "its workspace, unless that is the default one",
        OWNER: Text "the user who created it, if known",
        DIGEST: Text required "digest",
        CREATED: Number "when it was created, in ms, if its id does not begin with this time, because it was imported",
        UPDATED: Number required "when it was last changed, in ms",
        CREATED_BY: Text "who created it",
        UPDATED_BY: Text "who last changed it",
        EXPERIMENTS: Numbers required "its experiments, with the time when each was added, in ms",
        RECORDS: Count "number of records; missing before the first",
        SCHEMA_VERSION: Number "counts the changes of the schema, which is the content",
        REVISION: Number "always set, so that the stream reports the removal of the dataset to the indexer",
        CONTENT_SIZE: Count "size of the schema in bytes, before compression; missing if there is none",
        ..TAGGED, ..LONG_CONTENT, ..CREATION
    };
    /// A record of an evaluation dataset: inputs, outputs, expectations, tags and source,
    /// compressed, unless they are big; the hash of its inputs. Ids begin with the time of
    /// creation, so that a page of records is a range.
    EvaluationRecord = "EVAL#" <dataset: EvaluationDatasetId> / "ED#REC#" <record: DatasetRecordId> {
        INPUTS: WideDigest required "the hash of the inputs",
        UPDATED: Number required "when it was last changed, in ms",
        CREATED_BY: Text "who created it",
        UPDATED_BY: Text "who last changed it",
        CHANGES: Number "counts its changes",
        CONTENT_SIZE: Count required "size of the content in bytes, before compression",
        ..LONG_CONTENT
    };
    /// A tag of the dataset that is too big for its document.
    EvaluationDatasetTag = "EVAL#" <dataset: EvaluationDatasetId> / "ED#TAG#" <tag: Name> { ..KEY_VALUE };
    /// Claims the inputs of a record by their hash, and names the record.
    EvaluationInputs = "EVALKEY#" <dataset: EvaluationDatasetId> / "ED#HASH#" <inputs: WideDigest> { RECORD: DatasetRecordId required "the record with these inputs" };
    /// A part of a content that is too big for the item of a record or the document of a dataset.
    EvaluationPart = "EVALKEY#" <dataset: EvaluationDatasetId> / "ED#PART#" <content: WideDigest> "#" <part: Ordinal> { CONTENT: Bytes required "the part" };
    /// Lists the evaluation datasets of an experiment, oldest first. The experiment need not exist.
    ExperimentEvaluationDataset = "EVALEXP#" <experiment: Name> / "EDS#" <dataset: EvaluationDatasetId> { ..LISTED_DATASET };
    /// A scorer: its id, and a copy of its latest version.
    Scorer = "EXP#" <experiment: ExperimentId> / "SCORER#" <name: Name> {
        NAME: Text required "name",
        SCORER: ScorerId required "the scorer's id",
        VERSION: Count "the latest version; missing if all were deleted",
        CREATED: Number "when the latest version was registered, in ms",
        CONTENT_SIZE: Count "size of the content in bytes, before compression",
        IMPORTED: Text "a hash of the record that it was imported from; missing if a client created it",
        ..LONG_CONTENT
    };
    /// A version of a scorer, compressed, unless it is big.
    ScorerVersion = "EXP#" <experiment: ExperimentId> / "SCORERV#" <scorer: ScorerId> "#" <version: Ordinal> {
        VERSION: Count required "the version",
        CREATED: Number required "when it was registered, in ms",
        CONTENT_SIZE: Count required "size of the content in bytes, before compression",
        ..LONG_CONTENT, ..CREATION
    };
    /// A part of a version that is too big for its item.
    ScorerPart = "EXP#" <experiment: ExperimentId> / "SCORERPART#" <content: WideDigest> "#" <part: Ordinal> { CONTENT: Bytes required "the part" };
    /// The configuration of which traces a scorer runs on automatically.
    ScorerOnlineConfig = "EXP#" <experiment: ExperimentId> / "SCORERCFG#" <scorer: ScorerId> {
        CONFIG: Text required "the configuration's id",
        RATE: Decimal required "the share of traces it runs on, formatted as Python formats the number",
        FILTER: Text "a filter of the traces it runs on",
        EXPERIMENT: ExperimentId required "the experiment"
    };

    // ---- label schemas, review queues, issues
    // -----------------------------------------------------------------------
    /// A label schema of an experiment, which is a question to reviewers. Newest first.
    LabelSchema = "REVIEW#" <experiment: ExperimentId> / "LS#" <created: Descending> "#" <schema: LabelSchemaId> {
        NAME: Text required "name",
        TYPE: Text required "the kind of assessment that answers become, by MLflow's name",
        INSTRUCTION: Text "instruction for reviewers",
        COMMENTS: Count "1 if reviewers can add a comment",
        INPUT: Text required "how reviewers enter an answer, as JSON",
        UPDATED: Number required "when it was last changed, in ms",
        CHANGES: Number required "counts its changes",
        ..CREATION
    };
    /// Claims the name of a label schema.
    LabelSchemaName = "REVIEW#" <experiment: ExperimentId> / "LSNAME#" <name: Name> {
        NAME: Text required "the name, which may be truncated in the key",
        SCHEMA: Text required "the label schema that has the name"
    };
    /// A review queue of an experiment. Newest first.
    ReviewQueue = "REVIEW#" <experiment: ExperimentId> / "RQ#" <created: Descending> "#" <queue: ReviewQueueId> {
        NAME: Text required "name",
        TYPE: Text required "type, by MLflow's name",
        CREATED_BY: Text "the user who owns it",
        USERS: TextSet "the users it is assigned to, in lower case",
        SCHEMAS: TextSet "the ids of its label schemas",
        UPDATED: Number required "when it was last changed, in ms",
        CHANGES: Number required "counts its changes",
        ATTACHED: Number "counts the transactions that have added items",
        ..CREATION
    };
    /// Claims the name of a review queue, in lower case.
    ReviewQueueName = "REVIEW#" <experiment: ExperimentId> / "RQNAME#" <name: Name> {
        NAME: Text required "the name in lower case, which may be truncated in the key",
        QUEUE: Text required "the review queue that has the name"
    };
    /// A trace in a review queue, with the status of its review.
    ReviewItem = "RQ#" <queue: ReviewQueueId> / "I#" <trace: TraceId> {
        REVIEW_STATUS: Text required "status, by MLflow's name",
        COMPLETED_BY: Text "the user who has set the status, in lower case",
        COMPLETED: Number "when the status was set, in ms",
        CREATED: Number required "when it was added, in ms",
        UPDATED: Number required "when it was last changed, in ms"
    };
    /// The review queues that a trace is or was in. Deleted with the trace.
    ReviewedTrace = "REVIEWED#" <experiment: ExperimentId> / "T#" <trace: TraceId> {
        QUEUES: TextSet "the ids of the queues, some of which may have been deleted"
    };
    /// An issue of an experiment, without its long texts.
    Issue = "ISSUES#" <experiment: ExperimentId> / "I#" <issue: IssueId> {
        NAME: Text required "name",
        ISSUE_STATUS: Text required "status, by MLflow's name",
        SEVERITY: Text "severity, by MLflow's name",
        SOURCE_RUN: Text "the run that found it",
        CATEGORIES: Text "its categories, as JSON",
        CREATED: Number required "when it was created, in ms",
        UPDATED: Number required "when it was last changed, in ms",
        LAST_SEEN: Number required "when it was last seen, in ms",
        CREATED_BY: Text "who created it",
        UPDATED_BY: Text "who last changed it",
        CHANGES: Number required "counts its changes",
        ..CREATION
    };
    /// The number of the experiment's traces with an assessment that names an issue. The issue need
    /// not exist.
    IssueTraces = "ISSUES#" <experiment: ExperimentId> / "N#" <issue: IssueId> { TRACES: Number required "number of traces" };
    /// The long texts of an issue: description, root causes and metadata.
    IssueContent = "ISSUEDATA#" <experiment: ExperimentId> / "I#" <issue: IssueId> {
        CONTENT_SIZE: Count required "size of the content in bytes, before compression",
        ..LONG_CONTENT
    };
    /// A part of an issue's content that is too big for its item.
    IssuePart = "ISSUEDATA#" <experiment: ExperimentId> / "P#" <content: WideDigest> "#" <part: Ordinal> { CONTENT: Bytes required "the part" };
    /// The experiment of an issue whose id a client has chosen. Claims the id.
    IssueLocation = "ISSUEID#" <issue: IssueId> / "I" { EXPERIMENT: ExperimentId required "its experiment" };

    // ---- model registry
    // -----------------------------------------------------------------------------
    /// A registered model or a prompt, by its name. Its document has the number of versions, the
    /// latest version of each stage, aliases and tags. Its other rows are in the partition of its
    /// home. That is this partition, unless the model was renamed, or another model had the name
    /// before.
    RegisteredModel = "RM#" <model: ModelKey> / "M#META" {
        NAME: Text required "name",
        ID: Text required "distinguishes the model from all others, even if they have had the same name",
        WORKSPACE: Text "its workspace, unless that is the default one",
        OWNER: Text "the user who created it, if known",
        HOME: Text "the name of its home, if that differs from its own",
        CREATED: Number required "when it was created, in ms",
        UPDATED: Number required "when it was last changed, in ms",
        RENAMED: Number "when it was last renamed, in ms: in MLflow, this is a change of all its versions",
        DESCRIPTION: Text required "description",
        EDITS: Number required "counts the writes to the document",
        VERSIONS: Count required "number of versions that it has ever had",
        LATEST: Counts required "the highest version in each stage",
        ALIASES: Counts required "the version that each alias refers to",
        ..TAGGED, ..CREATION
    };
    /// The current name of the model whose rows are in this partition.
    ModelHome = "RM#" <home: ModelKey> / "M#HOME" {
        NAME: Text "the model's name; missing if it was deleted",
        WORKSPACE: Text "its workspace, unless that is the default one",
        ID: Text required "its id",
        RENAMED: Number "when it was last renamed, in ms"
    };
    /// A version of a registered model, a document.
    ModelVersion = "RM#" <home: ModelKey> / "M#V#" <version: Ordinal> {
        CREATED: Number required "when it was created, in ms",
        UPDATED: Number "when it was last changed, in ms; missing if it never was",
        VERSION_STAGE: ModelStage required "stage",
        DESCRIPTION: Text "description, if it has one",
        SOURCE: Text required "its source, as given by the client",
        STORAGE: Text "where its artifacts are, if that differs from its source",
        RUN: Text "its run",
        RUN_LINK: Text "a link to its run",
        UNSEEN: Number "the number of tags that were set since the size of the document was last checked",
        ..TAGGED, ..CREATION
    };
    /// A tag of a version that is too big for its document.
    ModelVersionTag = "RM#" <home: ModelKey> / "M#V#" <version: Ordinal> "#TAG#" <tag: Name> { ..KEY_VALUE };
    /// A tag of a registered model that is too big for its document.
    ModelTag = "RM#" <home: ModelKey> / "M#TAG#" <tag: Name> { ..KEY_VALUE };
    /// A model version that refers to a run. The versions of a run are listed separately for each
    /// workspace. These rows are in a partition of the registry and not in the run's: a version takes
    /// over the run of its source without a check that the caller may access that run, and could
    /// otherwise fill the run's partition.
    VersionOfRun = "MVRUN#" <run: ModelKey> / "MV#" <home: ModelKey> "#" <version: Ordinal> { HOME: Text required "the name of the home, which may be truncated in the key" };

    // ---- webhooks: the function `deliver` may only access partitions that begin with `HOOK#`
    // ----------------------------------------------------------------------------------------
    /// A webhook, newest last.
    Webhook = "HOOK#WS#" <workspace: Name> / "W#" <webhook: WebhookId> {
        NAME: Text required "name",
        DESCRIPTION: Text "description",
        URL: Text required "the address that events are sent to",
        EVENTS: TextSet required "the events that it subscribes to, by their names",
        WEBHOOK_STATUS: Text required "the status, by MLflow's name",
        SECRET: Bytes "the secret that signs deliveries, sealed",
        CREATED: Number required "when it was created, in ms",
        UPDATED: Number required "when it was last changed, in ms",
        CHANGES: Number required "counts the changes of the webhook",
        POSTPONED_UNTIL: Number "until when deliveries that have not been attempted wait, because the receiver did not respond, in ms",
        ..CREATION
    };
    /// The subscriptions of all active webhooks of a workspace. Every process that serves the model
    /// registry reads this row.
    WebhookSubscriptions = "HOOK#WS#" <workspace: Name> / "SUBSCRIPTIONS" {
        SUBSCRIPTIONS: Texts required "by webhook: the names of its events, separated by spaces",
        COUNT: Count required "the number of webhooks, including disabled ones",
        CHANGES: Number required "counts the changes of the row"
    };
    /// A delivery that has failed for good, or was pending for more than a day.
    DeadDelivery = "HOOK#WS#" <workspace: Name> / "DEAD#" <webhook: WebhookId> "#" <event: WebhookEventId> {
        UPDATED: Number required "when it failed for good, in ms",
        ..DELIVERY
    };
    /// An event, written in the transaction of the call that it reports. The stream delivers it to
    /// the indexer.
    WebhookEvent = "HOOK#EVENT#" <model: ModelKey> / "E#" <event: WebhookEventId> {
        HOOK: Number required "always set, so that the stream reports the event to the indexer",
        NAME: Text required "name of the event",
        WORKSPACE: Text "its workspace, unless that is the default one",
        MODEL: Text required "the model, which may be truncated in the key",
        WEBHOOKS: TextSet required "the webhooks that subscribed to the event",
        BODY: Text "the body of its deliveries, unless that has parts",
        PARTS: Count "the number of parts",
        CREATED: Number required "when the call was received, in ms",
        EXPIRES: Number required "when DynamoDB deletes the row, in seconds"
    };
    /// A part of the body of an event.
    WebhookEventPart = "HOOK#EVENT#" <model: ModelKey> / "E#" <event: WebhookEventId> "#PART#" <part: Ordinal> {
        BODY: Text required "the part",
        EXPIRES: Number required "when DynamoDB deletes the row, in seconds"
    };
    /// A pending delivery. The deliveries of a webhook's events about one model sort in the order of
    /// the stream, in which the events were committed.
    WebhookDelivery = "HOOK#TO#" <workspace: Name> "#" <webhook: WebhookId> "#" <model: ModelKey> / "D#" <number: SequenceNumber> { ..DELIVERY };
    /// Announces pending deliveries of a webhook about one model. A tick reads all of these rows.
    WebhookQueue = "HOOK#QUEUE#" <shard: Shard> / "Q#" <workspace: Name> "#" <webhook: WebhookId> "#" <model: ModelKey> {
        WORKSPACE: Text "its workspace, unless that is the default one",
        MODEL: Text required "the model, which may be truncated in the key",
        DUE: Number required "when the next attempt is due, in ms",
        ADDED: Number required "counts the deliveries that were added",
        LEASE_HOLDER: Text "the process that delivers",
        LEASE_UNTIL: Number "when its lease expires, in ms"
    };
    /// How far `serve --follow-stream` has delivered a shard of the table's stream that contained
    /// events for webhooks. After a restart, it continues there, and sends no event again.
    StreamPosition = "STREAM" / "S#" <stream_shard: Name> {
        POSITION: Text required "the sequence number of the last record of the last batch with an event",
        EXPIRES: Number required "when DynamoDB deletes the row, in seconds"
    };
    // ---- MCP servers
    // -----------------------------------------------------------------------------------------
    /// An MCP server, a document: texts, icons, tags, aliases, access endpoints, and what it takes
    /// from its latest version. The partition lists the servers of a workspace by name, so that a
    /// page of them is a range. Some names of attributes are short, because searches read all
    /// documents.
    McpServer = "MCPS#" <workspace: Name> / "S#" <server: McpServerName> {
        ID: Text required "distinguishes the server from all others, even if they have had the same name; its versions are keyed by it",
        WORKSPACE: Text "its workspace, unless that is the default one",
        CREATED: Number required "when it was created, in ms",
        UPDATED: Number "when it was last changed, in ms; missing if it never was",
        CREATED_BY: Text "who created it",
        UPDATED_BY: Text "who last changed it",
        DISPLAY_NAME: Text "the name that user interfaces display",
        DESCRIPTION: Text "description",
        ICONS: Text "icons, as JSON",
        TAGS: Texts "tags",
        SERVER_ALIASES: Texts "the version that each alias refers to",
        ACCESS_ENDPOINTS: Texts "by id: access endpoints, as JSON",
        LATEST_VERSION: Text "the latest version: the greatest active one, or else the greatest one; missing if there is none",
        LATEST_STATUS: Text "its status, by MLflow's name",
        LATEST_CREATED: Number "when it was created, in ms",
        LATEST_DESCRIPTION: Text "its description",
        LATEST_ICONS: Text "its icons, as JSON",
        EDITS: Number required "counts the writes to the document",
        ..CREATION
    };
    /// A version of an MCP server, compressed, unless it is big. The order is that of SemVer.
    McpServerVersion = "MCPV#" <server: Digest> / "V#" <version: McpVersion> {
        VERSION_STATUS: Text required "status, by MLflow's name; the row of a deleted version remains, because its name is not reused",
        CREATED: Number required "when it was created, in ms",
        UPDATED: Number "when it was last changed, in ms; missing if it never was",
        CREATED_BY: Text "who created it",
        UPDATED_BY: Text "who last changed it",
        SOURCE: Text "where it comes from, as given by the client",
        TAGS: Texts "tags",
        EDITS: Number required "counts the writes to the row",
        CONTENT_SIZE: Count required "size of the content in bytes, before compression",
        ..LONG_CONTENT, ..CREATION
    };
    /// A part of a version that is too big for its row.
    McpServerVersionPart = "MCPV#" <server: Digest> / "P#" <content: WideDigest> "#" <part: Ordinal> { CONTENT: Bytes required "the part" };

    // ---- skills
    // -----------------------------------------------------------------------------------------
    /// A skill, a document: description, icons, tags, aliases, and what it takes from its latest
    /// version. The partition lists the skills of a workspace by organization and name, so that a
    /// page of them is a range.
    Skill = "SKILLS#" <workspace: Name> / "S#" <skill: SkillName> {
        ID: Text required "distinguishes the skill from all others, even if they have had the same name; its versions are keyed by it",
        WORKSPACE: Text "its workspace, unless that is the default one",
        CREATED: Number required "when it was created, in ms",
        UPDATED: Number "when it was last changed, in ms; missing if it never was",
        CREATED_BY: Text "who created it",
        UPDATED_BY: Text "who last changed it",
        DESCRIPTION: Text "description",
        ICONS: Text "icons, as JSON",
        TAGS: Texts "tags",
        ALIASES: Counts "the version that each alias refers to",
        LAST_NUMBER: Number "the greatest number of a version; missing if there has been none",
        LATEST_NUMBER: Count "the latest version: the greatest active one, or else the greatest one that is not deleted; missing if there is none",
        LATEST_STATUS: Text "its status, by MLflow's name",
        LATEST_SOURCE_TYPE: Text "the type of its source",
        EDITS: Number required "counts the writes to the document",
        ..CREATION
    };
    /// A version of a skill.
    SkillVersion = "SKILLV#" <skill: Digest> / "V#" <version: Ordinal> {
        VERSION_STATUS: Text required "status, by MLflow's name; the row of a deleted version remains, because its number is not reused",
        CREATED: Number required "when it was created, in ms",
        UPDATED: Number "when it was last changed, in ms; missing if it never was",
        CREATED_BY: Text "who created it",
        UPDATED_BY: Text "who last changed it",
        SOURCE_TYPE: Text required "git, oci, zip, or mlflow for uploaded content",
        SOURCE: Text required "where the content is",
        GIT_REF: Text "branch, tag or commit of a git repository",
        SUBPATH: Text "directory of the skill within the source",
        DIGEST: Text "digest of the content",
        CONTENT_PATH: Text "directory of uploaded content below the artifact root",
        TAGS: Texts "tags",
        EDITS: Number required "counts the writes to the row",
        ..CREATION
    };

    // ---- workspaces, users, configuration
    // -----------------------------------------------------------
    /// A workspace, a document.
    Workspace = "WORKSPACE#" <workspace: Name> / "WS#META" {
        ID: Text required "distinguishes the workspace from all others, even if they have had the same name",
        BY_ID: Count "1 if roles and grants belong to the workspace by its id; missing for a workspace created by 0.1.0, to which they belong by its name",
        DIRECTORY: Text "its artifact directory, if that is not its name because an earlier workspace had the name",
        CREATED: Number required "when it was created, in ms",
        DESCRIPTION: Text "description",
        LOCATION: Text "artifact location for its new experiments, if that is not below the server's own location",
        ARCHIVE: Text "location of the files of archived traces, if it is not the server's",
        ARCHIVE_AFTER: Text "age at which traces are archived, such as 30d, or `off`, if it is not the server's",
        GOES_TO: Text "set while the workspace is being deleted and rejects writes: the workspace that its entities move to",
        QUOTAS: Numbers "daily limits, by what they limit, such as runs or bytes",
        EXHAUSTED: Numbers "by the same names: the UTC day, in days since 1970, on which the limit has been reached",
        ..CREATION
    };
    /// The usage of a workspace on one UTC day.
    WorkspaceDay = "WORKSPACE#" <workspace: Name> / "WSDAY#" <day: Ascending> {
        CREATED_RUNS: Number "number of runs created",
        TRACES: Number "number of traces that began",
        BYTES: Number "bytes of spans received"
    };
    /// Lists all workspaces except the default one, including deleted ones that cannot be named any
    /// more and whose contents are still to be removed.
    ListedWorkspace = "WORKSPACES" / "WS#" <workspace: Name> { HAS_QUOTA: Count "1 if it has quotas" };
    /// A name that a deleted workspace had.
    FormerWorkspace = "WORKSPACES" / "WSUSED#" <workspace: Name>;
    /// Claims the name of an experiment, and lists the experiments of a workspace: by name, newest first
    /// (LSI1), and most recently changed first (LSI2).
    ExperimentName = "WORKSPACE#" <workspace: Name> / "EXPNAME#" <name: Name> {
        NAME: Text required "the name, which may be truncated in the key",
        EXPERIMENT: ExperimentId required "the experiment that has the name"
    };
    /// Lists the registered models of a workspace by name, prompts separately, and (LSI2) by last
    /// change.
    ModelName = "WORKSPACE#" <workspace: Name> / "RMNAME#" <kind: ModelKind> "#" <name: Name> { NAME: Text required "the name, which may be truncated in the key" };
    /// Lists the evaluation datasets of a workspace, oldest first.
    WorkspaceEvaluationDataset = "WORKSPACE#" <workspace: Name> / "EDS#" <dataset: EvaluationDatasetId> { ..LISTED_DATASET };
    /// Lists the scorers of a workspace.
    WorkspaceScorer = "WORKSPACE#" <workspace: Name> / "SCORERS#" <experiment: ExperimentId> "#" <name: Name> {
        NAME: Text required "the name, which may be truncated in the key"
    };
    /// A user's grant for an experiment.
    ExperimentPermission = "USER#" <user: UserName> / "U#PERM#" <experiment: ExperimentId> { ..GRANTED };
    /// A user's grant for a registered model.
    ModelPermission = "USER#" <user: UserName> / "U#RPERM#" <model: ModelKey> { ..GRANTED };
    /// A user's grant for a prompt.
    PromptPermission = "USER#" <user: UserName> / "U#PPERM#" <prompt: ModelKey> { ..GRANTED };
    /// A user's grant for a scorer of an experiment.
    ScorerPermission = "USER#" <user: UserName> / "U#SPERM#" <experiment: ExperimentId> "#" <scorer: Name> {
        EXPERIMENT: ExperimentId required "the scorer's experiment",
        ..GRANTED
    };
    /// A user's grant for an MCP server.
    McpServerPermission = "USER#" <user: UserName> / "U#MPERM#" <workspace: Name> "#" <server: McpServerName> { ..GRANTED };
    /// A user's grant for a skill.
    SkillPermission = "USER#" <user: UserName> / "U#KPERM#" <workspace: Name> "#" <skill: SkillName> { ..GRANTED };
    /// A user's grant for a resource that this server does not have, with MLflow's name of its
    /// type. Stored, but without effect.
    OtherPermission = "USER#" <user: UserName> / "U#OPERM#" <kind: Field> "#" <resource: Name> {
        IN_WORKSPACE: Text "the workspace of the grant, unless that is the default one",
        ..GRANTED
    };
    /// A user's grants for all resources of a type.
    TypePermissions = "USER#" <user: UserName> / "U#TPERM" {
        USER_ID: Count required "the user's id: the grants do not apply to a later user of the same name",
        LEVELS: Texts required "levels by type, both by MLflow's names; the type is prefixed with the workspace and a `/`, unless that is the default one"
    };
    /// One setting: the table's layout, TTL policies, indexed fields. Also the counter of
    /// experiment ids, and the state of a copy into this table that is not finished.
    Config = "CONFIG" / "CFG#" <setting: Name> {
        LAST_NUMBER: Number "of the counter: the last assigned number; of an unfinished copy: the number of items that were read, or -1 once only marked items are missing",
        FROM: Text "of an unfinished copy: the source",
        LAYOUT: Number "of the layout: its number",
        EXPERIMENT: ExperimentId "of one experiment's fields: the experiment",
        INDEXED: Text "of the fields: the indexed tags, as JSON",
        SEARCHED: Text "of the fields: the searched ones, as JSON",
        KEPT_FOR: Text "of a TTL policy: how long deleted entities are kept, such as 30d; of the TTL policy of traces: how long traces are kept",
        OWN: TextSet "of the TTL policy of traces: experiments that may have a policy of their own, which is a tag; of the archival of traces: experiments that may be archived later than others",
        ARCHIVE: Text "of the archival of traces: location of the files of archived traces",
        ARCHIVE_AFTER: Text "of the archival of traces: age at which traces are archived, such as 30d, or `off`",
        ARCHIVED_PER_PASS: Number "of the archival of traces: how many traces are written to files per pass"
    };

    /// An experiment whose tag `mlflow.trace.archiveNow` may request the archival of its traces. The
    /// row is written before the tag, and deleted after the tag was removed.
    ArchiveRequest = "ARCHIVENOW" / "E#" <experiment: ExperimentId> {
        CREATED: Number required "when the tag was set last, in ms"
    };

    // ---- objects of the archive ----
    /// An object of the archive that has to be checked at the time in its key, in ms: it is deleted
    /// unless the item that it was written for refers to it. Written before the object, and again
    /// before an item drops its reference to the object.
    ArchivedObject = "ARCHIVED" / "O#" <due: Ascending> "#" <object: ArchiveObject> {
        REFERRER: Text required "the key of the only item that may refer to the object"
    };
    /// An experiment of which traces are being archived. The next pass continues with it.
    ArchivingExperiment = "ARCHIVED" / "E#" <experiment: ExperimentId> {
        WORKSPACE: Text "its workspace, unless that is the default one"
    };

    // ---- entities that are being removed permanently: the row is written first and deleted last.
    // A process that finds one resumes the removal ----
    /// A run that is being removed, and can no longer be restored.
    RunRemoval = "REMOVAL" / "R#" <experiment: ExperimentId> "#" <run: RunId> {
        START_TIME: Number "when the run began, in ms, which is needed to find its copy in the index",
        ..REMOVAL
    };
    /// A logged model that is being removed.
    LoggedModelRemoval = "REMOVAL" / "LM#" <experiment: ExperimentId> "#" <model: ModelId> { ..REMOVAL };
    /// An experiment that is being removed with all its contents.
    ExperimentRemoval = "REMOVAL" / "E#" <experiment: ExperimentId> {
        WORKSPACE: Text "its workspace, unless that is the default one",
        ..REMOVAL
    };
    /// A deleted MCP server whose versions are being removed.
    McpServerRemoval = "REMOVAL" / "MCP#" <server: Digest>;
    /// A deleted skill whose versions and content are being removed.
    SkillRemoval = "REMOVAL" / "S#" <skill: Digest>;
    /// An upload of a skill's content. Unless it has been completed, no version refers to its files,
    /// and they are removed after an hour. The token is the name of the directory.
    SkillUpload = "REMOVAL" / "SU#" <token: WideDigest> {
        CONTENT_PATH: Text required "directory of the files below the artifact root",
        CREATED: Number required "when the upload began, in ms",
        ABANDONED: Number "when the removal of the files began, in ms; the upload can no longer be completed",
        EXPIRES: Number "set once the upload has been completed: when DynamoDB deletes the row, in seconds"
    };
}

#[cfg(test)]
mod tests;
