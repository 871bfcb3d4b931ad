//! Writes to each entity of a table that was written by another version.

use serde_json::{Value, json};
use test_site::{TestClient, TestEnvironment};

use super::filled_table::{TEAM, follow};
use super::reads::Asked;

const V2: &str = "/api/2.0/mlflow";
const V3: &str = "/api/3.0/mlflow";

/// Client that sends requests about the entities of a workspace.
struct Writer<'a> {
    api: &'a TestClient,
    workspace: &'a str,
}

impl Writer<'_> {
    async fn ask(&self, method: &str, path: String, body: Value) -> Value {
        Asked::of(self.workspace, method, path, body).done(self.api).await
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        self.ask("POST", format!("{V2}/{path}"), body).await
    }

    async fn get(&self, path: String) -> Value {
        self.ask("GET", path, json!({})).await
    }
}

/// Returns the value at a pointer in each element of a response's list.
fn of_each(answer: &Value, list: &str, pointer: &str) -> Vec<Value> {
    let elements = answer[list].as_array().cloned().unwrap_or_default();
    elements.iter().map(|element| element.pointer(pointer).unwrap().clone()).collect()
}

fn has(list: &Value, key: &str, value: &Value) -> bool {
    list.as_array().is_some_and(|all| all.iter().any(|one| one["key"] == key && one["value"] == *value))
}

/// Writes to every entity of both workspaces, and reads existing and new data. Then indexes
/// everything, and searches for the new data.
pub(super) async fn all(site: &TestEnvironment, api: &TestClient) {
    for workspace in ["default", TEAM] {
        let writer = Writer { api, workspace };
        let listed = writer.get(format!("{V2}/experiments/search?max_results=100")).await;
        let experiments = of_each(&listed, "experiments", "/experiment_id");
        assert!(experiments.len() >= if workspace == TEAM { 1 } else { 8 }, "{listed}");
        let mut runs = 0;
        for experiment in &experiments {
            runs += writer.experiment(experiment).await;
        }
        writer.models().await;
        follow(site).await;
        let tagged = json!({ "experiment_ids": experiments, "filter": "tags.later = 'v'", "max_results": 1_000 });
        let found = writer.post("runs/search", tagged).await;
        assert_eq!(of_each(&found, "runs", "/info/run_id").len(), runs, "{workspace}");
    }
    let writer = Writer { api, workspace: "default" };
    writer.traces().await;
    writer.datasets().await;
    writer.users().await;
    follow(site).await;
}

impl Writer<'_> {
    /// Writes to an experiment, its runs and its logged models. Returns the number of its runs.
    async fn experiment(&self, experiment: &Value) -> usize {
        let tag = json!({ "experiment_id": experiment, "key": "later", "value": "v" });
        self.post("experiments/set-experiment-tag", tag).await;
        let searched = json!({ "experiment_ids": [experiment], "max_results": 1_000 });
        let runs = of_each(&self.post("runs/search", searched).await, "runs", "/info/run_id");
        for run in &runs {
            self.run(run).await;
        }
        let models = self.post("logged-models/search", json!({ "experiment_ids": [experiment] })).await;
        for model in of_each(&models, "models", "/info/model_id") {
            let path = format!("{V2}/logged-models/{}", model.as_str().unwrap());
            let tags = json!({ "tags": [{ "key": "later", "value": "v" }] });
            self.ask("PATCH", format!("{path}/tags"), tags).await;
            let read = self.get(path).await;
            assert!(has(&read["model"]["info"]["tags"], "later", &json!("v")), "{read}");
        }
        runs.len()
    }

    async fn run(&self, run: &Value) {
        let path = format!("{V2}/runs/get?run_id={}", run.as_str().unwrap());
        let before = self.get(path.clone()).await;
        let metrics: Vec<_> = ["later", "loss", "m1", "first"]
            .iter()
            .flat_map(|key| {
                (0..12).map(move |at| json!({ "key": key, "value": at, "timestamp": 9_000 + at, "step": 9_000 + at }))
            })
            .collect();
        let batch = json!({
            "run_id": run, "metrics": metrics, "params": [{ "key": "later", "value": "v" }],
            "tags": [{ "key": "later", "value": "v" }],
        });
        self.post("runs/log-batch", batch).await;
        self.post("runs/delete", json!({ "run_id": run })).await;
        self.post("runs/restore", json!({ "run_id": run })).await;
        self.post("runs/update", json!({ "run_id": run, "status": "FINISHED", "end_time": 10 })).await;
        let after = self.get(path).await;
        let (before, after) = (&before["run"]["data"], &after["run"]["data"]);
        let metrics = after["metrics"].as_array().unwrap();
        let later = metrics.iter().find(|metric| metric["key"] == "later").unwrap_or_else(|| panic!("{after}"));
        assert!(later["value"].as_f64() == Some(11.0) && has(&after["tags"], "later", &json!("v")), "{after}");
        for list in ["params", "tags"] {
            for old in before[list].as_array().unwrap_or(&Vec::new()) {
                let is_there = has(&after[list], old["key"].as_str().unwrap(), &old["value"]);
                assert!(is_there, "{run} has lost {old}");
            }
        }
    }

    async fn models(&self) {
        let found = self.get(format!("{V2}/registered-models/search?max_results=100")).await;
        let names = of_each(&found, "registered_models", "/name");
        assert!(!names.is_empty());
        for name in names {
            let made = json!({ "name": name, "source": "s3://elsewhere/m" });
            let made = self.post("model-versions/create", made).await["model_version"]["version"].clone();
            self.post("registered-models/set-tag", json!({ "name": name, "key": "later", "value": "v" })).await;
            self.post("registered-models/alias", json!({ "name": name, "alias": "later", "version": made })).await;
            let tag = json!({ "name": name, "version": made, "key": "later", "value": "v" });
            self.post("model-versions/set-tag", tag).await;
            let path = format!("{V2}/registered-models/alias?name={}&alias=later", name.as_str().unwrap());
            assert_eq!(self.get(path).await["model_version"]["version"], made);
            let new_name = format!("{} renamed", name.as_str().unwrap());
            self.post("registered-models/rename", json!({ "name": name, "new_name": new_name })).await;
            self.post("registered-models/rename", json!({ "name": new_name, "new_name": name })).await;
        }
    }

    async fn traces(&self) {
        let place = json!([{ "type": "MLFLOW_EXPERIMENT", "mlflow_experiment": { "experiment_id": "0" } }]);
        let all = format!("{V3}/traces");
        let found = self.ask("POST", format!("{all}/search"), json!({ "locations": place })).await;
        let ids = of_each(&found, "traces", "/trace_id");
        assert!(ids.len() >= 3, "{found}");
        for id in &ids {
            let one = format!("{all}/{}", id.as_str().unwrap());
            self.ask("PATCH", format!("{one}/tags"), json!({ "key": "later", "value": "v" })).await;
            let said = json!({ "assessment": { "assessment_name": "later", "feedback": { "value": true } } });
            self.ask("POST", format!("{one}/assessments"), said).await;
            self.ask("POST", "/v1/traces".to_owned(), test_site::route_samples::export(&id.as_str().unwrap()[3..], 77))
                .await;
        }
        let filter = "tag.later = 'v' AND feedback.later = 'true' AND span.name = 'step 77'";
        let found = self.ask("POST", format!("{all}/search"), json!({ "locations": place, "filter": filter })).await;
        assert_eq!(of_each(&found, "traces", "/trace_id").len(), ids.len(), "{found}");
    }

    async fn datasets(&self) {
        let found = self.ask("POST", format!("{V3}/datasets/search"), json!({})).await;
        let ids = of_each(&found, "datasets", "/dataset_id");
        assert!(ids.len() >= 2, "{found}");
        for id in ids {
            let one = format!("{V3}/datasets/{}", id.as_str().unwrap());
            // The first record exists already, the second one is new.
            let records = json!([{ "inputs": { "q": 1 }, "outputs": "later" }, { "inputs": { "q": "later" } }]);
            let merged = self.ask("POST", format!("{one}/records"), json!({ "records": records.to_string() })).await;
            assert_eq!((&merged["inserted_count"], &merged["updated_count"]), (&json!(1), &json!(1)), "{merged}");
            self.ask("PATCH", format!("{one}/tags"), json!({ "tags": json!({ "later": "v" }).to_string() })).await;
        }
        for scorer in ["s", "big"] {
            let experiments = self.get(format!("{V3}/scorers/list")).await;
            let of_name = experiments["scorers"].as_array().unwrap().iter().find(|one| one["scorer_name"] == scorer);
            let experiment = of_name.unwrap_or_else(|| panic!("{experiments}"))["experiment_id"].to_string();
            let serialized = json!({ "instructions_judge_pydantic_data": {}, "x": "later" }).to_string();
            let new = json!({ "experiment_id": experiment, "name": scorer, "serialized_scorer": serialized });
            let made = self.ask("POST", format!("{V3}/scorers/register"), new).await;
            assert!(made["version"].as_i64() > Some(1), "{made}");
        }
    }

    async fn users(&self) {
        let of_reader = |more: Value| {
            let mut body = json!({ "username": "reader" });
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            body
        };
        let grant = json!({ "resource_type": "experiment", "resource_id": "0", "permission": "EDIT" });
        self.ask("POST", format!("{V3}/users/permissions/grant"), of_reader(grant)).await;
        let password = json!({ "password": "another password of the table" });
        self.ask("PATCH", format!("{V2}/users/update-password"), of_reader(password)).await;
        let roles = self.get(format!("{V3}/roles/list")).await;
        let role = &of_each(&roles, "roles", "/id")[0];
        self.ask("POST", format!("{V3}/roles/assign"), of_reader(json!({ "role_id": role }))).await;
        let read = self.get(format!("{V3}/users/permissions/list?username=reader")).await;
        assert!(read["permissions"].as_array().unwrap().len() >= 7, "{read}");
        self.ask("DELETE", format!("{V2}/users/delete"), of_reader(json!({}))).await;
        self.ask("PATCH", format!("{V3}/workspaces/{TEAM}"), json!({ "description": "later" })).await;
    }
}
