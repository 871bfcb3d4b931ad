//! The keys of the secondary indexes. All indexes project only keys, so a change of an item costs
//! nothing in them unless it changes the item's index keys.

use model::{ExperimentId, ModelId, ReviewQueueId, RunId, TraceId, UserName};

use crate::definition::{GSI1, GSI2, GSI4, Index, LSI1, LSI2, LSI3, LSI4, LSI5};
use crate::rows::RowDescription;
use crate::{
    Ascending, Descending, Field, ModelKey, ModelKind, Name, Ordinal, OwnStage, Prefix, Segment, Stage, TokenPart,
    Value, WideDigest,
};

/// The description of an index key, for the table reference.
#[derive(Clone, Copy, Debug)]
pub struct IndexDescription {
    /// The index.
    pub index: &'static Index,
    /// The rows that carry the key.
    pub rows: &'static [RowDescription],
    /// Pattern of the partition key.
    pub partition: &'static str,
    /// Pattern of the sort key.
    pub sort: &'static str,
    /// The question that the index answers.
    pub purpose: &'static str,
}

/// The attributes, with their values, that put an item into an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexKey(pub Vec<(&'static str, String)>);

/// A type of entries in an index.
pub trait IndexEntry: Sized {
    /// The index.
    const INDEX: &'static Index;

    /// Parses the sort key of an entry. Returns `None` for entries of another type.
    fn parse(sort_key: &str) -> Option<Self>;
}

index_keys! {
    // ---- LSIs: within a partition, read consistently
    // ----------------------------------------------------------------
    /// Runs of a lifecycle stage, newest first, ties by id: MLflow's default order.
    RunsByStage: local LSI1 of Run = "EXP#" <experiment: ExperimentId> / "R#" <stage: Stage> "#" <started: Descending> "#" <run: RunId>;
    /// Experiments of a lifecycle stage, newest first.
    ExperimentsByStage: local LSI1 of ExperimentName = "WORKSPACE#" <workspace: Name> / "E#" <stage: Stage> "#" <created: Descending> "#" <experiment: ExperimentId>;
    /// Experiments of a lifecycle stage, most recently changed first: the order of MLflow's list of
    /// experiments.
    ExperimentsByChange: local LSI2 of ExperimentName = "WORKSPACE#" <workspace: Name> / "E#" <stage: Stage> "#" <changed: Descending> "#" <experiment: ExperimentId>;
    /// Registered models or prompts, most recently changed first: the order of a list by time. Models and
    /// prompts have separate lists.
    ModelsByChange: local LSI2 of ModelName = "WORKSPACE#" <workspace: Name> / "M#" <kind: ModelKind> "#" <changed: Descending>;
    /// Logged models of a lifecycle stage, newest first, ties by id: MLflow's default order.
    LoggedModelsByStage: local LSI1 of LoggedModel = "EXP#" <experiment: ExperimentId> / "LM#" <stage: Stage> "#" <created: Descending> "#" <model: ModelId>;
    /// A model (version 0) and the versions that have aliases, so that one request resolves an
    /// alias.
    AliasedVersions: local LSI1 of RegisteredModel, ModelVersion = "RM#" <home: ModelKey> / "A#" <version: Ordinal>;
    /// The blocks of a partition of traces, newest first. The packer reads them here to learn where
    /// blocks end, without reading their contents.
    TraceBlocks: local LSI1 of TraceBlock = "TR#" <experiment: ExperimentId> "#" <day: Ascending> "#" <shard: Ordinal> / "B#" <time: Descending> "#" <trace: TraceId>;
    /// The items of a review queue, newest first.
    ReviewItemsByTime: local LSI1 of ReviewItem = "RQ#" <queue: ReviewQueueId> / "I#" <created: Descending> "#" <trace: TraceId>;
    /// Versions in a stage other than `None`.
    VersionsInStage: local LSI2 of ModelVersion = "RM#" <home: ModelKey> / "S#" <stage: Field> "#" <version: Ordinal>;
    /// Runs of all stages, newest first.
    RunsByTime: local LSI2 of Run = "EXP#" <experiment: ExperimentId> / "R#" <started: Descending> "#" <run: RunId>;
    /// Runs of a status, newest first. The indexed item is the indexer's copy of a run and not its
    /// document, so that a request that changes the status does not have to compute this key.
    RunsByStatus: local LSI3 of IndexedCopy = "IX#" <experiment: ExperimentId> "#C" <stage: OwnStage> "#" <entity_type: Name> / "" <status: Value> "#" <started: Descending> "#" <run: RunId>;
    /// Logged models of a stage by the run that created them, newest first.
    LoggedModelsOfRun: local LSI3 of LoggedModel = "EXP#" <experiment: ExperimentId> / "LM#" <stage: Stage> "#" <run: Field> "#" <created: Descending> "#" <model: ModelId>;
    /// Runs by name. Runs with equal names are sorted newest first. The indexed item is the indexer's copy
    /// of a run, so that a request that changes the name does not have to compute this key.
    RunsByName: local LSI4 of IndexedCopy = "IX#" <experiment: ExperimentId> "#C" <stage: OwnStage> "#" <entity_type: Name> / "" <name: Field> "#" <started: Descending> "#" <run: RunId>;
    /// Runs that have ended, by end time. The indexed item is the indexer's copy of a run, so that a request
    /// that ends a run does not have to compute this key.
    RunsByEnd: local LSI2 of IndexedCopy = "IX#" <experiment: ExperimentId> "#C" <stage: OwnStage> "#" <entity_type: Name> / "" <ended: Ascending> "#" <started: Descending> "#" <run: RunId>;
    /// Runs with changes that are not in the index yet: searches read these runs, whatever the
    /// index contains.
    RunsChanged: local LSI5 of Run = "EXP#" <experiment: ExperimentId> / "R#" <run: RunId>;

    // ---- GSIs: across partitions, eventually consistent; none of them enforces uniqueness ------
    /// The experiment of a run whose id another server made.
    RunLocation: global GSI1 of Run = "RUN#" <run: RunId> / "EXP#" <experiment: ExperimentId>;
    /// Traces by the id that the client gave to its request. A trace keeps its mark at least until it is in
    /// this index.
    TraceOfClientRequest: global GSI1 of Trace = "CLIENT#" <request: Name> / "EXP#" <experiment: ExperimentId> "#" <trace: TraceId>;
    /// The experiment of a logged model whose id another server made.
    LoggedModelLocation: global GSI1 of LoggedModel = "MODEL#" <model: ModelId> / "EXP#" <experiment: ExperimentId>;
    /// Runs of a dataset across experiments.
    RunsOfDataset: global GSI1 of DatasetLink = "DS#" <dataset: WideDigest> / "RUN#" <run: RunId>;
    /// Full text across partitions, for entities that have partitions of their own; not carried by
    /// entries of runs.
    FullTextAnywhere: global GSI2 of FullText = "FTS#" <token: Value> / "" <part: TokenPart> "#" <entity_type: Name> "#" <entity: Name>;
    /// The users who have a permission for an experiment.
    PermissionsOfExperiment: global GSI4 of ExperimentPermission = "EXPPERM#" <experiment: ExperimentId> / "USER#" <user: UserName>;
    /// The users who have a permission for a registered model.
    PermissionsOfModel: global GSI4 of ModelPermission = "RMPERM#" <model: ModelKey> / "USER#" <user: UserName>;
    /// The users who have a permission for a prompt.
    PermissionsOfPrompt: global GSI4 of PromptPermission = "PRPERM#" <prompt: ModelKey> / "USER#" <user: UserName>;
    /// The users who have a permission for a scorer.
    PermissionsOfScorer: global GSI4 of ScorerPermission = "SCPERM#" <experiment: ExperimentId> "#" <scorer: Name> / "USER#" <user: UserName>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_index_has_the_partitions_of_its_rows() {
        // Without the names of the segments.
        let literals = |pattern: &'static str| -> Vec<_> {
            pattern.split('>').map(|part| part.split_once('<').map_or(part, |(literal, _)| literal)).collect()
        };
        for key in INDEX_KEYS.iter().filter(|key| !key.index.is_global()) {
            assert!(key.rows.iter().all(|row| literals(row.pk) == literals(key.partition)), "{key:?}");
        }
    }
}
