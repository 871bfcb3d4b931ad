//! Tests of the guarantees of lists: each list contains all runs that it should, and is in order.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

use proptest::prelude::*;

use super::parsed;
use crate::tests::TestRun;
use crate::trigram_tokens::of_text;
use crate::{
    AccessPath, CommonFields, DatasetField, DatasetInputFields, FirstValue, IndexedFields, ListHead, ListHeads,
    MetricColumn, RunColumn, RunFields, RunFilter, RunList, RunNumber, RunOptions, RunOrder, RunText, RunWalk, choose,
    tests_of_keys,
};

fn field_texts<'a>(run: &'a TestRun, field: &str) -> Vec<&'a str> {
    let text = match field.split_once('.') {
        Some(("tags", key)) => run.tag(key),
        Some(("params", key)) => run.param(key),
        Some(("datasets", name)) => {
            let field = DatasetField::ALL.into_iter().find(|field| field.name() == name).unwrap();
            return run.datasets.iter().filter_map(|dataset| dataset.value(field)).collect();
        }
        _ if field == "attributes.user_id" => run.text(RunText::UserId),
        _ => run.text(RunText::RunName),
    };
    text.into_iter().collect()
}

fn texts(run: &TestRun, column: &RunColumn) -> Vec<String> {
    let texts = match column {
        RunColumn::Status => run.status.into_iter().collect(),
        RunColumn::Name => run.name.into_iter().collect(),
        // In keys, times are encoded as digits that sort like the number.
        RunColumn::EndTime => return run.end_time.map(|ended| format!("{ended:016x}")).into_iter().collect(),
        RunColumn::Param(key) => run.param(key).into_iter().collect(),
        RunColumn::Field(field) => field_texts(run, field),
    };
    texts.into_iter().map(str::to_owned).collect()
}

fn number(run: &TestRun, MetricColumn(key): &MetricColumn) -> Option<f64> {
    run.metric(key)
}

/// Checks whether the indexer adds the run to the list.
fn stands_in(run: &TestRun, list: &RunList) -> bool {
    match list {
        RunList::All => true,
        RunList::ByText { column, range } => texts(run, column).iter().any(|text| range.contains(text)),
        RunList::ByNumber { column, range } => number(run, column).is_some_and(|value| range.contains(value)),
        RunList::NotANumber { column } => number(run, column).is_some_and(f64::is_nan),
        RunList::ByToken { field, token } => {
            field_texts(run, field).into_iter().any(|text| of_text(text).contains(token))
        }
    }
}

/// Compares the positions of two runs in a list. Negative zero is stored as zero.
fn compare_in(list: &RunList, left: &TestRun, right: &TestRun) -> Ordering {
    let text = |run: &TestRun| match list {
        RunList::ByText { column, .. } => texts(run, column).into_iter().next(),
        RunList::ByToken { field, .. } => field_texts(run, field).first().map(|text| (*text).to_owned()),
        _ => None,
    };
    let value = |run: &TestRun| match list {
        RunList::ByNumber { column, .. } => number(run, column),
        _ => None,
    };
    let descending = |left: Option<f64>, right: Option<f64>| {
        let (left, right) = (left.unwrap_or(0.0), right.unwrap_or(0.0));
        left.is_nan().cmp(&right.is_nan()).then(right.partial_cmp(&left).unwrap_or(Ordering::Equal))
    };
    let by_time = (Reverse(left.start_time), &left.id).cmp(&(Reverse(right.start_time), &right.id));
    text(left).cmp(&text(right)).then(descending(value(left), value(right))).then(by_time)
}

/// Returns the runs in the order of a walk.
fn walked(runs: &[TestRun], walk: &RunWalk) -> Vec<TestRun> {
    let segments = walk.segments.iter().map(|list| {
        let mut segment: Vec<_> = runs.iter().filter(|run| stands_in(run, list)).cloned().collect();
        segment.sort_by(|left, right| compare_in(list, left, right));
        if walk.backwards {
            segment.reverse();
        }
        segment
    });
    segments.flatten().collect()
}

fn first_term(order: &RunOrder) -> RunOrder {
    RunOrder { terms: order.terms[..1].to_vec() }
}

const TEXTS: [&str; 12] = [
    "",
    "a",
    "ab",
    "Ab",
    "abc",
    "train run",
    "training runs",
    "x-train",
    "a%b",
    "été train the abcdef",
    "ÉTÉ TRAIN the abcdef",
    "éété",
];
const PREDICATES: [&str; 49] = [
    "params.p = 'ab'",
    "params.p != 'ab'",
    "params.p LIKE 'ab%'",
    "params.p LIKE 'ab'",
    "params.p ILIKE 'AB'",
    "params.p LIKE '%b%'",
    "params.p IS NULL",
    "params.p IS NOT NULL",
    "tags.t = 'abc'",
    "tags.t = 'train run'",
    "tags.t ILIKE '%TRAIN%'",
    "tags.t LIKE '%train run'",
    "tags.t LIKE 'x-%n'",
    "tags.t IS NOT NULL",
    "tags.t IS NULL",
    "tags.other != 'ab'",
    "tags.`mlflow.user` = 'ab'",
    "run_name = 'train run'",
    "run_name LIKE 'train%'",
    "run_name ILIKE '%train%'",
    "run_name ILIKE '% abc%'",
    "run_name ILIKE '%Été train%'",
    "run_name ILIKE 'été%'",
    "run_name LIKE '%été train%'",
    "tags.t ILIKE '%éÉt%'",
    "params.p ILIKE 'ÉÉTÉ'",
    "run_name LIKE '%ru_'",
    "run_name LIKE '%e%'",
    "run_name LIKE '_____%'",
    "run_name != 'ab'",
    "tags.`mlflow.runName` IS NULL",
    "status = 'FINISHED'",
    "status LIKE 'F%'",
    "status != 'RUNNING'",
    "metrics.m > 0",
    "metrics.m <= 1.5",
    "metrics.m = 0",
    "metrics.m != 1.5",
    "metrics.m >= 1.5",
    "user_id = 'ab'",
    "start_time > 1.5",
    "start_time <= 3",
    "run_id IN ('000', '037')",
    "dataset.name = 'ab'",
    "dataset.name LIKE 'ab%'",
    "dataset.name ILIKE '%train%'",
    "dataset.digest != 'd1'",
    "dataset.context = 'train run'",
    "dataset.context IN ('abc', 'x-train')",
];
const ORDERS: [&[&str]; 20] = [
    &[],
    &["start_time"],
    &["start_time DESC", "metrics.m"],
    &["metrics.m"],
    &["metrics.m DESC"],
    &["metrics.m DESC", "start_time"],
    &["params.p"],
    &["params.p DESC"],
    &["run_name"],
    &["run_name DESC", "status"],
    &["status"],
    &["status DESC"],
    &["status", "metrics.m"],
    &["tags.t"],
    &["tags.t DESC"],
    &["tags.`mlflow.runName`"],
    &["end_time"],
    &["end_time DESC"],
    &["end_time", "metrics.m"],
    &["user_id"],
];

fn runs() -> impl Strategy<Value = Vec<TestRun>> {
    let text = || prop::option::of(prop::sample::select(TEXTS.to_vec()));
    let metric = prop::option::of(prop::sample::select(vec![f64::NAN, 0.0, -0.0, 1.5, -3.0, f64::MAX]));
    let status = prop::sample::select(vec!["RUNNING", "FINISHED", "FAILED", "KILLED", "SCHEDULED"]);
    let datasets = prop::collection::vec((prop::sample::select(TEXTS.to_vec()), text()), 0..3);
    let times = (0_i64..5, prop::option::of(0_i64..5));
    let fields = (text(), text(), prop::sample::select(TEXTS.to_vec()), metric, status, times, datasets);
    prop::collection::vec(fields, 0..16).prop_map(|fields| {
        let run = |(number, (param, tag, name, metric, status, (started, ended), datasets)): (usize, _)| {
            let param: Option<&'static str> = param;
            let tag: Option<&'static str> = tag;
            let metric: Option<f64> = metric;
            let datasets: Vec<(&'static str, Option<&'static str>)> = datasets;
            let dataset = |(name, context)| DatasetInputFields { name, digest: "d1", context };
            let mut tags: BTreeMap<_, _> = tag.into_iter().flat_map(|tag| [("t", tag), ("mlflow.user", tag)]).collect();
            tags.insert("mlflow.runName", name);
            TestRun {
                id: format!("{:03}", number * 37 % 101),
                name: Some(name),
                status: Some(status),
                start_time: Some(started),
                end_time: ended,
                user_id: param,
                metrics: metric.map(|value| ("m", value)).into_iter().collect(),
                params: param.map(|param| ("p", param)).into_iter().collect(),
                tags,
                datasets: datasets.into_iter().map(dataset).collect(),
            }
        };
        fields.into_iter().enumerate().map(run).collect()
    })
}

fn searches() -> impl Strategy<Value = (RunFilter, RunOrder)> {
    let predicates = prop::sample::subsequence(PREDICATES.to_vec(), 0..=4);
    (predicates, prop::sample::select(ORDERS.to_vec())).prop_map(|(filter, order)| parsed(&filter.join(" AND "), order))
}

fn fields() -> impl Strategy<Value = CommonFields> {
    let owned = |patterns: &[&str]| patterns.iter().map(|&pattern| pattern.to_owned()).collect();
    let all = IndexedFields { values: owned(&["*"]), text: owned(&["*"]) };
    let texts = IndexedFields { values: Vec::new(), text: owned(&["tags.*", "params.*"]) };
    // A search covers one or several experiments, each of which has its own settings.
    prop::collection::vec(prop::sample::select(vec![IndexedFields::default(), all, texts]), 1..3)
        .prop_map(CommonFields::of)
}

/// Returns the head of a list of these runs, as the store would read it, but with a smaller limit.
fn head(runs: &[TestRun], options: &RunOptions, list: &RunList, limit: usize) -> ListHead {
    let in_time = |run: &&TestRun| {
        !list.is_newest_first() || run.start_time.is_some_and(|started| options.started.contains(started))
    };
    let mut times: Vec<_> =
        runs.iter().filter(in_time).filter(|run| stands_in(run, list)).filter_map(|run| run.start_time).collect();
    times.sort_unstable_by_key(|time| Reverse(*time));
    let complete = times.len() <= limit;
    times.truncate(limit);
    let known = list.is_newest_first();
    let time = |time: Option<&i64>| time.copied().filter(|_| known);
    ListHead { entries: times.len(), complete, first: time(times.first()), last: time(times.last()) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn a_run_that_passes_stands_in_every_list(runs in runs(), (filter, order) in searches(), fields in fields()) {
        let options = RunOptions::of(&filter.asks(), &order.sorting(), &fields);
        prop_assert!(options.lists.len() <= 6 && options.probes().len() <= 4);
        for run in runs.iter().filter(|run| filter.matches(*run)) {
            let asks = filter.asks();
            for list in &options.lists {
                prop_assert!(stands_in(run, list), "{} {}", filter, list);
                if let RunList::ByText { column, range } = list {
                    let tests = tests_of_keys(&asks, list);
                    let passes = |text: &String| range.contains(text) && tests.iter().all(|test| test.passes(text));
                    prop_assert!(texts(run, column).iter().any(passes), "{} {}", filter, list);
                }
            }
            prop_assert!(run.start_time.is_some_and(|started| options.started.contains(started)));
            prop_assert!(options.ids.as_ref().is_none_or(|ids| ids.contains(&run.id)), "{}", filter);
            if let Some(walk) = options.walk.as_ref().filter(|walk| !walk.missing_follow) {
                prop_assert!(walk.segments.iter().any(|list| stands_in(run, list)), "{} {}", filter, walk);
            }
        }
    }

    #[test]
    fn a_walk_is_in_order(runs in runs(), (filter, order) in searches(), fields in fields()) {
        let Some(walk) = RunOptions::of(&filter.asks(), &order.sorting(), &fields).walk else { return Ok(()) };
        let walked = walked(&runs, &walk);
        let keys: Vec<_> = walked.iter().map(|run| if walk.exact { order.key(run) } else { first_term(&order).key(run) }).collect();
        prop_assert!(keys.is_sorted(), "{} {}", order, walk);
        for run in &runs {
            let key = order.key(run);
            let value = key.first_value().unwrap();
            let segment = walk.segments.iter().position(|list| stands_in(run, list));
            prop_assert_eq!(walk.segment_of(value), segment, "{} {:?}", walk, value);
            let last = keys.last().filter(|_| segment.is_none() && value == FirstValue::Missing);
            let first_key = first_term(&order).key(run);
            prop_assert!(last.is_none_or(|last| walk.exact || *last < first_key), "missing runs come last");
        }
    }

    #[test]
    fn a_plan_loses_no_run(
        runs in runs(), (filter, order) in searches(), fields in fields(), page_size in 1_usize..20, limit in 1_usize..12,
    ) {
        let options = RunOptions::of(&filter.asks(), &order.sorting(), &fields);
        let probes = options.probes().into_iter();
        let heads: ListHeads = probes.map(|list| { let head = head(&runs, &options, &list, limit); (list, head) }).collect();
        let plan = choose(&options, &heads, page_size);
        let (lists, is_walk): (Vec<_>, _) = match &plan.path {
            AccessPath::Newest { lists } | AccessPath::Gather { lists } => (lists.clone(), false),
            AccessPath::Walk(walk) if !walk.missing_follow => (walk.segments.clone(), true),
            AccessPath::Ids(_) | AccessPath::AllRuns | AccessPath::Walk(_) => (Vec::new(), false),
        };
        if let AccessPath::Newest { lists } = &plan.path {
            prop_assert!(lists.iter().all(RunList::is_newest_first));
        }
        prop_assert!(plan.cost.units.is_finite() && plan.cost.requests.is_finite());
        for run in runs.iter().filter(|run| filter.matches(*run)) {
            let mut found = lists.iter().map(|list| stands_in(run, list));
            prop_assert!(if is_walk { found.any(|found| found) } else { found.all(|found| found) }, "{}", plan);
            prop_assert!(plan.narrow_by.iter().all(|list| stands_in(run, list)), "{}", plan);
            prop_assert!(!matches!(&plan.path, AccessPath::Ids(ids) if !ids.contains(&run.id)), "{}", plan);
            prop_assert!(run.number(RunNumber::StartTime).is_some_and(|started| plan.started.contains(started)));
        }
    }
}
