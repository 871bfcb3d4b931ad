//! What it costs to say what a run read.

use ledger::Ledger;
use mlflow_api::inputs::{CONTEXT_TAG, Dataset, DatasetInput};
use mlflow_api::tracking::KeyValue;

use crate::{Bench, TIME, search};

fn input(name: &str, schema: &str) -> DatasetInput {
    let context = KeyValue { key: CONTEXT_TAG.to_owned(), value: "train".to_owned() };
    let dataset = Dataset {
        name: name.to_owned(),
        digest: "2dd2d3a4".to_owned(),
        source_type: "code".to_owned(),
        source: r#"{"tags": {"mlflow.user": "somebody", "mlflow.source.name": "train.py"}}"#.to_owned(),
        schema: schema.to_owned(),
        profile: r#"{"num_rows": 150, "num_elements": 600}"#.to_owned(),
    };
    DatasetInput { tags: vec![context], dataset }
}

pub(crate) async fn measure(ledger: &mut Ledger) {
    let (bench, experiment) = Bench::with_experiment().await;
    let (store, meter) = (&bench.store, &bench.meter);
    let columns: Vec<_> =
        (0..30).map(|n| format!(r#"{{"type": "double", "name": "column_{n}", "required": true}}"#)).collect();
    let schema = format!(r#"{{"mlflow_colspec": [{}]}}"#, columns.join(", "));
    let new = input("iris", &schema);
    let run = bench.run(experiment, TIME).await;
    store.run_log_inputs(&run, std::slice::from_ref(&new), &[]).await.unwrap();
    ledger.row("log one dataset, new in the experiment", Some((3.0, 12.0)), &meter.take(), 1);
    store.run_log_inputs(&run, std::slice::from_ref(&new), &[]).await.unwrap();
    ledger.row("the same again", Some((2.0, 0.0)), &meter.take(), 1);
    let run = bench.run(experiment, TIME).await;
    store.run_log_inputs(&run, std::slice::from_ref(&new), &[]).await.unwrap();
    ledger.row("log one dataset that another run has logged", Some((3.0, 8.0)), &meter.take(), 1);
    let found = store.run_get(&run).await.unwrap();
    assert_eq!(found.inputs.dataset_inputs, [new]);
    ledger.row("get a run with a dataset", Some((3.0, 0.0)), &meter.take(), 1);
    for number in 0..100 {
        let run = bench.run(experiment, TIME + number).await;
        store.run_log_inputs(&run, &[input(&format!("dataset {}", number % 20), &schema)], &[]).await.unwrap();
    }
    meter.take();
    assert_eq!(store.run_datasets_search(&[experiment]).await.unwrap().len(), 21);
    ledger.row("the 21 datasets of an experiment", Some((1.0, 0.0)), &meter.take(), 1);
    assert_eq!(store.runs_of_dataset("dataset 7", "2dd2d3a4").await.unwrap().len(), 5);
    ledger.row("runs of a dataset, in whichever experiment", Some((1.0, 0.0)), &meter.take(), 1);
    let mut wanted = search(experiment);
    wanted.filter.push_str("dataset.name = 'dataset 7'");
    assert_eq!(store.run_search(&wanted).await.unwrap().runs.len(), 5);
    meter.take();
}
