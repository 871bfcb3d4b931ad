//! Lists, searches, queries and lookups: all requests whose response may contain several entities,
//! or an entity that the request does not identify by its id.

use serde_json::{Value, json};

use super::entity::{Entity, Kind, Place};
use super::test_servers::{Asked, Ids, location};

/// The condition for a response to a list as a whole. If it is not met, the list may be refused,
/// and must not show anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// No condition: the list is shown to every caller, or only refused to those who may not read
    /// anything in it.
    Anybody,
    /// The caller may read the given entities, to which the request refers.
    Readers(Vec<Entity>),
    /// The caller is an administrator of the server.
    Administrators,
    /// The caller may filter the list by entities of another kind, such as traces by their
    /// feedback. The test does not predict whether the caller may, so the list may also be refused.
    Selector,
}

/// A request for a list.
#[derive(Clone, Debug)]
pub(super) struct List {
    /// The method and the canonical path, and the field for GraphQL.
    pub(super) route: &'static str,
    pub(super) asked: Asked,
    pub(super) scope: Scope,
    pub(super) shows: Vec<Place>,
}

impl List {
    /// Returns the list with a condition.
    fn within(self, scope: Scope) -> Self {
        Self { scope, ..self }
    }
}

/// Creates a request to a route, with a query that is appended to the path, or with a body.
fn list(route: &'static str, query: &str, body: Value, shows: &[Place]) -> List {
    let (method, path) = route.split_once(' ').unwrap();
    let path = format!("{path}{query}");
    List { route, asked: Asked { method, path, body }, scope: Scope::Anybody, shows: shows.to_vec() }
}

/// Creates a lookup of an entity by a path that contains ids.
fn at(route: &'static str, path: String, shows: &[Place]) -> List {
    List { asked: Asked::get(path), ..list(route, "", Value::Null, shows) }
}

fn readers(kind: Kind, ids: &[&String]) -> Scope {
    Scope::Readers(ids.iter().map(|id| (kind, (*id).clone())).collect())
}

/// Returns every list in a workspace. `foreign` is an experiment in another workspace.
pub(super) fn lists(workspace: &str, ids: &Ids, foreign: &str) -> Vec<List> {
    let parts = [of_experiments(ids), of_runs(ids, foreign), of_traces(ids), of_registry(ids), of_datasets(ids)];
    let more = [of_scorers(ids, foreign), of_files(ids), of_roles(workspace, ids), of_graphql(ids, foreign)];
    parts.into_iter().chain(more).flatten().chain(of_mcp_servers()).chain(of_skills()).collect()
}

fn of_experiments(ids: &Ids) -> Vec<List> {
    const SEARCH: &str = "POST /api/2.0/mlflow/experiments/search";
    let all = [(Kind::Experiment, "experiments.*")];
    let search = |body: Value| list(SEARCH, "", body, &all);
    let lookup = "GET /api/2.0/mlflow/experiments/get-by-name";
    vec![
        list("GET /api/2.0/mlflow/experiments/search", "?max_results=100", Value::Null, &all),
        search(json!({ "max_results": 100 })),
        search(json!({ "max_results": 100, "view_type": "ALL" })),
        search(json!({ "max_results": 100, "view_type": "DELETED_ONLY" })),
        search(json!({ "max_results": 100, "filter": "name LIKE 'e%'" })),
        search(json!({ "max_results": 100, "filter": "name = 'e1'", "view_type": "ALL" })),
        search(json!({ "max_results": 100, "order_by": ["last_update_time ASC"] })),
        search(json!({ "max_results": 100, "order_by": ["name ASC"] })),
        list(lookup, "?experiment_name=e1", Value::Null, &[(Kind::Experiment, "experiment")]),
        list(lookup, "?experiment_name=gone", Value::Null, &[(Kind::Experiment, "experiment")]),
        // Lists the experiments of a dataset.
        at(
            "GET /api/3.0/mlflow/datasets/{dataset_id}/experiment-ids",
            format!("/api/3.0/mlflow/datasets/{}/experiment-ids", ids["both"]),
            &[(Kind::Experiment, "experiment_ids.*")],
        ),
    ]
}

fn of_runs(ids: &Ids, foreign: &str) -> Vec<List> {
    let (e1, e2) = (&ids["e1"], &ids["e2"]);
    let runs = |body: Value| list("POST /api/2.0/mlflow/runs/search", "", body, &[(Kind::Run, "runs.*")]);
    let models =
        |body: Value| list("POST /api/2.0/mlflow/logged-models/search", "", body, &[(Kind::LoggedModel, "models.*")]);
    vec![
        runs(json!({ "experiment_ids": [e1, e2, foreign], "run_view_type": "ALL" })),
        runs(json!({ "experiment_ids": [e1] })),
        runs(json!({ "experiment_ids": [e1, e2], "run_view_type": "DELETED_ONLY" })),
        runs(json!({ "experiment_ids": [e1, e2], "filter": "metrics.k > 0", "order_by": ["metrics.k ASC"] })),
        runs(json!({ "experiment_ids": [e1, e2], "filter": format!("attributes.run_id = '{}'", ids["r2"]) })),
        models(json!({ "experiment_ids": [e1, e2, foreign] })),
        models(json!({ "experiment_ids": [e2], "filter": "name = 'l'" })),
        models(json!({ "experiment_ids": [e1], "order_by": [{ "field_name": "creation_timestamp" }] })),
    ]
}

fn of_traces(ids: &Ids) -> Vec<List> {
    let (e1, e2, t1, t2) = (&ids["e1"], &ids["e2"], &ids["t1"], &ids["t2"]);
    let both = || readers(Kind::Experiment, &[e1, e2]);
    let whole = [(Kind::Trace, "traces.*"), (Kind::Assessment, "traces.*.assessments.*")];
    let nested = [(Kind::Trace, "traces.*.trace_info"), (Kind::Assessment, "traces.*.trace_info.assessments.*")];
    let infos = [(Kind::Trace, "trace_infos.*"), (Kind::Assessment, "trace_infos.*.assessments.*")];
    let one = [(Kind::Trace, "trace.trace_info"), (Kind::Assessment, "trace.trace_info.assessments.*")];
    let search = |body: Value| list("POST /api/3.0/mlflow/traces/search", "", body, &whole);
    let by_feedback = json!({ "locations": [location(e1)], "filter": "feedback.f = 'true'" });
    let v2 = format!("?experiment_ids={e1}&experiment_ids={e2}");
    vec![
        search(json!({ "locations": [location(e1)] })),
        search(json!({ "locations": [location(e1), location(e2)] })).within(both()),
        search(by_feedback).within(Scope::Selector),
        list("GET /api/2.0/mlflow/traces", &v2, Value::Null, &[(Kind::Trace, "traces.*")]).within(both()),
        list("GET /api/3.0/mlflow/traces/batchGet", &format!("?trace_ids={t1}&trace_ids={t2}"), Value::Null, &nested)
            .within(readers(Kind::Trace, &[t1, t2])),
        list("POST /api/3.0/mlflow/traces/batchGetInfos", "", json!({ "trace_ids": [t1, t2] }), &infos)
            .within(readers(Kind::Trace, &[t1, t2])),
        at("GET /api/3.0/mlflow/traces/{trace_id}", format!("/api/3.0/mlflow/traces/{t1}"), &one),
        list("GET /api/3.0/mlflow/traces/get", &format!("?trace_id={t2}&allow_partial=true"), Value::Null, &one),
    ]
}

fn of_registry(ids: &Ids) -> Vec<List> {
    const MODELS: &str = "GET /api/2.0/mlflow/registered-models/search";
    const VERSIONS: &str = "GET /api/2.0/mlflow/model-versions/search";
    const PROMPTS: &str = "tags.%60mlflow.prompt.is_prompt%60%3D%27true%27";
    let models = |query: &str| {
        let shows = [(Kind::Model, "registered_models.*"), (Kind::Version, "registered_models.*.latest_versions.*")];
        list(MODELS, query, Value::Null, &shows)
    };
    let versions =
        |route: &'static str, query: &str| list(route, query, Value::Null, &[(Kind::Version, "model_versions.*")]);
    let mut all = vec![
        models(""),
        models(&format!("?filter={PROMPTS}")),
        models("?order_by=last_updated_timestamp%20DESC"),
        models("?filter=name%20LIKE%20%27m%25%27"),
        versions(VERSIONS, ""),
        versions(VERSIONS, &format!("?filter={PROMPTS}")),
        versions(VERSIONS, "?filter=name%3D%27m1%27"),
        versions(VERSIONS, "?order_by=creation_timestamp%20DESC"),
        versions(VERSIONS, &format!("?filter=run_id%3D%27{}%27", ids["r1"])).within(Scope::Selector),
    ];
    for name in ["m1", "p1"] {
        let latest = "GET /api/2.0/mlflow/registered-models/get-latest-versions";
        let query = format!("?name={name}");
        let embedded = [(Kind::Model, "registered_model"), (Kind::Version, "registered_model.latest_versions.*")];
        all.extend([
            versions(latest, &query),
            list(
                "POST /api/2.0/mlflow/registered-models/get-latest-versions",
                "",
                json!({ "name": name }),
                &[(Kind::Version, "model_versions.*")],
            ),
            list("GET /api/2.0/mlflow/registered-models/get", &query, Value::Null, &embedded),
            list(
                "GET /api/2.0/mlflow/registered-models/alias",
                &format!("{query}&alias=a"),
                Value::Null,
                &[(Kind::Version, "model_version")],
            ),
        ]);
    }
    all
}

fn of_datasets(ids: &Ids) -> Vec<List> {
    let (e1, e2) = (&ids["e1"], &ids["e2"]);
    let of = |experiments: &[&String]| readers(Kind::Experiment, experiments);
    let shows = [(Kind::Dataset, "datasets.*")];
    let search = |body: Value| list("POST /api/3.0/mlflow/datasets/search", "", body, &shows);
    let get = |query: String| list("GET /api/3.0/mlflow/datasets/search", &query, Value::Null, &shows);
    vec![
        search(json!({ "experiment_ids": [e1] })).within(of(&[e1])),
        search(json!({ "experiment_ids": [e2], "filter_string": "name LIKE '%'" })).within(of(&[e2])),
        search(json!({ "experiment_ids": [e1, e2], "order_by": ["last_update_time ASC"] })).within(of(&[e1, e2])),
        search(json!({ "experiment_ids": [e1, "no id"] })).within(of(&[e1])),
        search(json!({ "experiment_ids": ["no id"] })).within(Scope::Administrators),
        // An experiment that does not exist.
        search(json!({ "experiment_ids": ["999999999"] })),
        search(json!({})).within(Scope::Administrators),
        get(format!("?experiment_ids={e2}")).within(of(&[e2])),
    ]
}

fn of_scorers(ids: &Ids, foreign: &str) -> Vec<List> {
    const LIST: &str = "GET /api/3.0/mlflow/scorers/list";
    let shows = [(Kind::Scorer, "scorers.*"), (Kind::ScorerVersion, "scorers.*")];
    let (e1, e2) = (&ids["e1"], &ids["e2"]);
    let several = format!("?experiment_ids={e1}&experiment_ids={e2}&experiment_ids={foreign}");
    let of_experiments = |experiment: &String| {
        let versions = "GET /api/3.0/mlflow/scorers/versions";
        list(versions, &format!("?experiment_id={experiment}&name=s"), Value::Null, &shows)
    };
    vec![
        list(LIST, "", Value::Null, &shows),
        list(LIST, &several, Value::Null, &shows),
        list(LIST, &format!("?experiment_id={e1}"), Value::Null, &shows).within(readers(Kind::Experiment, &[e1])),
        of_experiments(e1),
        of_experiments(e2),
    ]
}

fn of_mcp_servers() -> Vec<List> {
    const SEARCH: &str = "GET /api/3.0/mlflow/mcp-servers";
    const ENDPOINTS: &str = "GET /api/3.0/mlflow/mcp-servers/endpoints";
    let servers =
        [(Kind::McpServer, "mcp_servers.*"), (Kind::McpVersion, "mcp_servers.*.access_endpoints.*.resolved_version")];
    let endpoints = [(Kind::McpVersion, "mcp_access_endpoints.*.resolved_version")];
    let one = "/api/3.0/mlflow/mcp-servers/com.example/s1";
    let status = "?filter_string=status%20%3D%20%27active%27";
    vec![
        list(SEARCH, "", Value::Null, &servers),
        list(SEARCH, "?order_by=created_at%20DESC", Value::Null, &servers),
        list(SEARCH, status, Value::Null, &servers),
        list(ENDPOINTS, "", Value::Null, &endpoints),
        list(ENDPOINTS, status, Value::Null, &endpoints).within(Scope::Selector),
        at(
            "GET /api/3.0/mlflow/mcp-servers/{name}/versions",
            format!("{one}/versions"),
            &[(Kind::McpVersion, "mcp_server_versions.*")],
        ),
        at("GET /api/3.0/mlflow/mcp-servers/{name}/endpoints", format!("{one}/endpoints"), &endpoints),
        // A server contains the versions of its access endpoints.
        at(
            "GET /api/3.0/mlflow/mcp-servers/{name}",
            one.to_owned(),
            &[(Kind::McpVersion, "access_endpoints.*.resolved_version")],
        ),
    ]
}

fn of_skills() -> Vec<List> {
    const SEARCH: &str = "GET /api/3.0/mlflow/skills";
    let skills = [(Kind::Skill, "skills.*")];
    let versions = [(Kind::SkillVersion, "skill_versions.*")];
    let of = |path: &'static str, skill: &str| at(path, format!("/api/3.0/mlflow/skills/{skill}/versions"), &versions);
    vec![
        list(SEARCH, "", Value::Null, &skills),
        list(SEARCH, "?order_by=created_at%20DESC", Value::Null, &skills),
        list(SEARCH, "?filter_string=status%20%3D%20%27active%27", Value::Null, &skills),
        of("GET /api/3.0/mlflow/skills/{name}/versions", "k2"),
        of("GET /api/3.0/mlflow/skills/@{organization}/{name}/versions", "@acme/k1"),
    ]
}

/// Directories of artifacts, which are named after the entities that they belong to.
fn of_files(ids: &Ids) -> Vec<List> {
    let e1 = &ids["e1"];
    let directory = |path: String, kind: Kind| {
        let query = format!("?path={path}");
        list("GET /api/2.0/mlflow-artifacts/artifacts", &query, Value::Null, &[(kind, "files.*.path")])
    };
    vec![
        directory(e1.clone(), Kind::Run),
        directory(format!("{e1}/models"), Kind::LoggedModel),
        directory(format!("{e1}/traces"), Kind::Trace),
    ]
}

fn of_roles(workspace: &str, ids: &Ids) -> Vec<List> {
    let roles = [(Kind::Role, "roles.*")];
    let of = |query: &str| list("GET /api/3.0/mlflow/roles/list", query, Value::Null, &roles);
    let grants = "GET /api/3.0/mlflow/roles/permissions/list";
    let of_role = format!("?role_id={}", ids["role"]);
    vec![
        of(&format!("?workspace={workspace}")),
        of("").within(Scope::Administrators),
        list(grants, &of_role, Value::Null, &[(Kind::Role, "role_permissions.*")]),
    ]
}

/// Returns the request for the list of workspaces, which is the same for every workspace.
pub(super) fn of_workspaces() -> List {
    list("GET /api/3.0/mlflow/workspaces", "", Value::Null, &[(Kind::Workspace, "workspaces.*")])
}

fn of_graphql(ids: &Ids, foreign: &str) -> Vec<List> {
    let (e1, e2, r1) = (&ids["e1"], &ids["e2"], &ids["r1"]);
    let query = |route: &'static str, text: String, shows: &[Place]| {
        let asked = Asked::post("/graphql", json!({ "query": text }));
        List { asked, ..list(route, "", Value::Null, shows) }
    };
    let all = format!("input: {{ experimentIds: [\"{e1}\", \"{e2}\", \"{foreign}\"] }}");
    let one = format!("input: {{ runId: \"{r1}\" }}");
    let of_run = || readers(Kind::Run, &[r1]);
    let search = "mlflowSearchRuns";
    let found = |text: String| {
        query("POST /graphql Query.mlflowSearchRuns", text, &[(Kind::Run, "data.mlflowSearchRuns.runs.*")])
    };
    let version = "{ name version }";
    let experiment =
        format!("{{ mlflowGetExperiment(input: {{ experimentId: \"{e1}\" }}) {{ experiment {{ experimentId }} }} }}");
    let shows_experiment = [(Kind::Experiment, "data.mlflowGetExperiment.experiment")];
    let get = list("GET /graphql Query.mlflowGetExperiment", "", Value::Null, &shows_experiment);
    vec![
        found(format!("{{ {search}({all}) {{ runs {{ info {{ runId }} }} }} }}")),
        query(
            "POST /graphql Mutation.mlflowSearchRuns",
            format!("mutation {{ {search}({all}) {{ runs {{ info {{ runId }} }} }} }}"),
            &[(Kind::Run, "data.mlflowSearchRuns.runs.*")],
        ),
        query(
            "POST /graphql Query.mlflowGetRun",
            format!("{{ mlflowGetRun({one}) {{ run {{ info {{ runId }} }} }} }}"),
            &[(Kind::Run, "data.mlflowGetRun.run")],
        ),
        query(
            "POST /graphql MlflowRunExtension.experiment",
            format!("{{ mlflowGetRun({one}) {{ run {{ experiment {{ experimentId }} }} }} }}"),
            &[(Kind::Experiment, "data.mlflowGetRun.run.experiment")],
        )
        .within(of_run()),
        query(
            "POST /graphql MlflowRunExtension.modelVersions",
            format!("{{ mlflowGetRun({one}) {{ run {{ modelVersions {version} }} }} }}"),
            &[(Kind::Version, "data.mlflowGetRun.run.modelVersions.*")],
        )
        .within(of_run()),
        query(
            "POST /graphql Query.mlflowSearchModelVersions",
            format!("{{ mlflowSearchModelVersions(input: {{}}) {{ modelVersions {version} }} }}"),
            &[(Kind::Version, "data.mlflowSearchModelVersions.modelVersions.*")],
        ),
        query("POST /graphql Query.mlflowGetExperiment", experiment.clone(), &shows_experiment),
        List { asked: Asked { method: "GET", ..Asked::post("/graphql", json!({ "query": experiment })) }, ..get },
    ]
}
