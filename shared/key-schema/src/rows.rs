//! The table on one page: every row of every domain, partition key `/` sort key.
//!
//! Rows of domains whose functions are not built yet stand here already, so that their place in the table is decided once.

use mlflow_api::{DatasetRecordId, EvaluationDatasetId, ExperimentId, ModelId, RunId, ScorerId};

use crate::{
    Ascending, Bucket, Descending, DescendingDouble, Digest, Field, Key, KeyRange, Level, ModelKind, Name, Ordinal,
    Prefix, Segment, Value, WideDigest,
};

/// What a row is, for the table reference.
#[derive(Clone, Copy, Debug)]
pub struct RowDescription {
    /// The row's type.
    pub name: &'static str,
    /// Pattern of the partition key.
    pub pk: &'static str,
    /// Pattern of the sort key.
    pub sk: &'static str,
    /// What the row holds.
    pub purpose: &'static str,
    /// Whether a key is one of this row, and can be read back.
    pub reads: fn(&Key) -> bool,
}

rows! {
    // ---- an experiment and what is bounded in it -------------------------------------------------------------------
    /// The experiment, a document: name, artifact location, lifecycle stage and its version, times, tags.
    Experiment = "EXP#" <experiment: ExperimentId> / "E#META";
    /// A tag of the experiment that is too big for its document.
    ExperimentTag = "EXP#" <experiment: ExperimentId> / "E#TAG#" <tag: Name>;

    /// A run, a document: info, params, tags.
    Run = "EXP#" <experiment: ExperimentId> / "R#" <run: RunId>;
    /// The run's metrics: per metric the latest point and the points that wait for a segment, as a set.
    RunMetrics = "EXP#" <experiment: ExperimentId> / "R#" <run: RunId> "#METRIC";
    /// Further metrics of a wide run, spread by the metric's hash.
    RunMetricsBucket = "EXP#" <experiment: ExperimentId> / "R#" <run: RunId> "#METRIC#" <bucket: Bucket>;
    /// A param that is too big for the run's document, or one param too many for it.
    RunParam = "EXP#" <experiment: ExperimentId> / "R#" <run: RunId> "#PARAM#" <param: Name>;
    /// A tag of a run, likewise.
    RunTag = "EXP#" <experiment: ExperimentId> / "R#" <run: RunId> "#TAG#" <tag: Name>;
    /// A logged model of the run, and the step it was logged at.
    RunOutput = "EXP#" <experiment: ExperimentId> / "R#" <run: RunId> "#LM#" <model: Name>;
    /// A dataset the run read, and the tags of this use of it.
    RunInput = "EXP#" <experiment: ExperimentId> / "R#" <run: RunId> "#INPUT#" <dataset: WideDigest>;
    /// A logged model the run read.
    RunModelInput = "EXP#" <experiment: ExperimentId> / "R#" <run: RunId> "#LM_INPUT#" <model: Name>;

    /// A logged model, a document: info, params, tags.
    LoggedModel = "EXP#" <experiment: ExperimentId> / "LM#" <model: ModelId>;
    /// The model's metrics: per metric the points logged for it, as a set.
    LoggedModelMetrics = "EXP#" <experiment: ExperimentId> / "LM#" <model: ModelId> "#METRIC";
    /// A param of a logged model that is too big for its document.
    LoggedModelParam = "EXP#" <experiment: ExperimentId> / "LM#" <model: ModelId> "#PARAM#" <param: Name>;
    /// A tag of a logged model, likewise.
    LoggedModelTag = "EXP#" <experiment: ExperimentId> / "LM#" <model: ModelId> "#TAG#" <tag: Name>;
    /// A trace, a document: name, status, times, tags, metadata, assessments.
    Trace = "EXP#" <experiment: ExperimentId> / "T#" <trace: Name>;
    /// A tag of a trace that is too big for its document.
    TraceTag = "EXP#" <experiment: ExperimentId> / "T#" <trace: Name> "#TAG#" <tag: Name>;
    /// A dataset that runs read: name, digest, the contexts it was read in; source, schema and profile, compressed, unless they are
    /// big. Its key is a hash of name and digest.
    Dataset = "EXP#" <experiment: ExperimentId> / "D#" <dataset: WideDigest>;
    /// A run that read a dataset.
    DatasetLink = "EXP#" <experiment: ExperimentId> / "DLINK#" <dataset: WideDigest> "#" <run: RunId>;

    // ---- search, derived by the indexer; entries of one list are newest first where their text or value is the same ----
    /// Runs by a metric, greatest first.
    RankByMetric = "EXP#" <experiment: ExperimentId> / "RANK#m#" <metric: Field> "#" <value: DescendingDouble> "#" <started: Descending> "#" <run: RunId>;
    /// Runs by a param.
    RankByParam = "EXP#" <experiment: ExperimentId> / "RANK#p#" <param: Field> "#" <value: Value> "#" <started: Descending> "#" <run: RunId>;
    /// Entities that hold a token in a field: a trigram, a stemmed word or, of a field that is indexed so, the whole value.
    FullText = "EXP#" <experiment: ExperimentId> / "FTS#" <level: Level> "#" <entity_type: Name> "#" <field: Field> "#" <token: Value> "#" <started: Descending> "#" <entity: Name>;
    /// What the indexer last saw of an entity: a copy of its values, from which its ranks and tokens follow.
    FullTextReverse = "EXP#" <experiment: ExperimentId> / "FTS_REV#" <entity_type: Name> "#" <entity: Name>;

    // ---- what grows without bound has a partition of its own -------------------------------------------------------
    /// Points of one metric, packed; keyed by the first of them in MLflow's order of history (timestamp, step) and a digest of all.
    MetricSegment = "RUN#" <run: RunId> / "MHIST#" <metric: Name> "#" <timestamp: Ascending> "#" <step: Ascending> "#" <points: Digest>;
    /// A part of what is too big for a dataset's item. Hashes: of experiment, name and digest; and of the content.
    DatasetPart = "DATA#" <dataset: WideDigest> / "D#PART#" <content: WideDigest> "#" <part: Ordinal>;
    /// Points of a logged model's metrics that its document has no room for.
    LoggedModelSegment = "MODEL#" <model: ModelId> / "MHIST#" <points: WideDigest>;
    /// Names the experiment of a trace, whose id the client chose.
    TraceLocation = "TRACE#" <trace: Name> / "T#META";
    /// Spans of a trace, packed, one item an export.
    TraceSpans = "TRACE#" <trace: Name> / "T#SPANS#" <export: Digest>;

    // ---- evaluation datasets and scorers -----------------------------------------------------------------------------
    /// An evaluation dataset, a document: name, tags, schema, number of records, digest, times, users, experiments.
    EvaluationDataset = "EVAL#" <dataset: EvaluationDatasetId> / "ED#META";
    /// A record of it: inputs, outputs, expectations, tags and source, compressed, unless they are big; the hash of its inputs.
    /// Ids begin with the time of creation, so that a page of records is a range.
    EvaluationRecord = "EVAL#" <dataset: EvaluationDatasetId> / "ED#REC#" <record: DatasetRecordId>;
    /// A tag of the dataset that is too big for its document.
    EvaluationDatasetTag = "EVAL#" <dataset: EvaluationDatasetId> / "ED#TAG#" <tag: Name>;
    /// Claims the inputs of a record, by their hash, and names the record.
    EvaluationInputs = "EVALKEY#" <dataset: EvaluationDatasetId> / "ED#HASH#" <inputs: WideDigest>;
    /// A part of what is too big for a record's item or for the dataset's document.
    EvaluationPart = "EVALKEY#" <dataset: EvaluationDatasetId> / "ED#PART#" <content: WideDigest> "#" <part: Ordinal>;
    /// Lists an experiment's evaluation datasets, oldest first. Clients name experiments here that need not be there.
    ExperimentEvaluationDataset = "EVALEXP#" <experiment: Name> / "EDS#" <dataset: EvaluationDatasetId>;
    /// A scorer: its id, and a copy of its latest version.
    Scorer = "EXP#" <experiment: ExperimentId> / "SCORER#" <name: Name>;
    /// A version of a scorer, compressed, unless it is big.
    ScorerVersion = "EXP#" <experiment: ExperimentId> / "SCORERV#" <scorer: ScorerId> "#" <version: Ordinal>;
    /// A part of a version that is too big for an item.
    ScorerPart = "EXP#" <experiment: ExperimentId> / "SCORERPART#" <content: WideDigest> "#" <part: Ordinal>;
    /// On which traces a scorer runs by itself.
    ScorerOnlineConfig = "EXP#" <experiment: ExperimentId> / "SCORERCFG#" <scorer: ScorerId>;

    // ---- model registry ------------------------------------------------------------------------------------------
    /// A registered model, or a prompt, by its name; a document: which versions it has had, the latest of each stage, aliases, tags. Its
    /// other rows are in the partition of its home, which is this one unless the model was renamed, or the name had another model before.
    RegisteredModel = "RM#" <model: Name> / "M#META";
    /// What the model whose rows this partition holds is called now.
    ModelHome = "RM#" <home: Name> / "M#HOME";
    /// A version of the model, a document.
    ModelVersion = "RM#" <home: Name> / "M#V#" <version: Ordinal>;
    /// A tag of a version that is too big for its document.
    ModelVersionTag = "RM#" <home: Name> / "M#V#" <version: Ordinal> "#TAG#" <tag: Name>;
    /// A tag of the model, likewise.
    ModelTag = "RM#" <home: Name> / "M#TAG#" <tag: Name>;
    /// A model version that names a run.
    VersionOfRun = "RUN#" <run: Name> / "MV#" <home: Name> "#" <version: Ordinal>;

    // ---- workspaces, users, configuration --------------------------------------------------------------------------
    /// A workspace.
    Workspace = "WORKSPACE#" <workspace: Name> / "WS#META";
    /// Claims the name of an experiment, and lists the workspace's experiments by name and (LSI1) newest first.
    ExperimentName = "WORKSPACE#" <workspace: Name> / "EXPNAME#" <name: Name>;
    /// Lists the registered models of a workspace by name, prompts apart.
    ModelName = "WORKSPACE#" <workspace: Name> / "RMNAME#" <kind: ModelKind> "#" <name: Name>;
    /// Lists the workspace's evaluation datasets, oldest first.
    WorkspaceEvaluationDataset = "WORKSPACE#" <workspace: Name> / "EDS#" <dataset: EvaluationDatasetId>;
    /// Lists the workspace's scorers.
    WorkspaceScorer = "WORKSPACE#" <workspace: Name> / "SCORERS#" <experiment: ExperimentId> "#" <name: Name>;
    /// A user: password hash, admin flag.
    User = "USER#" <user: Name> / "U#META";
    /// The user's permission for an experiment.
    ExperimentPermission = "USER#" <user: Name> / "U#PERM#" <experiment: ExperimentId>;
    /// The user's permission for a registered model.
    ModelPermission = "USER#" <user: Name> / "U#RPERM#" <model: Name>;
    /// One setting: TTL policy, indexed fields; also the counter of experiment ids.
    Config = "CONFIG" / "CFG#" <setting: Name>;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Which rows read this key as theirs.
    fn readers(key: &Key) -> Vec<&'static str> {
        ROWS.iter().filter(|row| (row.reads)(key)).map(|row| row.name).collect()
    }

    fn name() -> impl Strategy<Value = Name> {
        prop_oneof!["\\PC{0,30}", "[#R$/A-Z]{0,30}", "(#METRIC|#PARAM#x|R#|\\x00|E#META){0,4}"].prop_map(Name)
    }

    fn full_text(experiment: ExperimentId, chosen: &Name, other: &Name, time: i64) -> Key {
        let (field, token) = (Field(chosen.0.clone()), Value(other.0.clone()));
        FullText::key(&experiment, &Level::Trigram, other, &field, &token, &Descending(time), chosen)
    }

    proptest! {
        #[test]
        fn a_name_forges_no_other_row(chosen in name(), other in name(), number: u64, time: i64) {
            let experiment = ExperimentId::from_number(number >> 4).unwrap();
            let run = RunId::new(1_700_000_000_000, experiment, 7);
            let model = ModelId::new(1_700_000_000_000, experiment, 7);
            let keys = [
                ("ExperimentTag", ExperimentTag::key(&experiment, &chosen)),
                ("RunParam", RunParam::key(&experiment, &run, &chosen)),
                ("RunTag", RunTag::key(&experiment, &run, &chosen)),
                ("RunOutput", RunOutput::key(&experiment, &run, &chosen)),
                ("RunModelInput", RunModelInput::key(&experiment, &run, &chosen)),
                ("RunInput", RunInput::key(&experiment, &run, &WideDigest::of(&[&chosen.0]))),
                ("DatasetLink", DatasetLink::key(&experiment, &WideDigest::of(&[&chosen.0]), &run)),
                ("DatasetPart", DatasetPart::key(&WideDigest::of(&[&chosen.0]), &WideDigest::of(&[]), &Ordinal(1))),
                ("LoggedModelParam", LoggedModelParam::key(&experiment, &model, &chosen)),
                ("LoggedModelTag", LoggedModelTag::key(&experiment, &model, &chosen)),
                ("LoggedModelMetrics", LoggedModelMetrics::key(&experiment, &model)),
                ("Trace", Trace::key(&experiment, &chosen)),
                ("TraceTag", TraceTag::key(&experiment, &chosen, &other)),
                ("RankByParam", RankByParam::key(&experiment, &Field(chosen.0.clone()), &Value(other.0.clone()), &Descending(time), &run)),
                ("RankByMetric", RankByMetric::key(&experiment, &Field(chosen.0.clone()), &DescendingDouble(0.5), &Descending(time), &run)),
                ("FullText", full_text(experiment, &chosen, &other, time)),
                ("FullTextReverse", FullTextReverse::key(&experiment, &chosen, &other)),
                ("MetricSegment", MetricSegment::key(&run, &chosen, &Ascending(time), &Ascending(-time), &Digest(number))),
                ("EvaluationDatasetTag", EvaluationDatasetTag::key(&EvaluationDatasetId::new(time, 7), &chosen)),
                ("ExperimentEvaluationDataset", ExperimentEvaluationDataset::key(&chosen, &EvaluationDatasetId::new(time, 7))),
                ("WorkspaceEvaluationDataset", WorkspaceEvaluationDataset::key(&chosen, &EvaluationDatasetId::new(time, 7))),
                ("Scorer", Scorer::key(&experiment, &chosen)),
                ("WorkspaceScorer", WorkspaceScorer::key(&chosen, &experiment, &other)),
                ("RegisteredModel", RegisteredModel::key(&chosen)),
                ("ModelHome", ModelHome::key(&chosen)),
                ("ModelTag", ModelTag::key(&chosen, &other)),
                ("ModelVersionTag", ModelVersionTag::key(&chosen, &Ordinal(7), &other)),
                ("VersionOfRun", VersionOfRun::key(&chosen, &other, &Ordinal(7))),
                ("ModelName", ModelName::key(&chosen, &ModelKind::Prompt, &other)),
                ("ExperimentName", ExperimentName::key(&chosen, &other)),
                ("Config", Config::key(&chosen)),
            ];
            for (row, key) in keys {
                prop_assert_eq!(readers(&key), vec![row], "{:?}", key);
            }
        }

        #[test]
        fn a_key_comes_back(chosen in name(), time: i64, step: i64, number: u64) {
            let experiment = ExperimentId::from_number(number >> 4).unwrap();
            let run = RunId::new(1_700_000_000_000, experiment, 7);
            let segment = MetricSegment {
                run: run.clone(), metric: chosen.clone(), timestamp: Ascending(time), step: Ascending(step), points: Digest(number),
            };
            let key = MetricSegment::key(&run, &chosen, &Ascending(time), &Ascending(step), &Digest(number));
            prop_assert_eq!(MetricSegment::parse(&key), Some(segment));
            let param = RunParam { experiment, run: run.clone(), param: chosen.clone() };
            prop_assert_eq!(RunParam::parse(&RunParam::key(&experiment, &run, &chosen)), Some(param));
        }

        #[test]
        fn segments_of_a_metric_sort_by_time_then_step(a: (i64, i64), b: (i64, i64), digest: u64) {
            let run = RunId::new(1_700_000_000_000, ExperimentId::DEFAULT, 7);
            let key = |(time, step)| MetricSegment::key(&run, &"loss".into(), &Ascending(time), &Ascending(step), &Digest(digest)).sk;
            prop_assert_eq!(a.cmp(&b), key(a).cmp(&key(b)));
        }
    }

    proptest! {
        #[test]
        fn records_sort_by_time(a in 0_i64..1 << 47, b in 0_i64..1 << 47, random: u128) {
            let dataset = EvaluationDatasetId::new(5, 7);
            let key = |time| EvaluationRecord::key(&dataset, &DatasetRecordId::new(time, random)).sk;
            prop_assert_eq!(a.cmp(&b), key(a).cmp(&key(b)));
        }
    }

    /// A query for all rows of one of these types brings the others, too. Of no other types.
    #[test]
    fn only_rows_of_one_entity_begin_alike() {
        let literal = |pattern: &'static str| pattern.split_once('<').map_or(pattern, |(literal, _)| literal);
        let mut alike = std::collections::BTreeSet::new();
        for row in ROWS {
            let others = ROWS.iter().filter(|other| literal(other.pk) == literal(row.pk));
            let within: Vec<_> = others.filter(|other| other.sk.starts_with(literal(row.sk))).collect();
            if within.len() > 1 {
                alike.insert(within.iter().map(|row| row.name).collect::<Vec<_>>().join(" "));
            }
        }
        let expected = [
            "LoggedModel LoggedModelMetrics LoggedModelParam LoggedModelTag",
            "ModelVersion ModelVersionTag",
            "Run RunMetrics RunMetricsBucket RunParam RunTag RunOutput RunInput RunModelInput",
            "Trace TraceTag",
        ];
        assert!(alike.iter().eq(expected.iter()), "{alike:#?}");
    }

    #[test]
    fn the_longest_keys_fit_into_dynamodb() {
        let longest = Name("\u{1F600}#".repeat(300));
        let experiment = ExperimentId::from_number((1 << 60) - 1).unwrap();
        let run = RunId::parse(&"r".repeat(256)).unwrap();
        for key in [
            RunParam::key(&experiment, &run, &longest),
            RunOutput::key(&experiment, &run, &longest),
            MetricSegment::key(&run, &longest, &Ascending(0), &Ascending(0), &Digest(0)),
            ExperimentName::key(&longest, &longest),
            ModelName::key(&longest, &ModelKind::Prompt, &longest),
            ModelVersionTag::key(&longest, &Ordinal(u32::MAX), &longest),
            VersionOfRun::key(&longest, &longest, &Ordinal(u32::MAX)),
            WorkspaceScorer::key(&longest, &experiment, &longest),
            RankByParam::key(&experiment, &Field(longest.0.clone()), &Value(longest.0.clone()), &Descending(0), &run),
            FullText::key(
                &experiment,
                &Level::Word,
                &"experiment".into(),
                &Field(longest.0.clone()),
                &Value(longest.0.clone()),
                &Descending(0),
                &run.as_str().into(),
            ),
        ] {
            assert!(key.pk.len() <= 2_048 && key.sk.len() <= 1_024, "{} {}", key.pk.len(), key.sk.len());
        }
    }
}
