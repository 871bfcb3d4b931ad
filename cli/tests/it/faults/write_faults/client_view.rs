//! Everything that clients can read of a domain. Lists have to agree with their entities.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use test_site::TestClient;

use super::execution_comparison::difference;

/// What clients read, or an error if a read fails or reads contradict each other.
pub(crate) type View = Result<Value, String>;

struct Reader<'a>(&'a TestClient);

/// Reads everything that a write to this path may have changed.
pub(crate) async fn of(api: &TestClient, path: &str) -> View {
    let reader = Reader(api);
    if path.contains("/datasets/") {
        return reader.evaluation_datasets().await;
    }
    if path.contains("/webhooks") {
        return reader.webhooks().await;
    }
    let experiments = reader
        .list("POST", "experiments/search", json!({ "view_type": "ALL", "max_results": 100 }), "experiments")
        .await?;
    let id = |experiment: &Value| experiment["experiment_id"].clone();
    if path.contains("/traces") {
        return reader.traces(&experiments.iter().map(id).collect::<Vec<_>>()).await;
    }
    if path.contains("/scorers/") {
        let active = experiments.iter().filter(|experiment| experiment["lifecycle_stage"] == "active");
        return reader.scorers(&active.map(id).collect::<Vec<_>>()).await;
    }
    let ids: Vec<_> = experiments.iter().map(id).collect();
    let asked = json!({ "experiment_ids": ids });
    let models = reader.list("POST", "logged-models/search", asked.clone(), "models").await?;
    for model in &models {
        let path = format!("logged-models/{}", text(model, "/info/model_id")?);
        reader.agrees(model, &path, &[], "model").await?;
    }
    if path.contains("/registered-models/") || path.contains("/model-versions/") {
        let mut view = reader.registry().await?;
        view["logged_models"] = models.into();
        return Ok(view);
    }
    for experiment in &experiments {
        let (id, name) = (text(experiment, "/experiment_id")?, text(experiment, "/name")?);
        reader.agrees(experiment, "experiments/get", &[("experiment_id", &id)], "experiment").await?;
        reader.agrees(experiment, "experiments/get-by-name", &[("experiment_name", &name)], "experiment").await?;
    }
    let mut all = asked.clone();
    all["run_view_type"] = "ALL".into();
    let runs = reader.list("POST", "runs/search", all, "runs").await?;
    let mut histories = Map::new();
    for run in &runs {
        let id = text(run, "/info/run_id")?;
        reader.agrees(run, "runs/get", &[("run_id", &id)], "run").await?;
        let metrics: Vec<_> = run["data"]["metrics"].as_array().into_iter().flatten().collect();
        // Only some of the metrics are read, because there may be many, and all are written in the
        // same way.
        for (at, metric) in metrics.iter().enumerate().filter(|(at, _)| *at < 3 || *at + 3 > metrics.len()) {
            let key = text(metric, "/key")?;
            let arguments = json!({ "run_id": id, "metric_key": key });
            let history = reader.list("GET", "metrics/get-history", arguments, "metrics").await?;
            let latest = history.iter().max_by(|a, b| order(a).partial_cmp(&order(b)).unwrap());
            if latest.is_none_or(|latest| order(latest) != order(metric)) {
                return Err(format!("metric {at}: {metric} is not the latest of {history:?}"));
            }
            histories.insert(format!("{id} {key}"), history.into());
        }
    }
    let inputs = reader.read("POST", "/ajax-api/2.0/mlflow/experiments/search-datasets", asked).await?;
    Ok(json!({ "experiments": experiments, "runs": runs, "models": models, "histories": histories, "inputs": inputs }))
}

/// Returns the values by which the latest point is determined.
fn order(point: &Value) -> (Option<i64>, Option<i64>, Option<f64>) {
    (point["step"].as_i64(), point["timestamp"].as_i64(), point["value"].as_f64())
}

fn text(value: &Value, pointer: &str) -> Result<String, String> {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.map(str::to_owned).ok_or_else(|| format!("no {pointer} in {value}"))
}

fn parsed(value: &Value) -> Value {
    value.as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

impl Reader<'_> {
    async fn read(&self, method: &str, path: &str, body: Value) -> View {
        let answer = if method == "GET" {
            let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let texts = body.as_object().into_iter().flatten().flat_map(|(name, value)| {
                let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
                values.iter().map(move |value| (name.as_str(), text(value)))
            });
            let texts: Vec<_> = texts.collect();
            let arguments: Vec<_> = texts.iter().map(|(name, value)| (*name, value.as_str())).collect();
            self.0.get_at(path, &arguments).await
        } else {
            self.0.call_at(method, path, body.to_string()).await
        };
        if answer.status == 200 { Ok(answer.body) } else { Err(format!("{method} {path} {body}: {answer:?}")) }
    }

    /// Reads all pages of a list.
    async fn list(&self, method: &str, path: &str, mut asked: Value, field: &str) -> Result<Vec<Value>, String> {
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/api/2.0/mlflow/{path}") };
        let mut all = Vec::new();
        loop {
            let mut page = self.read(method, &path, asked.clone()).await?;
            // Records are JSON in a string.
            let page_of = if page[field].is_string() { parsed(&page[field]) } else { page[field].take() };
            all.extend(page_of.as_array().cloned().unwrap_or_default());
            match page["next_page_token"].as_str() {
                Some(token) if !token.is_empty() => asked["page_token"] = token.into(),
                _ => return Ok(all),
            }
        }
    }

    /// Checks that a list shows an entity in the same way as the entity's own endpoint.
    async fn agrees(&self, listed: &Value, path: &str, asked: &[(&str, &str)], field: &str) -> Result<(), String> {
        let asked = asked.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))).collect();
        let found = self.read("GET", &format!("/api/2.0/mlflow/{path}"), asked).await?;
        let found = found[field].clone();
        if found == *listed { Ok(()) } else { Err(format!("{path} as listed{}", difference(listed, &found))) }
    }

    async fn evaluation_datasets(&self) -> View {
        let all = "/api/3.0/mlflow/datasets";
        let mut view = Vec::new();
        for dataset in self.list("GET", &format!("{all}/search"), json!({}), "datasets").await? {
            let one = format!("{all}/{}", text(&dataset, "/dataset_id")?);
            let mut found = self.read("GET", &one, json!({})).await?["dataset"].take();
            let mut listed = dataset;
            // Lists do not include the experiments of a dataset.
            for of in [&mut found, &mut listed] {
                of.as_object_mut().unwrap().remove("experiment_ids");
            }
            if found != listed {
                return Err(format!("{one}: {listed} in the list, {found}"));
            }
            let records = self.list("GET", &format!("{one}/records"), json!({}), "records").await?;
            let count = parsed(&found["profile"])["num_records"].as_u64();
            if count.is_some_and(|count| count != records.len() as u64) {
                return Err(format!("{count:?} of {} records", records.len()));
            }
            let experiments = self.read("GET", &format!("{one}/experiment-ids"), json!({})).await?;
            let ids = experiments["experiment_ids"].as_array().cloned().unwrap_or_default();
            // Only some of the experiments are read, because there may be many, and all are written
            // in the same way.
            for experiment in ids.iter().take(3).chain(ids.iter().rev().take(3)) {
                let of = json!({ "experiment_ids": [experiment] });
                let listed = self.list("POST", &format!("{all}/search"), of, "datasets").await?;
                if !listed.iter().any(|listed| listed["dataset_id"] == found["dataset_id"]) {
                    return Err(format!("{experiment} does not list {one}"));
                }
            }
            found["profile"] = parsed(&found["profile"]);
            view.push(json!({ "dataset": found, "records": records, "experiments": experiments }));
        }
        Ok(view.into())
    }

    /// Reads the traces of all experiments. Searches and reads by id must find the same traces,
    /// newest first.
    async fn traces(&self, experiments: &[Value]) -> View {
        let all = "/api/3.0/mlflow/traces";
        let place = |id: &Value| json!({ "mlflow_experiment": { "experiment_id": id } });
        let asked = json!({ "locations": experiments.iter().map(place).collect::<Vec<_>>(), "max_results": 2 });
        let found = self.list("POST", &format!("{all}/search"), asked.clone(), "traces").await?;
        let mut ids: Vec<_> = found.iter().map(|info| text(info, "/trace_id")).collect::<Result<_, _>>()?;
        // Traces with these ids are read as well. Clients have chosen the ids.
        ids.extend((1..=4).map(|number| format!("tr-{number:032x}")));
        let named = self.read("POST", &format!("{all}/batchGetInfos"), json!({ "trace_ids": ids })).await?;
        let named = named["trace_infos"].as_array().cloned().unwrap_or_default();
        if named != found {
            return Err(format!("{named:?} by their ids, {found:?} in a search"));
        }
        let (mut spans, mut whole) = (Map::new(), Vec::new());
        for info in &found {
            let id = text(info, "/trace_id")?;
            let read = self.read("GET", &format!("{all}/{id}"), json!({})).await?;
            if read["trace"]["trace_info"] != *info {
                return Err(format!("{id}{}", difference(info, &read["trace"]["trace_info"])));
            }
            if info["tags"]["mlflow.trace.spansLocation"].is_string() {
                let asked = json!({ "trace_id": id, "allow_partial": "true" });
                let trace = self.read("GET", &format!("{all}/get"), asked).await?["trace"].take();
                spans.insert(id, trace["spans"].clone());
                whole.push(trace);
            }
        }
        if spans.is_empty() {
            return Ok(json!({ "infos": found, "spans": spans }));
        }
        let by_spans = self.traces_by_spans(&asked, &spans).await?;
        let asked = json!({ "trace_ids": spans.keys().collect::<Vec<_>>() });
        let together = self.read("GET", &format!("{all}/batchGet"), asked).await?;
        // Traces whose spans have not arrived are left out.
        whole.retain(|trace| trace["spans"].as_array().is_some_and(|spans| !spans.is_empty()));
        let by_id = |trace: &Value| trace["trace_info"]["trace_id"].to_string();
        whole.sort_by_key(by_id);
        let mut together = together["traces"].as_array().cloned().unwrap_or_default();
        together.sort_by_key(by_id);
        if together != whole {
            return Err(format!("{whole:?} one by one, {together:?} together"));
        }
        Ok(json!({ "infos": found, "spans": spans, "by_spans": by_spans }))
    }

    /// Returns, for each span name, the traces that a search for it finds. After an interrupted
    /// export, the search may miss traces that reads by id find.
    async fn traces_by_spans(&self, asked: &Value, spans: &Map<String, Value>) -> View {
        let all = spans.values().filter_map(Value::as_array).flatten();
        let names: BTreeSet<_> = all.filter_map(|span| span["name"].as_str()).collect();
        let mut found = Map::new();
        for name in names {
            let mut asked = asked.clone();
            asked["filter"] = format!("span.name = '{name}'").into();
            let by_name = self.list("POST", "/api/3.0/mlflow/traces/search", asked, "traces").await?;
            found.insert(name.to_owned(), by_name.iter().map(|info| info["trace_id"].clone()).collect());
        }
        Ok(found.into())
    }

    async fn scorers(&self, experiments: &[Value]) -> View {
        let all = "/api/3.0/mlflow/scorers";
        let mut view = Vec::new();
        for experiment in experiments {
            let listed = json!({ "experiment_id": experiment });
            for scorer in self.list("GET", &format!("{all}/list"), listed, "scorers").await? {
                let named = json!({ "experiment_id": experiment, "name": scorer["scorer_name"] });
                let versions = self.list("GET", &format!("{all}/versions"), named.clone(), "scorers").await?;
                let mut latest = self.read("GET", &format!("{all}/get"), named).await?["scorer"].take();
                let mut listed = scorer.clone();
                // Lists serialize the JSON again.
                for of in [&mut latest, &mut listed] {
                    of["serialized_scorer"] = parsed(&of["serialized_scorer"]);
                }
                if versions.last() != Some(&scorer) || latest != listed {
                    return Err(format!("{scorer} in the list, {latest} latest, {versions:?}"));
                }
                let ids = json!({ "scorer_ids": scorer["scorer_id"] });
                let configs = self.read("GET", &format!("{all}/online-configs"), ids).await?;
                view.push(json!({ "versions": versions, "configs": configs }));
            }
        }
        Ok(view.into())
    }

    async fn webhooks(&self) -> View {
        let webhooks = self.list("GET", "webhooks", json!({}), "webhooks").await?;
        for webhook in &webhooks {
            let path = format!("webhooks/{}", text(webhook, "/webhook_id")?);
            self.agrees(webhook, &path, &[], "webhook").await?;
        }
        Ok(webhooks.into())
    }

    async fn registry(&self) -> View {
        let mut view = Vec::new();
        for model in self.list("GET", "registered-models/search", json!({}), "registered_models").await? {
            let name = text(&model, "/name")?;
            self.agrees(&model, "registered-models/get", &[("name", &name)], "registered_model").await?;
            let of_model = json!({ "filter": format!("name = '{name}'") });
            let versions = self.list("GET", "model-versions/search", of_model, "model_versions").await?;
            for version in &versions {
                let number = text(version, "/version")?;
                let asked = [("name", name.as_str()), ("version", &number)];
                self.agrees(version, "model-versions/get", &asked, "model_version").await?;
            }
            for alias in model["aliases"].as_array().into_iter().flatten() {
                let asked = json!({ "name": name, "alias": alias["alias"] });
                let found = self.read("GET", "/api/2.0/mlflow/registered-models/alias", asked).await?;
                if found["model_version"]["version"] != alias["version"] {
                    return Err(format!("{alias} stands for {found}"));
                }
            }
            let latest = json!({ "name": name });
            let latest = self.read("GET", "/api/2.0/mlflow/registered-models/get-latest-versions", latest).await?;
            view.push(json!({ "model": model, "versions": versions, "latest": latest }));
        }
        let all = self.list("GET", "model-versions/search", json!({}), "model_versions").await?;
        if all.len() != view.iter().map(|model| model["versions"].as_array().map_or(0, Vec::len)).sum::<usize>() {
            return Err(format!("not the versions of these models: {all:?}"));
        }
        Ok(json!({ "registered": view }))
    }
}
