//! Samples of GraphQL.

use serde_json::{Value, json};

use crate::route_samples::sample_client::{SampleClient, text};
use crate::route_samples::tracking::run;

/// Queries each root of the schema, and the entities that are reachable from a run.
pub(crate) async fn reads(walk: &mut SampleClient) {
    // The location of this experiment makes the server store the experiment's artifacts itself.
    let new = json!({ "name": "queried", "artifact_location": "mlflow-artifacts:/queried" });
    let experiment = text(&walk.post("experiments/create", new).await, "/experiment_id");
    let run = run(walk, &experiment).await;
    let of_run = "run { info { runId } experiment { name } modelVersions { name } }";
    let one = format!("experimentId: \"{experiment}\"");
    let all = format!("experimentIds: [\"{experiment}\"]");
    for (method, query) in [
        ("POST", format!("{{ mlflowGetRun(input: {{ runId: \"{run}\" }}) {{ {of_run} }} }}")),
        ("GET", format!("{{ mlflowGetExperiment(input: {{ {one} }}) {{ experiment {{ name }} }} }}")),
        ("POST", format!("{{ mlflowSearchRuns(input: {{ {all} }}) {{ runs {{ info {{ runId }} }} }} }}")),
        ("POST", format!("{{ mlflowListArtifacts(input: {{ runId: \"{run}\" }}) {{ files {{ path }} }} }}")),
    ] {
        let answer = walk.send(&format!("{method} /graphql"), &[], json!({ "query": query })).await;
        assert_eq!(answer["errors"], Value::Null, "{query}: {answer}");
    }
}
