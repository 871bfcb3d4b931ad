//! The cost of recording a run's inputs.

use mlflow_api::inputs::{CONTEXT_TAG, Dataset, DatasetInput};
use mlflow_api::tracking::KeyValue;
use test_site::ledger::{CostLedger, budget};

use super::{TIME, run, search, two_runs, with_experiment};

fn input(name: &str) -> DatasetInput {
    let columns: Vec<_> =
        (0..30).map(|n| format!(r#"{{"type": "double", "name": "column_{n}", "required": true}}"#)).collect();
    let context = KeyValue { key: CONTEXT_TAG.to_owned(), value: "train".to_owned() };
    let dataset = Dataset {
        name: name.to_owned(),
        digest: "2dd2d3a4".to_owned(),
        source_type: "code".to_owned(),
        source: r#"{"tags": {"mlflow.user": "somebody", "mlflow.source.name": "train.py"}}"#.to_owned(),
        schema: format!(r#"{{"mlflow_colspec": [{}]}}"#, columns.join(", ")),
        profile: r#"{"num_rows": 150, "num_elements": 600}"#.to_owned(),
    };
    DatasetInput { tags: vec![context], dataset }
}

pub(crate) async fn measure(ledger: &mut CostLedger) {
    ledger.section("Datasets that runs read");
    let (bench, experiment) = with_experiment().await;
    let names = ["iris", "rose"];
    let runs = two_runs(&bench, experiment).await;
    let logged = [(&runs[0], names[0]), (&runs[1], names[1])];
    for (call, budget) in [
        ("log one dataset, new in the experiment", budget([3.0, 9.0, 3.0], [2.0, 9.0, 2.0])),
        ("log the same dataset again", budget([3.0, 0.0, 4.0], [2.0, 0.0, 3.0])),
    ] {
        ledger
            .row(call, budget, &bench, logged, async |store, (run, name)| {
                store.run_log_inputs(run, &[input(name)], &[]).await.unwrap();
            })
            .await;
    }
    let runs = two_runs(&bench, experiment).await;
    let logged = [(&runs[0], names[0]), (&runs[1], names[1])];
    ledger
        .row(
            "log one dataset that another run has logged",
            budget([3.0, 7.0, 3.0], [2.0, 7.0, 2.0]),
            &bench,
            logged,
            async |store, (run, name)| {
                store.run_log_inputs(run, &[input(name)], &[]).await.unwrap();
            },
        )
        .await;
    ledger
        .row(
            "get a run with a dataset",
            budget([3.0, 0.0, 5.0], [3.0, 0.0, 5.0]),
            &bench,
            logged,
            async |store, (run, name)| {
                assert_eq!(store.run_get(run).await.unwrap().inputs.dataset_inputs, [input(name)]);
            },
        )
        .await;
    for number in 0..95 {
        let run = run(&bench.store, experiment, TIME + number).await;
        bench.store.run_log_inputs(&run, &[input(&format!("dataset {}", number % 19))], &[]).await.unwrap();
    }
    ledger
        .row(
            "the 21 datasets of an experiment",
            budget([1.0, 0.0, 2.0], [1.0, 0.0, 2.0]),
            &bench,
            [(), ()],
            async |store, ()| {
                assert_eq!(store.run_datasets_search(&[experiment]).await.unwrap().len(), 21);
            },
        )
        .await;
    ledger
        .row(
            "runs of a dataset, in any experiment",
            budget([1.0, 0.0, 0.5], [1.0, 0.0, 0.5]),
            &bench,
            [(), ()],
            async |store, ()| {
                assert_eq!(store.runs_of_dataset("dataset 7", "2dd2d3a4").await.unwrap().len(), 5);
            },
        )
        .await;
    let wanted = search(experiment, "dataset.name = 'dataset 7'", &[]);
    assert_eq!(bench.store.run_search(&wanted).await.unwrap().runs.len(), 5);
}
