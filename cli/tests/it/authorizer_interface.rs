//! The interface of authorizers: their input, their reads and writes, and the effects of their
//! decisions.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

use access::{
    AccessCheck, Action, AllowedActions, Authorizer, AuthorizerItems, Caller, EntityEvent, Guard, Identity,
    RequestHead, Resource, Restriction, User, Visibility,
};
use artifact_store::ArtifactStore;
use futures::future::BoxFuture;
use key_schema::{Key, ModelKey, Name, Ordinal, access_rows, rows};
use mlflow_api::{ExperimentId, Result, UserName, Workspace};
use serde_json::{Value, json};
use table::{Condition, Item, Table, TableKey, Write};
use test_site::{ROOT, TestAuthorizer, TestClient, TestEnvironment};

use crate::test_server::mounted;

fn ann() -> Identity {
    let user = User { name: user_name(), id: 7, is_admin: false, roles: Vec::new(), version: 1 };
    Identity { caller: Caller::User(Arc::new(user)), ..Identity::anonymous() }
}

fn user_name() -> UserName {
    UserName::named("ann").unwrap()
}

async fn site() -> TestEnvironment {
    let site = TestEnvironment::new().await;
    let store = tracking::store::Store::new(site.table.clone(), ROOT);
    store.experiment_create_default(&Workspace::default()).await.unwrap();
    site
}

async fn api(table: &Table, authorizer: impl Authorizer + 'static) -> TestClient {
    TestClient(mounted(table, ArtifactStore::in_directory(Path::new("/nowhere")), Arc::new(authorizer)).await)
}

fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).unwrap().as_str().unwrap().to_owned()
}

async fn v3(api: &TestClient, method: &str, path: &str, body: Value) -> Value {
    api.call_at(method, &format!("/api/3.0/mlflow/{path}"), body.to_string()).await.ok()
}

/// Returns the key of a user's grant, as written by this test.
fn grant(identity: &Identity, guarded: &Guard) -> Key {
    let Caller::User(user) = &identity.caller else { panic!("the caller is not a user") };
    let user = &user.name;
    match guarded {
        Guard::Experiment(experiment) => rows::ExperimentPermission::key(user, experiment),
        Guard::RegisteredModel(name) => rows::ModelPermission::key(user, &ModelKey::from(name.as_str())),
        Guard::Scorer(experiment, name) => rows::ScorerPermission::key(user, experiment, &Name::from(name.as_str())),
        other => panic!("{other:?}"),
    }
}

fn granting(identity: &Identity, event: EntityEvent<'_>) -> Vec<Write> {
    let put = |guarded| Write::Put(Item::new(grant(identity, guarded)), Condition::Always);
    let delete = |guarded| Write::Delete(grant(identity, guarded), Condition::Always);
    match event {
        EntityEvent::Created { guarded, .. } => vec![put(guarded)],
        EntityEvent::Renamed(old, new) => vec![delete(old), put(new)],
        EntityEvent::Deleted(guarded) => vec![delete(guarded)],
    }
}

async fn grants(site: &TestEnvironment) -> Vec<String> {
    site.dump().await.into_keys().filter(|key| key.starts_with("USER#")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_authorizer_wants_is_written_with_a_creation_a_renaming_and_a_deletion() {
    let site = site().await;
    let judge = TestAuthorizer::of_asks(Visibility::Everything, |_| true).knowing(ann()).writing(granting);
    let api = api(&site.table, judge).await;
    let new = json!({ "name": "e" });
    let experiment = text(&api.post("experiments/create", new.clone()).await.ok(), "/experiment_id");
    let of_experiment = rows::ExperimentPermission::key(&user_name(), &ExperimentId::parse(&experiment).unwrap());
    assert_eq!(grants(&site).await, [of_experiment.text()]);
    // A request that is refused does not write a grant.
    assert_eq!(api.post("experiments/create", new).await.status, 400);
    assert_eq!(grants(&site).await, [of_experiment.text()]);
    let item = &site.dump().await[&rows::Experiment::key(&ExperimentId::parse(&experiment).unwrap()).text()];
    assert_eq!(item["owner"]["S"], "ann");
    api.post("experiments/delete", json!({ "experiment_id": experiment })).await.ok();
    assert_eq!(grants(&site).await, Vec::<String>::new());

    let of_model = |name: &str| rows::ModelPermission::key(&user_name(), &ModelKey::from(name)).text();
    api.post("registered-models/create", json!({ "name": "m" })).await.ok();
    assert_eq!(grants(&site).await, [of_model("m")]);
    assert_eq!(api.post("registered-models/create", json!({ "name": "m" })).await.status, 400);
    api.post("registered-models/rename", json!({ "name": "m", "new_name": "n" })).await.ok();
    assert_eq!(grants(&site).await, [of_model("n")]);
    api.call("DELETE", "registered-models/delete", json!({ "name": "n" })).await.ok();
    assert_eq!(grants(&site).await, Vec::<String>::new());

    let named = json!({ "experiment_id": "0", "name": "s" });
    let mut scorer = named.clone();
    scorer["serialized_scorer"] = json!({ "instructions_judge_pydantic_data": {} }).to_string().into();
    for _ in 0..2 {
        v3(&api, "POST", "scorers/register", scorer.clone()).await;
        assert_eq!(grants(&site).await.len(), 1);
    }
    v3(&api, "DELETE", "scorers/delete", named).await;
    assert_eq!(grants(&site).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authorizer_that_looks_is_told_what_the_table_says_of_guards() {
    let site = site().await;
    let asks = Arc::<Mutex<Vec<AccessCheck>>>::default();
    let kept = Arc::clone(&asks);
    let judge = TestAuthorizer::of_asks(Visibility::Everything, move |ask| {
        kept.lock().unwrap().push(ask.clone());
        // Only administrators may learn that an entity does not exist.
        !matches!(ask.guard, Guard::Absent(_))
    });
    let api = api(&site.table, judge.knowing(ann()).looking()).await;
    let asked = || std::mem::take(&mut *asks.lock().unwrap());
    let tags = json!([{ "key": "mlflow.prompt.is_prompt", "value": "true" }]);
    api.post("registered-models/create", json!({ "name": "p", "tags": tags })).await.ok();
    assert!(asked().iter().all(|ask| ask.kind == Resource::Prompt && ask.stored.is_none()));
    api.get("registered-models/get", &[("name", "p")]).await.ok();
    let of_prompt = asked();
    let [ask, shown @ ..] = of_prompt.as_slice() else { panic!("{of_prompt:?}") };
    let stored = ask.stored.as_ref().unwrap();
    assert_eq!((ask.action, ask.kind, stored.is_prompt), (Action::Read, Resource::Prompt, true));
    assert_eq!((stored.owner.as_deref(), stored.id.is_some()), (Some("ann"), true));
    assert_eq!(stored.workspace, Workspace::default());
    // The versions of a prompt belong to the prompt, and refer to runs.
    let shown: Vec<_> = shown.iter().map(|ask| (ask.action, ask.kind)).collect();
    assert_eq!(shown, [(Action::Show, Resource::PromptVersion), (Action::Show, Resource::Run)]);

    // The guard of a dataset is its experiment. A dataset without experiments is its own guard.
    let experiment = Guard::Experiment(ExperimentId::DEFAULT);
    let new = json!({ "name": "d", "experiment_ids": ["0"] });
    let dataset = text(&v3(&api, "POST", "datasets/create", new).await, "/dataset/dataset_id");
    asked();
    v3(&api, "GET", &format!("datasets/{dataset}"), json!({})).await;
    let guards: Vec<_> = asked().into_iter().map(|ask| (ask.kind, ask.guard)).collect();
    assert_eq!(guards, [(Resource::EvaluationDataset, experiment.clone())]);
    v3(&api, "POST", &format!("datasets/{dataset}/remove-experiments"), json!({ "experiment_ids": ["0"] })).await;
    asked();
    v3(&api, "GET", &format!("datasets/{dataset}"), json!({})).await;
    assert!(matches!(asked().as_slice(), [AccessCheck { guard: Guard::EvaluationDataset(_), .. }]));

    // A request may also refer to entities that it does not change or return.
    let run = api.post("runs/create", json!({ "experiment_id": "0" })).await.ok();
    let run = text(&run, "/run/info/run_id");
    let model = api.post("logged-models", json!({ "experiment_id": "0", "name": "m" })).await.ok();
    let model = text(&model, "/model/info/model_id");
    asked();
    api.post("runs/outputs", json!({ "run_id": run, "models": [{ "model_id": model, "step": 1 }] })).await.ok();
    let kinds: Vec<_> = asked().into_iter().map(|ask| (ask.action, ask.kind, ask.guard)).collect();
    let both = [Resource::Run, Resource::LoggedModel].map(|kind| (Action::Update, kind, experiment.clone()));
    assert_eq!(kinds, both);

    // Missing entities are refused like entities that the caller may not read, except where MLflow
    // distinguishes them.
    let nowhere = "0123456789abcdef0123456789abcdef";
    let outputs = json!({ "run_id": run, "models": [{ "model_id": format!("m-{nowhere}"), "step": 1 }] });
    assert_eq!(api.post("runs/outputs", outputs).await.status, 403);
    assert_eq!(api.get("runs/get", &[("run_id", nowhere)]).await.status, 403);
    let version = json!({ "name": "p", "source": "s3://bucket/else", "run_id": "" });
    assert_eq!(api.post("model-versions/create", version).await.status, 403);
    assert_eq!(api.get("experiments/get-by-name", &[("experiment_name", "nowhere")]).await.status, 404);
    let bulk = "/ajax-api/2.0/mlflow/metrics/get-history-bulk";
    assert_ne!(api.get_at(bulk, &[("run_id", nowhere), ("metric_key", "k")]).await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_that_only_read_write_nothing() {
    let site = site().await;
    let identity = Identity {
        restriction: Restriction { actions: AllowedActions::Read, ..Restriction::default() },
        ..Identity::anonymous()
    };
    let api = api(&site.table, TestAuthorizer::of_asks(Visibility::Everything, |_| true).knowing(identity)).await;
    let before = site.dump().await;
    assert_eq!(api.post("runs/create", json!({ "experiment_id": "0" })).await.status, 403);
    assert_eq!(api.post("experiments/create", json!({ "name": "e" })).await.status, 403);
    assert!(site.changes(&before).await.is_empty());
    api.get("experiments/get", &[("experiment_id", "0")]).await.ok();
    api.post("runs/search", json!({ "experiment_ids": ["0"] })).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_hold_what_is_visible_and_nothing_where_nothing_may_be_listed() {
    let site = site().await;
    let all = api(&site.table, TestAuthorizer::of_asks(Visibility::Everything, |_| true)).await;
    let mut ids = Vec::new();
    for name in ["a", "b"] {
        let id = text(&all.post("experiments/create", json!({ "name": name })).await.ok(), "/experiment_id");
        let mut scorer = json!({ "experiment_id": id, "name": name });
        scorer["serialized_scorer"] = json!({ "instructions_judge_pydantic_data": {} }).to_string().into();
        v3(&all, "POST", "scorers/register", scorer).await;
        ids.push(id);
    }
    let found = async |api: &TestClient| {
        let found = api.post("experiments/search", json!({ "max_results": 9 })).await.ok();
        let names = found["experiments"].as_array().into_iter().flatten().map(|one| text(one, "/name"));
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        let scorers = v3(api, "GET", "scorers/list", json!({})).await;
        let scorers = scorers["scorers"].as_array().map_or(0, Vec::len);
        (names, scorers)
    };
    assert_eq!(found(&all).await, (["Default", "a", "b"].map(str::to_owned).to_vec(), 2));
    let one = Guard::Experiment(ExperimentId::parse(&ids[0]).unwrap());
    let few = Visibility::Only(Arc::new(HashSet::from([one])));
    let some = api(&site.table, TestAuthorizer::of_asks(few, |_| true)).await;
    assert_eq!(found(&some).await, (vec!["a".to_owned()], 1));
    let none = TestAuthorizer::of_asks(Visibility::Everything, |ask| !matches!(ask.guard, Guard::Workspace(_)));
    assert_eq!(found(&api(&site.table, none).await).await, (Vec::new(), 0));
}

/// Authorizer that allows every access if another table contains an item.
struct OfAnotherTable(u32);

impl OfAnotherTable {
    fn key(&self) -> TableKey {
        TableKey { table: Some("access".to_owned()), key: access_rows::ListedRole::key(&Ordinal(self.0)) }
    }
}

impl Authorizer for OfAnotherTable {
    fn authenticate<'a>(&'a self, arrived: &'a RequestHead) -> BoxFuture<'a, Result<Identity>> {
        assert_eq!((arrived.path.as_str(), arrived.method.as_str()), ("/api/2.0/mlflow/runs/get", "GET"));
        Box::pin(async { Ok(ann()) })
    }

    fn read<'a>(
        &'a self,
        identity: Identity,
        table: &'a Table,
        guards: &'a [Guard],
    ) -> BoxFuture<'a, Result<(Identity, AuthorizerItems)>> {
        // The guards are the run's experiment, and the guard that decides whether logged models are
        // shown.
        assert_eq!((guards.len(), &identity), (2, &ann()));
        let keys = guards
            .iter()
            .filter_map(|guard| guard.key(&identity.workspace))
            .map(TableKey::here)
            .chain([self.key()])
            .collect::<Vec<_>>();
        Box::pin(async move { Ok((identity, table.get_together(&keys).await?)) })
    }

    fn authorize<'a>(
        &'a self,
        _: &'a Identity,
        asked: &'a [AccessCheck],
        read: &'a AuthorizerItems,
    ) -> BoxFuture<'a, Result<Vec<bool>>> {
        Box::pin(async move { Ok(vec![read.contains_key(&self.key()); asked.len()]) })
    }

    fn visibility<'a>(&'a self, _: &'a Identity) -> BoxFuture<'a, Result<Visibility>> {
        Box::pin(async { Ok(Visibility::nothing()) })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn guards_and_what_an_authorizer_wants_are_read_with_one_request() {
    let site = site().await;
    let admitting = api(&site.faulty(), TestAuthorizer::of_asks(Visibility::Everything, |_| true)).await;
    let new = admitting.post("runs/create", json!({ "experiment_id": "0" })).await.ok();
    let run = text(&new, "/run/info/run_id");
    let access = Table::new(site.engine.client(), "access");
    access.create_access_if_missing().await.unwrap();
    let known = OfAnotherTable(7);
    access.put(Item::new(known.key().key), &Condition::Always).await.unwrap();
    let calls = async |api: &TestClient, expected: u16| {
        site.faults.reset_calls();
        assert_eq!(api.get("runs/get", &[("run_id", &run)]).await.status, expected);
        let calls = site.faults.all_calls();
        let of =
            |name: &str| calls.iter().filter(|(call, _)| call.contains(name)).map(|(_, count)| *count).sum::<u64>();
        (calls.iter().map(|(_, count)| *count).sum::<u64>(), of("BatchGetItem"))
    };
    let (all, batches) = calls(&admitting, 200).await;
    assert_eq!(calls(&api(&site.faulty(), known).await, 200).await, (all + 1, batches + 1));
    assert_eq!(calls(&api(&site.faulty(), OfAnotherTable(8)).await, 403).await, (1, 1));
}
