//! Reads everything that a client can find, as a state of the model.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use test_site::TestClient;

use super::operation::{Ids, word};
use super::state::{Dataset, Experiment, Logged, Registered, Run, State, Texts};
use super::{expiry, traces};
use crate::faults::write_faults::client_view;

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Returns the tags or params of an entity, without those that the server sets by itself.
fn texts(entries: &Value) -> Texts {
    let entries = list(entries).map(|entry| (text(&entry["key"]), text(&entry["value"])));
    entries.filter(|(key, _)| !key.starts_with("mlflow.")).collect()
}

/// Returns the tags of an entity in map form, without those that the server sets by itself.
fn texts_by_name(entries: &Value) -> Texts {
    let entries = entries.as_object().into_iter().flatten().map(|(key, value)| (key.clone(), text(value)));
    entries.filter(|(key, _)| !key.starts_with("mlflow.")).collect()
}

/// Returns the number in the name of an entity, such as 2 in `r2`.
fn slot(name: &Value) -> u8 {
    text(name)[1..].parse().unwrap()
}

/// Reads the whole state, and adds the ids of all entities found to `ids`. Entities that are
/// deleted for clients keep their ids.
pub(super) async fn at(api: &TestClient, ids: &mut Ids) -> Result<State, String> {
    let mut state = State::default();
    let tracking = client_view::of(api, "/runs/").await?;
    let mut experiments = BTreeMap::new();
    for found in list(&tracking["experiments"]).filter(|found| found["name"] != "Default") {
        let tags = texts(&found["tags"]);
        let number: u8 = tags["slot"][1..].parse().unwrap();
        experiments.insert(text(&found["experiment_id"]), number);
        let is_deleted = found["lifecycle_stage"] == "deleted";
        let retention = list(&found["tags"]).find(|tag| tag["key"] == traces::RETENTION);
        let retention = retention.map(|tag| expiry::which(tag["value"].as_str().unwrap()));
        state.experiments.insert(number, Experiment { name: text(&found["name"]), is_deleted, tags, retention });
    }
    for found in list(&tracking["runs"]) {
        let (info, data) = (&found["info"], &found["data"]);
        let mut run = Run {
            experiment: experiments[info["experiment_id"].as_str().unwrap()],
            is_deleted: info["lifecycle_stage"] == "deleted",
            is_finished: info["status"] == "FINISHED",
            params: texts(&data["params"]),
            tags: texts(&data["tags"]),
            metrics: BTreeMap::new(),
        };
        for metric in list(&data["metrics"]) {
            let key = text(&metric["key"]);
            let history = &tracking["histories"][format!("{} {key}", text(&info["run_id"]))];
            let point = |point: &Value| (point["step"].as_i64().unwrap(), integer(&point["value"]));
            run.metrics.insert(key, list(history).map(point).collect());
        }
        let number = slot(&info["run_name"]);
        ids.insert(format!("r{number}"), text(&info["run_id"]));
        is_new(state.runs.insert(number, run).is_none(), found)?;
    }
    for found in list(&tracking["models"]) {
        let (info, data) = (&found["info"], &found["data"]);
        let model = Logged {
            experiment: experiments[info["experiment_id"].as_str().unwrap()],
            is_deleted: false,
            is_ready: info["status"] == "LOGGED_MODEL_READY",
            params: texts(&data["params"]),
            tags: texts(&info["tags"]),
        };
        let number = slot(&info["name"]);
        ids.insert(format!("m{number}"), text(&info["model_id"]));
        is_new(state.models.insert(number, model).is_none(), found)?;
    }
    registered(&client_view::of(api, "/registered-models/").await?, &mut state)?;
    datasets(&client_view::of(api, "/datasets/").await?, &experiments, &mut state, ids)?;
    for scorer in list(&client_view::of(api, "/scorers/").await?) {
        for version in list(&scorer["versions"]) {
            let experiment = experiments[&version["experiment_id"].to_string()];
            let serialized: Value = serde_json::from_str(version["serialized_scorer"].as_str().unwrap()).unwrap();
            let versions = state.scorers.entry((experiment, text(&version["scorer_name"]))).or_default();
            versions.insert(u32::try_from(integer(&version["scorer_version"])).unwrap(), text(&serialized["x"]));
        }
    }
    let found = client_view::of(api, "/traces").await?;
    state.traces = traces::at(&found, &experiments, texts_by_name);
    let runs: Vec<_> = state.runs.keys().copied().collect();
    for run in runs {
        for trace in traces::linked(api, &experiments, &ids[&format!("r{run}")]).await? {
            let trace = state.traces.get_mut(&trace).ok_or_else(|| format!("{trace} is linked but was not found"))?;
            trace.runs.insert(run);
        }
    }
    ids.extend(experiments.into_iter().map(|(id, number)| (format!("e{number}"), id)));
    Ok(state)
}

/// Returns an error if an entity was found twice. Two entities of one name mean that one operation
/// has taken effect twice.
fn is_new(is_new: bool, found: &Value) -> Result<(), String> {
    if is_new { Ok(()) } else { Err(format!("there twice: {found}")) }
}

/// Converts a value. All values are whole numbers, which JSON represents as floating-point numbers.
#[expect(clippy::cast_possible_truncation, reason = "the values are small")]
fn integer(value: &Value) -> i64 {
    value.as_f64().unwrap() as i64
}

fn registered(view: &Value, state: &mut State) -> Result<(), String> {
    for found in list(&view["registered"]) {
        let mut model = Registered { tags: texts(&found["model"]["tags"]), ..Registered::default() };
        for version in list(&found["versions"]) {
            let number = text(&version["version"]).parse().unwrap();
            let new = (text(&version["current_stage"]), texts(&version["tags"]));
            is_new(model.versions.insert(number, new).is_none(), version)?;
        }
        for alias in list(&found["model"]["aliases"]) {
            model.aliases.insert(text(&alias["alias"]), text(&alias["version"]).parse().unwrap());
        }
        is_new(state.registered.insert(text(&found["model"]["name"]), model).is_none(), found)?;
    }
    Ok(())
}

fn datasets(view: &Value, experiments: &BTreeMap<String, u8>, state: &mut State, ids: &mut Ids) -> Result<(), String> {
    for found in list(view) {
        let of = &found["dataset"];
        let number = slot(&of["name"]);
        let tags: BTreeMap<String, String> = serde_json::from_str(of["tags"].as_str().unwrap_or("{}")).unwrap();
        let tags = tags.into_iter().filter(|(key, _)| !key.starts_with("mlflow.")).collect();
        let mut dataset = Dataset { tags, ..Dataset::default() };
        // As in MLflow, a dataset also refers to experiments that were removed.
        let there =
            list(&found["experiments"]["experiment_ids"]).filter_map(|id| experiments.get(id.as_str().unwrap()));
        dataset.experiments.extend(there);
        ids.insert(format!("d{number}"), text(&of["dataset_id"]));
        for record in list(&found["records"]) {
            let inputs = u8::try_from(integer(&record["inputs"]["n"])).unwrap();
            ids.insert(format!("d{number}/{inputs}"), text(&record["dataset_record_id"]));
            let outputs = record["outputs"].as_str().map_or_else(|| record["outputs"].to_string(), str::to_owned);
            is_new(dataset.records.insert(inputs, outputs).is_none(), record)?;
        }
        is_new(state.datasets.insert(number, dataset).is_none(), found)?;
    }
    Ok(())
}

/// Returns the numbers of the runs that a search finds.
pub(super) async fn search(api: &TestClient, ids: &Ids, which: u8) -> Result<Vec<u8>, String> {
    let experiments: Vec<_> = ids.iter().filter(|(name, _)| name.starts_with('e')).map(|(_, id)| id).collect();
    let long = format!("tags.k0 = '{}'", word(3));
    let filter = ["params.k0 = 'v1'", "metrics.k0 > 2", "tags.k1 = 'v0'", "attributes.status = 'FINISHED'", &long];
    let asked = json!({ "experiment_ids": experiments, "filter": filter[usize::from(which)] });
    let answer = api.post("runs/search", asked.clone()).await;
    if answer.status != 200 {
        return Err(format!("{asked}: {answer:?}"));
    }
    let mut found: Vec<_> = list(&answer.body["runs"]).map(|run| slot(&run["info"]["run_name"])).collect();
    found.sort_unstable();
    Ok(found)
}

/// Returns the result that [`search`] should have in a state.
pub(super) fn should_find(state: &State, which: u8) -> Vec<u8> {
    let has = |texts: &Texts, key: &str, value: u8| texts.get(key) == Some(&word(value));
    let passes = |run: &Run| match which {
        0 => has(&run.params, "k0", 1),
        1 => run.metrics.get("k0").and_then(|points| points.last()).is_some_and(|(_, value)| *value > 2),
        2 => has(&run.tags, "k1", 0),
        3 => run.is_finished,
        _ => has(&run.tags, "k0", 3),
    };
    let found = state.runs.iter().filter(|(_, run)| !run.is_deleted && passes(run));
    found.map(|(number, _)| *number).collect()
}
