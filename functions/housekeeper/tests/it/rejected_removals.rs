//! Entities that must not be removed are rejected with MLflow's messages, and nothing is removed.

use retention::{DeletionAge, NamedEntities};
use serde_json::json;

use crate::test_server::TestServer;

fn ids(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

#[tokio::test]
async fn only_what_is_deleted_can_be_named() {
    let lab = TestServer::new().await;
    let retention = lab.retention();
    let (deleted, active) = (lab.run("0").await, lab.run("0").await);
    lab.post("runs/delete", json!({ "run_id": deleted })).await;
    let model = lab.model("0", &active).await;
    let month = DeletionAge::parse("30d").unwrap();
    let refused =
        async |named: NamedEntities, age: Option<&DeletionAge>| retention.named(&named, age).await.unwrap_err().message;
    let runs = |of: &[&str]| NamedEntities { runs: ids(of), ..NamedEntities::default() };
    assert_eq!(
        refused(runs(&[&deleted, &active]), None).await,
        format!(
            "Run {active} is not in `deleted` lifecycle stage. Only runs in `deleted` lifecycle stage can be deleted."
        )
    );
    assert_eq!(
        refused(runs(&[&deleted]), Some(&month)).await,
        format!("Run {deleted} is not older than the required age. Only runs older than 30d can be deleted.")
    );
    assert_eq!(refused(runs(&["none"]), None).await, "Run with id=none not found");

    let models = |of: &[&str]| NamedEntities { models: ids(of), ..NamedEntities::default() };
    let message = format!(
        "Logged model {model} is not in `deleted` lifecycle stage. Only logged models in `deleted` lifecycle stage can be deleted."
    );
    assert_eq!(refused(models(&[&model]), None).await, message);
    lab.delete_model(&model).await;
    assert_eq!(
        refused(models(&[&model]), Some(&month)).await,
        format!(
            "Logged model {model} is not older than the required age. Only logged models older than 30d can be deleted."
        )
    );

    let experiment = lab.experiment("e").await;
    let experiments = |of: &[&str]| NamedEntities { experiments: ids(of), ..NamedEntities::default() };
    assert_eq!(
        refused(experiments(&["0", &experiment]), None).await,
        format!(
            "Experiments ['0', '{experiment}'] are not in the deleted lifecycle stage. \
             Only experiments in the deleted lifecycle stage can be hard-deleted."
        )
    );
    lab.post("experiments/delete", json!({ "experiment_id": experiment })).await;
    assert_eq!(
        refused(experiments(&[&experiment]), Some(&month)).await,
        format!(
            "Experiments ['{experiment}'] are not older than the required age. Only experiments older than 30d can be deleted."
        )
    );
    assert_eq!(refused(experiments(&["77"]), None).await, "No Experiment with id=77 exists");

    let named = NamedEntities {
        runs: ids(&[&deleted]),
        experiments: ids(&[&experiment]),
        models: ids(&[&model]),
        ..NamedEntities::default()
    };
    let found = retention.named(&named, None).await.unwrap();
    let entities: Vec<_> = found.entities().map(|entity| entity.to_string()).collect();
    let expected = [
        format!("Run with ID {deleted}"),
        format!("Logged model with ID {model}"),
        format!("Experiment with ID {experiment}"),
    ];
    assert_eq!(entities, expected);
}
