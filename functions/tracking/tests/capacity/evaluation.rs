//! What evaluation datasets and scorers cost.

use std::time::Duration;

use ledger::Ledger;
use mlflow_api::Json;
use tracking::store::{DatasetSearch, NewDataset, NewExperiment, ScorerName};

use crate::Bench;

/// Records of about a KB each, of words that stand for a question, its context and the answer.
fn records(numbers: std::ops::Range<usize>) -> Json {
    let words = ["what", "is", "the", "answer", "of", "model", "when", "context", "says", "nothing", "about", "it"];
    let text = |number: usize, count: usize| -> String {
        let word = |place: usize| words[(number * 7 + place * place) % words.len()];
        let words: Vec<_> =
            (0..count).map(|place| format!("{}{}", word(place), (number * 31 + place * 17) % 97)).collect();
        words.join(" ")
    };
    let record = |number: usize| {
        format!(
            r#"{{"inputs": {{"question": "{number} {}", "context": "{}"}}, "expectations": {{"answer": "{}"}}}}"#,
            text(number, 20),
            text(number + 1, 90),
            text(number + 2, 15)
        )
    };
    let records: Vec<_> = numbers.map(record).collect();
    Json::parse(&format!("[{}]", records.join(", "))).unwrap()
}

/// The sections about evaluation datasets and scorers.
pub(crate) async fn evaluation(ledger: &mut Ledger) {
    datasets(ledger).await;
    scorers(ledger).await;
}

async fn datasets(ledger: &mut Ledger) {
    ledger.section("Evaluation datasets, records of 1 KB");
    let (bench, experiment) = Bench::with_experiment().await;
    let (store, meter) = (&bench.store, &bench.meter);
    let new = NewDataset {
        name: "questions".to_owned(),
        tags: vec![("team".to_owned(), "search".to_owned())],
        experiment_ids: vec![experiment.to_string()],
        ..NewDataset::default()
    };
    let dataset = store.dataset_create(&new).await.unwrap().dataset_id;
    ledger.row("create a dataset", Some((2.0, 8.0)), &meter.take(), 1);
    store.dataset_get(&dataset).await.unwrap();
    ledger.row("get it", Some((2.0, 0.0)), &meter.take(), 1);
    store.dataset_set_tags(&dataset, Json::parse(r#"{"a": "b", "c": "d"}"#).unwrap()).await.unwrap();
    ledger.row("set two tags", Some((2.0, 2.0)), &meter.take(), 1);
    let merged = store.dataset_merge_records(&dataset, records(0..100)).await.unwrap();
    assert_eq!((merged.inserted_count, merged.updated_count), (100, 0));
    ledger.row("merge 100 new records", Some((5.0, 450.0)), &meter.take(), 1);
    let merged = store.dataset_merge_records(&dataset, records(0..100)).await.unwrap();
    assert_eq!((merged.inserted_count, merged.updated_count), (0, 100));
    ledger.row("merge them again", Some((6.0, 250.0)), &meter.take(), 1);
    for hundred in 1..10 {
        store.dataset_merge_records(&dataset, records(hundred * 100..hundred * 100 + 100)).await.unwrap();
    }
    meter.take();
    let page = store.dataset_records(&dataset, 1_000, "").await.unwrap();
    assert!(page.next_page_token.is_none() && page.records.len() > 1_000_000, "{}", page.records.len());
    ledger.row("a page of 1,000 records", Some((2.0, 0.0)), &meter.take(), 1);
    let ids: Vec<String> = Json::parse(&page.records).into_iter().flat_map(ids_of).take(100).collect();
    assert_eq!(store.dataset_delete_records(&dataset, &ids).await.unwrap(), 100);
    ledger.row("delete 100 records", Some((4.0, 450.0)), &meter.take(), 1);
    store.dataset_add_experiments(&dataset, &["0".to_owned()]).await.unwrap_err();
    meter.take();
    store.dataset_remove_experiments(&dataset, &[experiment.to_string()]).await.unwrap();
    ledger.row("remove from an experiment", None, &meter.take(), 1);
    store.dataset_add_experiments(&dataset, &[experiment.to_string()]).await.unwrap();
    ledger.row("add to an experiment", None, &meter.take(), 1);
    for number in 0..200 {
        store.dataset_create(&NewDataset { name: format!("dataset {number}"), ..new.clone() }).await.unwrap();
    }
    meter.take();
    let mut search =
        DatasetSearch { experiment_ids: vec![experiment.to_string()], max_results: 50, ..DatasetSearch::default() };
    assert_eq!(store.dataset_search(&search).await.unwrap().datasets.len(), 50);
    ledger.row("search: the latest 50 of an experiment with 201", Some((2.0, 0.0)), &meter.take(), 1);
    search.filter.push_str("tags.team = 'search'");
    assert_eq!(store.dataset_search(&search).await.unwrap().datasets.len(), 50);
    ledger.row("search: 50 of them by a tag", Some((4.0, 0.0)), &meter.take(), 1);
    store.dataset_delete(&dataset).await.unwrap();
    ledger.row("delete a dataset with 900 records, which the indexer removes", Some((2.0, 10.0)), &meter.take(), 1);
}

fn ids_of(records: Json) -> Vec<String> {
    let Json::List(records) = records else { return Vec::new() };
    let id = |record: &Json| record.object()?.get("dataset_record_id").map(Json::to_text);
    records.iter().filter_map(id).collect()
}

async fn scorers(ledger: &mut Ledger) {
    ledger.section("Scorers, without leases");
    let bench = Bench::new(Duration::ZERO).await;
    let (store, meter) = (&bench.store, &bench.meter);
    let new = NewExperiment { name: "experiment".to_owned(), ..NewExperiment::default() };
    let experiment = store.experiment_create(&new).await.unwrap().to_string();
    meter.take();
    let scorer = ScorerName { experiment: &experiment, name: "fluency" };
    let serialized = format!(r#"{{"name": "fluency", "instructions": "{}"}}"#, "Say how fluent it is. ".repeat(50));
    store.scorer_register(&scorer, &serialized).await.unwrap();
    ledger.row("register a scorer", Some((3.0, 6.0)), &meter.take(), 1);
    store.scorer_register(&scorer, &serialized).await.unwrap();
    ledger.row("register another version", Some((3.0, 4.0)), &meter.take(), 1);
    store.scorer_get(&scorer, None).await.unwrap();
    ledger.row("get the latest version", Some((2.0, 0.0)), &meter.take(), 1);
    store.scorer_get(&scorer, Some(1)).await.unwrap();
    ledger.row("get another version", Some((3.0, 0.0)), &meter.take(), 1);
    store.scorer_list(&experiment).await.unwrap();
    ledger.row("list the scorers of an experiment", Some((2.0, 0.0)), &meter.take(), 1);
    store.scorer_versions(&scorer).await.unwrap();
    ledger.row("list the versions", None, &meter.take(), 1);
    store.scorer_set_online_config(&scorer, 0.0, None).await.unwrap();
    ledger.row("set an online configuration", None, &meter.take(), 1);
    store.scorer_delete(&scorer, None).await.unwrap();
    ledger.row("delete a scorer with two versions", None, &meter.take(), 1);
}
