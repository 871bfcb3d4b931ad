//! Keys of different rows are distinct, and sort in the intended order.

use proptest::prelude::*;

use super::*;
use crate::Level;

/// Returns the names of the rows that parse this key.
fn readers(key: &Key) -> Vec<&'static str> {
    ROWS.iter().filter(|row| (row.reads)(key)).map(|row| row.name).collect()
}

fn name() -> impl Strategy<Value = Name> {
    prop_oneof!["\\PC{0,30}", "[#R$/A-Z]{0,30}", "(#METRIC|#PARAM#x|R#|\\x00|E#META){0,4}"].prop_map(Name)
}

fn full_text(experiment: ExperimentId, chosen: &Name, other: &Name, time: i64) -> Key {
    let (field, token) = (Field(chosen.0.clone()), Value(other.0.clone()));
    let part = TokenPart::of(Level::Trigram, &token.0);
    FullText::key(&experiment, &part, other, &field, &token, &Descending(time), chosen)
}

/// Returns the key of a name in the default workspace.
fn model_key(name: &Name) -> ModelKey {
    ModelKey::of(&model::Workspace::default(), &name.0)
}

proptest! {
    #[test]
    fn a_name_forges_no_other_row(chosen in name(), other in name(), number: u64, time: i64) {
        let experiment = ExperimentId::from_number(number >> 4).unwrap();
        let run = RunId::new(1_700_000_000_000, experiment, 7);
        let model = ModelId::new(1_700_000_000_000, experiment, 7);
        let trace = TraceId::new(u128::from(number));
        let keys = [
            ("ExperimentTag", ExperimentTag::key(&experiment, &chosen)),
            ("RunParam", RunParam::key(&experiment, &run, &chosen)),
            ("RunTag", RunTag::key(&experiment, &run, &chosen)),
            ("RunOutput", RunOutput::key(&experiment, &run, &chosen)),
            ("RunModelInput", RunModelInput::key(&experiment, &run, &chosen)),
            ("RunInput", RunInput::key(&experiment, &run, &WideDigest::of(&[&chosen.0]))),
            ("DatasetLink", DatasetLink::key(&experiment, &WideDigest::of(&[&chosen.0]), &run)),
            ("DatasetPart", DatasetPart::key(&experiment, &WideDigest::of(&[&chosen.0]), &WideDigest::of(&[]), &Ordinal(1))),
            ("LoggedModelParam", LoggedModelParam::key(&experiment, &model, &chosen)),
            ("LoggedModelTag", LoggedModelTag::key(&experiment, &model, &chosen)),
            ("LoggedModelMetrics", LoggedModelMetrics::key(&experiment, &model)),
            ("Trace", Trace::key(&trace)),
            ("TraceSpans", TraceSpans::key(&experiment, &trace, &WideDigest::of(&[&chosen.0]), &Ordinal(1))),
            ("TraceDay", TraceDay::key(&experiment, &Ascending(time))),
            ("TraceMark", TraceMark::key(&experiment, &Ascending(time), &Ordinal(7), &Descending(time), &trace)),
            ("TraceMarkWithSpans", TraceMarkWithSpans::key(&experiment, &Ascending(time), &Ordinal(7), &Descending(time), &trace, &WideDigest::of(&[&chosen.0]))),
            ("TraceBlock", TraceBlock::key(&experiment, &Ascending(time), &Ordinal(7), &Descending(time), &trace)),
            ("BlockSpans", BlockSpans::key(&experiment, &Ascending(time), &Ordinal(7), &Ordinal(1), &WideDigest::of(&[&chosen.0]))),
            ("PackingLock", PackingLock::key(&experiment, &Ascending(time), &Ordinal(7))),
            ("Packing", Packing::key(&experiment, &Ascending(time), &Ordinal(7))),
            ("RankByParam", RankByParam::key(&experiment, &Field(chosen.0.clone()), &Value(other.0.clone()), &Descending(time), &run)),
            ("RankByMetric", RankByMetric::key(&experiment, &Field(chosen.0.clone()), &DescendingDouble(0.5), &Descending(time), &run)),
            ("FullText", full_text(experiment, &chosen, &other, time)),
            ("IndexList", IndexList::key(&experiment, &other, &ListKind::Metric, &Field(chosen.0.clone()))),
            ("IndexedCopy", IndexedCopy::key(&experiment, &OwnStage::Active, &chosen, &Descending(time), &other)),
            ("Postponed", Postponed::key(&Shard::of(&chosen.0), &Ascending(time), &chosen, &experiment, &other)),
            ("MetricSegment", MetricSegment::key(&run, &chosen, &Ascending(time), &Ascending(-time), &Digest(number))),
            ("MetricChart", MetricChart::key(&run, &chosen, &Ordinal(1), &Ordinal(7))),
            ("ArchivedSegments", ArchivedSegments::key(&run, &chosen, &Ordinal(7))),
            ("EvaluationDatasetTag", EvaluationDatasetTag::key(&EvaluationDatasetId::new(time, 7), &chosen)),
            ("ExperimentEvaluationDataset", ExperimentEvaluationDataset::key(&chosen, &EvaluationDatasetId::new(time, 7))),
            ("WorkspaceEvaluationDataset", WorkspaceEvaluationDataset::key(&chosen, &EvaluationDatasetId::new(time, 7))),
            ("Scorer", Scorer::key(&experiment, &chosen)),
            ("WorkspaceScorer", WorkspaceScorer::key(&chosen, &experiment, &other)),
            ("RegisteredModel", RegisteredModel::key(&model_key(&chosen))),
            ("ModelHome", ModelHome::key(&model_key(&chosen))),
            ("ModelTag", ModelTag::key(&model_key(&chosen), &other)),
            ("ModelVersionTag", ModelVersionTag::key(&model_key(&chosen), &Ordinal(7), &other)),
            ("VersionOfRun", VersionOfRun::key(&model_key(&chosen), &model_key(&other), &Ordinal(7))),
            ("ModelName", ModelName::key(&chosen, &ModelKind::Prompt, &other)),
            ("ExperimentName", ExperimentName::key(&chosen, &other)),
            ("McpServer", McpServer::key(&chosen, &McpServerName::parse("com.example/a1").unwrap())),
            ("McpServerRemoval", McpServerRemoval::key(&Digest(number))),
            ("McpServerVersion", McpServerVersion::key(&Digest(number), &McpVersion::of("1.0.0-rc.1+b").unwrap())),
            ("McpServerVersionPart", McpServerVersionPart::key(&Digest(number), &WideDigest::of(&[&chosen.0]), &Ordinal(1))),
            ("ArchiveRequest", ArchiveRequest::key(&experiment)),
            ("StreamPosition", StreamPosition::key(&chosen)),
            ("Skill", Skill::key(&chosen, &SkillName::parse("@acme/review").unwrap())),
            ("SkillRemoval", SkillRemoval::key(&Digest(number))),
            ("SkillUpload", SkillUpload::key(&WideDigest::of(&[&chosen.0]))),
            ("SkillVersion", SkillVersion::key(&Digest(number), &Ordinal(7))),
            ("ArchivedObject", ArchivedObject::key(&Ascending(time), &ArchiveObject::new(u128::from(number)))),
            ("ArchivingExperiment", ArchivingExperiment::key(&experiment)),
            ("Config", Config::key(&chosen)),
            ("RunRemoval", RunRemoval::key(&experiment, &run)),
            ("LoggedModelRemoval", LoggedModelRemoval::key(&experiment, &model)),
            ("ExperimentRemoval", ExperimentRemoval::key(&experiment)),
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

/// Each line of `expected` is a group of row types that share a key prefix, so that a query for all
/// rows of the first type also returns rows of the others. There are no other groups of this kind.
#[test]
fn only_rows_of_one_entity_begin_alike() {
    let literal = |pattern: &'static str| pattern.split_once('<').map_or(pattern, |(literal, _)| literal);
    // The literals of a pattern, without the names of its segments.
    let literals = |pattern: &'static str| pattern.split('>').map(literal).collect::<Vec<_>>();
    let mut alike = std::collections::BTreeSet::new();
    for row in ROWS {
        let others = ROWS.iter().filter(|other| literals(other.pk) == literals(row.pk));
        let within: Vec<_> = others.filter(|other| other.sk.starts_with(literal(row.sk))).collect();
        if within.len() > 1 {
            alike.insert(within.iter().map(|row| row.name).collect::<Vec<_>>().join(" "));
        }
    }
    let expected = [
        "LoggedModel LoggedModelMetrics LoggedModelParam LoggedModelTag",
        "ModelVersion ModelVersionTag",
        "Run RunParam RunTag RunOutput RunInput RunModelInput",
        "RunMetrics RunMetricsBucket",
        "TraceMark TraceMarkWithSpans",
        "WebhookEvent WebhookEventPart",
    ];
    assert!(alike.iter().eq(expected.iter()), "{alike:#?}");
}

#[test]
fn the_longest_keys_fit_into_dynamodb() {
    let longest = Name("\u{1F600}#".repeat(300));
    let team = model::Workspace::parse(&"w".repeat(63)).unwrap();
    let longest_model = ModelKey::of(&team, &"\u{1F600}#/".repeat(300));
    let experiment = ExperimentId::from_number((1 << 60) - 1).unwrap();
    let run = RunId::parse(&"r".repeat(256)).unwrap();
    for key in [
        RunParam::key(&experiment, &run, &longest),
        RunOutput::key(&experiment, &run, &longest),
        MetricChart::key(&run, &longest, &Ordinal(u32::MAX), &Ordinal(u32::MAX)),
        MetricSegment::key(&run, &longest, &Ascending(0), &Ascending(0), &Digest(0)),
        ArchivedSegments::key(&run, &longest, &Ordinal(u32::MAX)),
        ExperimentName::key(&longest, &longest),
        ModelName::key(&longest, &ModelKind::Prompt, &longest),
        ModelVersionTag::key(&longest_model, &Ordinal(u32::MAX), &longest),
        VersionOfRun::key(&longest_model, &longest_model, &Ordinal(u32::MAX)),
        ModelPermission::key(&UserName::named("u").unwrap(), &longest_model),
        WorkspaceScorer::key(&longest, &experiment, &longest),
        IndexList::key(&experiment, &"experiment".into(), &ListKind::Metric, &Field(longest.0.clone())),
        RankByParam::key(&experiment, &Field(longest.0.clone()), &Value(longest.0.clone()), &Descending(0), &run),
        FullText::key(
            &experiment,
            &TokenPart::of(Level::Trigram, &longest.0),
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
