//! Names of attributes.

/// Name of an experiment or a run.
pub const NAME: &str = "name";
/// The workspace of an experiment, where it is not the default one.
pub const WORKSPACE: &str = "workspace";
/// Where an experiment keeps its artifacts.
pub const LOCATION: &str = "location";
/// When an experiment was created, in ms.
pub const CREATED: &str = "created";
/// When an experiment was last changed, in ms.
pub const UPDATED: &str = "updated";
/// Lifecycle stage of an experiment, or of a run by itself.
pub const STAGE: &str = "stage";
/// How often the experiment's stage has changed; of a run, at which of these changes its own was set.
pub const STAGE_VERSION: &str = "stage_version";
/// In a name's row: the experiment that has it.
pub const EXPERIMENT: &str = "experiment";

/// A run's status.
pub const STATUS: &str = "status";
/// When a run began, in ms.
pub const START_TIME: &str = "start_time";
/// When a run ended, in ms.
pub const END_TIME: &str = "end_time";
/// Who started a run.
pub const USER: &str = "user";
/// Where a run's artifacts are.
pub const ARTIFACT_URI: &str = "artifact_uri";
/// On a run: it has rows of datasets or logged models.
pub const LINKS: &str = "links";
/// In the row of a logged model of a run: its id.
pub const MODEL: &str = "model";
/// In the row of a logged model that a run put out: the step it was logged at.
pub const STEP: &str = "step";
/// Digest of a dataset, as the client computed it.
pub const DIGEST: &str = "digest";
/// In the row of a dataset of a run: greater for what was logged later.
pub const ORDER: &str = "order";

/// Of a logged model: what kind of model it is, as the client says.
pub const MODEL_TYPE: &str = "model_type";
/// Of a logged model: the run that made it, as the client says.
pub const SOURCE_RUN: &str = "source_run";
/// On a logged model's metrics document: it has segments.
pub const SEGMENTS: &str = "segments";

/// Params, a map.
pub const PARAMS: &str = "params";
/// Tags, a map.
pub const TAGS: &str = "tags";
/// How many transactions have written rows of params: whoever adds a param checks it against all rows, or sees the count change.
pub const PARAM_ROWS: &str = "param_rows";
/// There may be rows of tags.
pub const TAG_ROWS: &str = "tag_rows";
/// The whole key in a row of a param or tag.
pub const ROW_KEY: &str = "key";
/// The value in such a row.
pub const ROW_VALUE: &str = "value";

/// A run's first metrics document takes no further metrics.
pub const WIDE: &str = "wide";

/// Counts the changes of an item that matter to the index.
pub const REVISION: &str = "rev";
/// Of an item that is in the index as it is: the indexing that put it there.
pub const INDEXED: &str = "indexed";
/// On a marked run: its entries are to be put again, those too that the index should have.
pub const REBUILD: &str = "rebuild";

/// A long content, compressed: of a record its JSON, of an evaluation dataset its schema, of a scorer itself.
pub const CONTENT: &str = "content";
/// Bytes of that content before it was compressed.
pub const CONTENT_SIZE: &str = "content_size";
/// In place of the content, where it is too big for the item: the hash its parts are named by.
pub const CONTENT_ID: &str = "content_id";
/// How many parts there are.
pub const CONTENT_PARTS: &str = "content_parts";
/// Who created an evaluation dataset or a record of it.
pub const CREATED_BY: &str = "created_by";
/// Who changed it last.
pub const UPDATED_BY: &str = "updated_by";
/// How many records an evaluation dataset has; missing before the first.
pub const RECORDS: &str = "records";
/// Experiments of an evaluation dataset, a map: when each was added, in ms.
pub const EXPERIMENTS: &str = "experiments";
/// Counts the changes of an evaluation dataset's schema.
pub const SCHEMA_VERSION: &str = "schema_version";
/// Counts the changes of a record.
pub const VERSION: &str = "version";
/// Of a record the hash of its inputs; in the row that claims inputs, the record.
pub const INPUTS: &str = "inputs";
/// See [`INPUTS`].
pub const RECORD: &str = "record";
