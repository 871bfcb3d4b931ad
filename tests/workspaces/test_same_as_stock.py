"""Compares the responses of stock MLflow and this project's server to sequences of requests about
workspaces and in them: status, headers and body.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from tests.workspaces.world import V2, V3, WORKSPACES, Accepted, Pair, Step, ask, both, proxied

pytestmark = pytest.mark.xdist_group("workspaces beside stock")

#: Differences that are accepted in one or several sequences, with the reason.
_TAKEN = Accepted(".*", "400 .*already exists. Error: <database error>.*", r"400 .*already exists\..*", "stock MLflow quotes its database")
_HISTORY = Accepted(
    ".*(get-history|GetMetricHistoryBulkInterval).*", ".*Run with id=.* not found.*", "200 .*", "a run that does not exist has no points, with or without workspaces"
)
_MALFORMED = Accepted("'nothing' .*", ".*Workspace 'nothing' not found.*", "400 .*INVALID_PARAMETER_VALUE.*", "malformed requests are refused before anything is read")
#: In this server, entities of other workspaces do not exist.
_OF_OTHERS = [
    _HISTORY,
    Accepted(".*/link-to-run .*", "404 .*Run with id=.*", "200 {}", "nothing is linked to a run that does not exist"),
    Accepted(".* DELETE .*/assessments/.*", "404 .*", "200 {}", "deleting an assessment that does not exist is not an error"),
    Accepted(".* DELETE .*/tags .*", "404 .*Trace with ID.*", "404 .*No trace tag with key.*", "both report that it does not exist"),
    Accepted(".*/delete-traces .*", '200 {"traces_deleted": 0}', "404 .*No Experiment with id=.*", "the experiment does not exist"),
    Accepted(".*/datasets/.*/records .*", "404 .*Dataset .*", "400 .*Evaluation dataset with id.*", "same response as without workspaces, for a dataset that does not exist"),
    Accepted(".*/add-experiments .*", "404 .*", "404 .*No Experiment with id=.*", "both report that it does not exist"),
    Accepted(r".*GET .*/datasets/\$data./records", "500 <!doctype html>.*", "200 .*", "stock MLflow crashes for records of a dataset that does not exist"),
]
ACCEPTED: dict[str, list[Accepted]] = {
    "routes": [
        _TAKEN,
        Accepted(".*GET .*/workspaces(.a=b)?", "200 .*xxxx.*", "200 .*", "the workspace with the longest description was not created (see below)"),
        Accepted(
            ".* (POST|PATCH) .*b'nonsense'",
            "400 .*(Missing value for required parameter 'name'|must have at least one key).*",
            "400 .*The request body is not JSON.*",
            "a body that is not JSON is not an empty one",
        ),
        Accepted(".*GET .*/server-info", '200 .*"gateway": true.*', '200 .*"gateway": false.*', "this server has no AI gateway"),
        Accepted(".*", ".* Set the MLFLOW_ALLOWED_HOST_ADDRESSED_ARTIFACT_SCHEMES environment .*", "400 .*cannot use the .*", "this server has no such environment variable"),
        Accepted(r".* (POST|PATCH) [^ ]* \[.*", "500 <!doctype html>.*", '400 .*"INVALID_PARAMETER_VALUE".*', "a body that is not an object crashes stock MLflow"),
        Accepted(".*'name': 'text-2'.*", "201 .*", "400 .*The description of a workspace has at most 5000 bytes.*", "the size of an item is limited"),
        Accepted(".*GET .*/a%2Fb", "404 <!doctype html>.*", "400 .*must match the pattern.*", "stock MLflow treats %2F as the end of a name"),
    ],
    "headers": [
        _MALFORMED,
        Accepted("'(nothing|A)' GET (/health|.*/nothing)", '40. .*"Workspace .*', "200 OK|404 <!doctype html>.*", "paths that do not belong to a workspace do not read the table"),
    ],
    "unknown": [
        _TAKEN,
        _MALFORMED,
        Accepted("'nothing' POST /graphql .*", ".*Workspace 'nothing' not found.*", "200 .*", "the GraphQL response contains the errors of the underlying endpoints"),
    ],
    "names": [_TAKEN, _HISTORY],
    "by id": [
        _TAKEN,
        *_OF_OTHERS,
        Accepted(".*tr-c{32}.*experimentd.*|'ids-d' POST /v1/traces .*", "404 .*no longer exists.*|200 .*", "400 .*does not belong to experiment.*", "a trace belongs to a single experiment"),
        Accepted("'ids-.' GET .*/model-versions/search .*", "200 .*", '200 .*aliases.*', "stock MLflow's search leaves out the aliases of versions, which reading a version shows"),
        Accepted("'ids-c' GET .*/traces/get .*", "500 .*not stored in tracking store.*", "400 .*not stored in tracking store.*", "this is a client error"),
        Accepted(r".*model-versions/create.*'model_id': '\$loggedd'.*", "500 .*", "400 .*must identify the resource that contains the source.*", "this is a client error"),
    ],
    "artifacts": [
        Accepted("'files-f' GET .*/workspaces/files-f", '400 {"detail": .*', "400 .*refers to a directory.*", "all errors of this server have the same format"),
        Accepted(r".*/upload-artifact.*", "200 ", "200 ", "stock MLflow declares an empty body as JSON"),
        Accepted(r".*\$experimentf.*", "404 .*No such artifact.*|200 {}", "404 .*No Experiment with id=.*", "the experiment belongs to another workspace"),
        Accepted(r".*(/workspaces//a|\./).*", ".*", "400 .*Artifact path targets workspace.*|200 .*", "paths are normalized like in the artifact store"),
        Accepted("None GET .*'path': 'workspaces'}", "200 .*files-g.*", "400 .*must include a workspace name.*", "the names of workspaces are not public"),
    ],
    "deletion": [_TAKEN, *_OF_OTHERS],
}

_SOURCE = {"source_type": "HUMAN", "source_id": "x"}
_PROMPT = [{"key": "mlflow.prompt.is_prompt", "value": "true"}]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with both(tmp_path_factory.mktemp("workspaces")) as pair:
        yield pair


def _create(**said: Any) -> Step:
    return ask(None, "POST", WORKSPACES, said)


def _update(workspace: str, /, **said: Any) -> Step:
    return ask(None, "PATCH", f"{WORKSPACES}/{workspace}", said)


#: Invalid names of workspaces, and some valid ones.
NAMES = [
    *("ab", "a" * 63, "0-9", "a--b", "default", "a", "a" * 64, "", " ", "Team", "-ab", "ab-", "a_b", "a b", "a.b", "a/b", "é1", "éé"),
    *("workspaces", "api", "ajax-api", "static-files", "graphql", "00", None, 7, True, ["ab"], {"a": 1}),
]
ROOTS = [
    *("s3://bucket/x", "  s3://bucket/y ", "", "  ", "relative/path", "C:team", "/absolute/path", "//host/path", "file:///path", "mlflow-artifacts:/x"),
    *("mlflow-artifacts://host/x", "mlflow-artifacts:", "http://host/x", "https://host/x", "ftp://host/x", "sftp://host/x", "hdfs://host/x"),
    *("s3://bucket/x#part", "s3://bucket/x;a=b", "s3://bucket/x?a=b", "s3://bucket/x?a=..", "s3://bucket/../x", "s3://bucket/%2e%2e/x"),
    *("s3://b/" + "x" * 4_000, "s3:x", "unknown://x", "dbfs:/x", "runs:/x/y", "models:/x/1", "gs://b/x", "wasbs://c@a.blob.core.windows.net/x"),
    *("s3://bucket/x\ny", "s3://bücket/x", "/workspaces", "s3://bucket/workspaces/ab", None, 7, True, [], {"a": 1}),
]
ARCHIVES = [
    *({}, None, "text", [], 7, True, [{"location": "s3://b/x"}]),
    *({"location": "s3://b/x"}, {"retention": "30d"}, {"location": "s3://b/x", "retention": "12h"}, {"location": "", "retention": ""}),
    *({"location": 7}, {"location": None}, {"location": []}, {"location": "relative"}, {"location": "/absolute"}, {"location": "mlflow-artifacts:/x"}),
    *({"location": "http://h/x"}, {"location": "s3://b/x?a=b"}, {"location": "s3://b/x#f"}, {"location": " s3://b/y "}),
    *({"location": "file:///x"}, {"location": "s3://b/" + "x" * 4_000}, {"location": "sftp://h/x"}),
    *({"retention": 7}, {"retention": None}, {"retention": "30"}, {"retention": "0d"}, {"retention": "-1d"}, {"retention": "1.5d"}, {"retention": "3w"}),
    *({"retention": "3D"}, {"retention": " 3m "}, {"retention": "3 m"}, {"retention": "03m"}, {"retention": "1" * 40 + "d"}, {"retention": "1" * 31 + "d"}),
    *({"other": "x"}, {"location": "s3://b/z", "other": "x"}, {"location": "s3://b/x", "retention": "x"}),
]


def _routes(one_in: int = 1) -> list[Step]:
    """Returns requests to the routes of workspaces. One in `one_in` of the artifact roots and
    archive settings is tested when creating a workspace, and others when updating one.
    """
    one, other = f"{WORKSPACES}/routes", one_in // 2
    return [
        *(ask(workspace, "GET", f"{V3}/server-info") for workspace in (None, "", "default", "nothing", "Bad name")),
        ask(None, "GET", WORKSPACES),
        ask(None, "GET", f"{WORKSPACES}/default"),
        *(_create(name=name) for name in NAMES),
        _create(),
        _create(name="ab"),
        _create(name="default"),
        *(_create(name=f"text-{number}", description=text) for number, text in enumerate(["", " ", "x" * 10_000, "é\n日", None, 7, True, []])),
        *(_create(name=f"root-{number}", default_artifact_root=root) for number, root in enumerate(ROOTS[::one_in])),
        *(_create(name=f"archive-{number}", trace_archival_config=archive) for number, archive in enumerate(ARCHIVES[::one_in])),
        _create(name="camel", defaultArtifactRoot="s3://b/x", traceArchivalConfig={"retention": "3d"}),
        _create(name="both", default_artifact_root="s3://b/x", defaultArtifactRoot="s3://b/y"),
        _create(name="more", other="x"),
        ask(None, "POST", WORKSPACES, b"nonsense", {"Content-Type": "application/json"}),
        ask(None, "POST", WORKSPACES, [{"name": "listed"}]),
        ask(None, "POST", WORKSPACES, b'{"name": "without-type"}'),
        ask(None, "POST", "/ajax-api/3.0/mlflow/workspaces", {"name": "of-ui", "description": "d"}),
        *(ask(None, "GET", f"{WORKSPACES}/{name}") for name in ("ab", "a", "Team", "nothing", "workspaces", "a%20b", "a%2Fb", "ab/", "ab/x", "%C3%A9%C3%A9", ".", "a" * 64)),
        ask(None, "GET", f"{WORKSPACES}/"),
        ask(None, "GET", f"{WORKSPACES}?a=b"),
        ask("ab", "GET", f"{WORKSPACES}/default"),
        ask(None, "GET", "/ajax-api/3.0/mlflow/workspaces"),
        ask(None, "GET", "/api/2.0/mlflow/workspaces"),
        *(ask(None, method, WORKSPACES, {}) for method in ("PUT", "PATCH", "DELETE")),
        *(ask(None, method, f"{WORKSPACES}/ab", {}) for method in ("PUT", "POST")),
        _create(name="routes", description="first", default_artifact_root="s3://b/r", trace_archival_config={"location": "s3://b/a", "retention": "3d"}),
        *(_update("routes", description=text) for text in ("second", "", None, 7)),
        *(_update("routes", default_artifact_root=root) for root in ROOTS[other::one_in]),
        *(_update("routes", trace_archival_config=archive) for archive in ARCHIVES[other::one_in]),
        _update("routes"),
        _update("routes", name="renamed"),
        _update("routes", name="renamed", description="named"),
        _update("routes", workspace_name="renamed", description="named"),
        _update("routes", traceArchivalConfig={"retention": "5d"}),
        _update("routes", defaultArtifactRoot="s3://b/camel"),
        _update("routes", other="x"),
        ask(None, "PATCH", one, b"nonsense", {"Content-Type": "application/json"}),
        ask(None, "PATCH", one, []),
        ask(None, "PATCH", "/ajax-api/3.0/mlflow/workspaces/routes", {"description": "by the UI"}),
        ask(None, "GET", one),
        _update("nothing", description="x"),
        _update("Bad", description="x"),
        _update("a", description="x"),
        _update("nothing"),
        _update("nothing", description=7),
        *(_update("default", **said) for said in ({"description": "of all"}, {}, {"description": ""}, {"trace_archival_config": {"retention": "2d"}})),
        ask(None, "GET", WORKSPACES),
        *(ask(None, "DELETE", f"{WORKSPACES}/routes?mode={mode}") for mode in ("restrict", "NOTHING", "", "RESTRICT&mode=x")),
        *(ask(None, "DELETE", f"{WORKSPACES}/{name}") for name in ("default", "nothing", "a", "Team", "routes", "routes")),
        *(ask(None, "DELETE", f"{WORKSPACES}/{name}?mode=CASCADE") for name in ("default", "nothing", "ab", "ab")),
        *(ask(None, "DELETE", f"{WORKSPACES}/{name}?mode=SET_DEFAULT") for name in ("default", "nothing", "0-9")),
        ask("routes", "GET", WORKSPACES),
        ask("routes", "POST", f"{V2}/experiments/search", {"max_results": 5}),
        ask(None, "GET", WORKSPACES),
        _create(name="routes"),
        ask(None, "GET", one),
    ]


def _headers() -> list[Step]:
    search = f"{V2}/experiments/search"
    said = [None, "", "default", "default ", "headers", "headers\t", "nothing", "Headers", "a", "a b", "workspaces", "x" * 64, "headers,headers", "é"]
    paths = [("GET", "/health"), ("GET", "/nothing"), ("GET", f"{V2}/nothing"), ("GET", f"{WORKSPACES}/headers"), ("GET", f"{V3}/server-info/")]
    return [
        _create(name="headers"),
        *(ask(workspace, "POST", search, {"max_results": 5}) for workspace in said),
        *(ask(workspace, "POST", search.replace("/api/", "/ajax-api/"), {"max_results": 5}) for workspace in ("headers", "nothing")),
        *(ask(workspace, method, path) for workspace in (None, "headers", "nothing", "A") for method, path in paths),
        ask("nothing", "POST", search, {"max_results": "wrong"}),
        ask("headers", "POST", search, {"max_results": "wrong"}),
        ask(None, "GET", f"{V2}/experiments/get?experiment_id=0&workspace=nothing"),
    ]


def _unknown() -> list[Step]:
    """Returns requests in a workspace that does not exist. Their responses must report this."""
    return [
        _create(name="known"),
        *_furnish("known", "u"),
        *_foreign("nothing", "u"),
        *_lists("nothing", "u"),
        ask("nothing", "GET", WORKSPACES),
        ask("nothing", "GET", f"{WORKSPACES}/known"),
        ask("nothing", "PATCH", f"{WORKSPACES}/known", {"description": "x"}),
        ask("nothing", "DELETE", f"{WORKSPACES}/known?mode=CASCADE"),
        ask("nothing", "POST", WORKSPACES, {"name": "made"}),
        ask("nothing", "POST", f"{V2}/experiments/create", {"name": "x"}),
        ask("nothing", "POST", f"{V2}/registered-models/create", {"name": "x"}),
        ask("nothing", "POST", f"{V2}/model-versions/create", {"name": "same", "source": "s3://b/x"}),
        ask("nothing", "POST", f"{V3}/datasets/create", {"name": "x"}),
        ask("nothing", "PUT", proxied("x/y.txt"), b"x"),
        ask("nothing", "GET", "/api/2.0/mlflow-artifacts/artifacts"),
        ask("known", "GET", f"{V2}/registered-models/search"),
    ]


def _graphql(workspace: str | None, letter: str) -> list[Step]:
    """Returns the GraphQL queries of the user interface."""
    queries = [
        f'{{ mlflowGetExperiment(input: {{experimentId: "$experiment{letter}"}}) {{ experiment {{ name artifactLocation }} apiError {{ code message }} }} }}',
        f'{{ mlflowGetRun(input: {{runId: "$run{letter}"}}) {{ run {{ info {{ runName }} experiment {{ name }} modelVersions {{ name version }} }} apiError {{ code message }} }} }}',
        f'{{ mlflowGetMetricHistoryBulkInterval(input: {{runIds: ["$run{letter}"], metricKey: "m"}}) {{ metrics {{ value }} apiError {{ code }} }} }}',
        f'mutation {{ mlflowSearchRuns(input: {{experimentIds: ["$experiment{letter}"]}}) {{ runs {{ info {{ runName }} }} apiError {{ code }} }} }}',
        '{ mlflowSearchModelVersions(input: {filter: "name = \'same\'"}) { modelVersions { name version description } apiError { code } } }',
        f'{{ mlflowListArtifacts(input: {{runId: "$run{letter}"}}) {{ files {{ path }} apiError {{ code message }} }} }}',
    ]
    return [ask(workspace, "POST", "/graphql", {"query": query}) for query in queries]


def _location(letter: str) -> dict[str, Any]:
    return {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": f"$experiment{letter}"}}


def _trace(letter: str, experiment: str) -> dict[str, Any]:
    """Returns a trace with an id made from `letter`, in an experiment with its own letter."""
    return {"trace_id": f"tr-{letter * 32}", "trace_location": _location(experiment), "request_time": "2026-01-01T00:00:00Z", "state": "OK"}


def _furnish(workspace: str, letter: str) -> list[Step]:
    """Returns steps that create entities of all kinds, with the same names in each workspace.
    Variables for their ids end with the letter.
    """
    then, feedback = "2026-01-01T00:00:00Z", {"assessment_name": "f", "feedback": {"value": True}, "source": _SOURCE}
    return [
        ask(workspace, "POST", f"{V2}/experiments/create", {"name": "same"}, **{f"experiment{letter}": "experiment_id"}),
        ask(workspace, "POST", f"{V2}/experiments/create", {"name": "same"}),
        ask(workspace, "POST", f"{V2}/experiments/create", {"name": "Default"}),
        ask(workspace, "GET", f"{V2}/experiments/get", {"experiment_id": f"$experiment{letter}"}),
        ask(
            workspace, "POST", f"{V2}/runs/create", {"experiment_id": f"$experiment{letter}", "run_name": "same", "start_time": 1},
            **{f"run{letter}": "run.info.run_id", f"root{letter}": "run.info.artifact_uri"},
        ),
        ask(workspace, "POST", f"{V2}/runs/log-metric", {"run_id": f"$run{letter}", "key": "m", "value": 1.5, "timestamp": 1, "step": 0}),
        ask(workspace, "POST", f"{V2}/logged-models", {"experiment_id": f"$experiment{letter}", "name": "same", "source_run_id": f"$run{letter}"}, **{f"logged{letter}": "model.info.model_id"}),
        ask(workspace, "POST", f"{V2}/runs/outputs", {"run_id": f"$run{letter}", "models": [{"model_id": f"$logged{letter}", "step": 0}]}),
        ask(workspace, "POST", f"{V3}/traces", {"trace": {"trace_info": _trace(letter, letter)}}),
        ask(
            workspace, "POST", f"{V3}/traces/tr-{letter * 32}/assessments", {"assessment": {**feedback, "create_time": then, "last_update_time": then}},
            **{f"assessment{letter}": "assessment.assessment_id"},
        ),
        ask(workspace, "POST", f"{V2}/registered-models/create", {"name": "same", "description": letter}),
        ask(workspace, "POST", f"{V2}/registered-models/create", {"name": "same"}),
        ask(workspace, "POST", f"{V2}/model-versions/create", {"name": "same", "source": f"$root{letter}/model", "run_id": f"$run{letter}"}),
        ask(workspace, "POST", f"{V2}/model-versions/create", {"name": "same", "source": f"models:/$logged{letter}", "model_id": f"$logged{letter}"}),
        ask(workspace, "POST", f"{V2}/registered-models/alias", {"name": "same", "alias": "best", "version": "1"}),
        ask(workspace, "POST", f"{V2}/registered-models/set-tag", {"name": "same", "key": "k", "value": letter}),
        ask(workspace, "POST", f"{V2}/model-versions/set-tag", {"name": "same", "version": "1", "key": "k", "value": letter}),
        ask(workspace, "POST", f"{V2}/registered-models/create", {"name": "prompt", "tags": _PROMPT}),
        ask(workspace, "POST", f"{V2}/model-versions/create", {"name": "prompt", "source": "prompt-template", "tags": [*_PROMPT, {"key": "mlflow.prompt.text", "value": letter}]}),
        ask(workspace, "POST", f"{V3}/datasets/create", {"name": "same", "experiment_ids": [f"$experiment{letter}"], "tags": '{"k": "v"}'}, **{f"data{letter}": "dataset.dataset_id"}),
        ask(workspace, "POST", f"{V3}/datasets/$data{letter}/records", {"records": '[{"inputs": {"q": "' + letter + '"}}]'}),
        ask(workspace, "POST", f"{V3}/scorers/register", {"experiment_id": f"$experiment{letter}", "name": "same", "serialized_scorer": '{"name": "same"}'}, **{f"scorer{letter}": "scorer_id"}),
        ask(workspace, "PUT", f"{V3}/scorers/online-config", {"experiment_id": f"$experiment{letter}", "name": "same", "sample_rate": 0}),
    ]


def _lists(workspace: str | None, letter: str) -> list[Step]:
    """Returns lists, searches and reads by name, whose results contain only the workspace's own
    entities.
    """
    location = _location(letter)
    return [
        ask(workspace, "POST", f"{V2}/experiments/search", {"max_results": 100, "order_by": ["name"]}),
        ask(workspace, "POST", f"{V2}/experiments/search", {"max_results": 100, "filter": "name = 'same'"}),
        ask(workspace, "GET", f"{V2}/experiments/get-by-name", {"experiment_name": "same"}),
        ask(workspace, "GET", f"{V2}/experiments/get-by-name", {"experiment_name": "Default"}),
        ask(workspace, "POST", f"{V2}/runs/search", {"experiment_ids": [f"$experiment{letter}"]}),
        ask(workspace, "POST", f"{V2}/logged-models/search", {"experiment_ids": [f"$experiment{letter}"]}),
        ask(workspace, "POST", f"{V3}/traces/search", {"locations": [location]}),
        ask(workspace, "POST", f"{V3}/traces/search", {"locations": [location], "filter": f"run_id = '$run{letter}'"}),
        ask(workspace, "GET", f"{V2}/registered-models/search", {"max_results": 100}),
        ask(workspace, "GET", f"{V2}/registered-models/search", {"filter": "name = 'same'"}),
        ask(workspace, "GET", f"{V2}/registered-models/search", {"filter": "tags.k = 'a'"}),
        ask(workspace, "GET", f"{V2}/registered-models/search", {"filter": "tags.`mlflow.prompt.is_prompt` = 'true'"}),
        ask(workspace, "GET", f"{V2}/registered-models/get", {"name": "same"}),
        ask(workspace, "GET", f"{V2}/registered-models/get", {"name": "prompt"}),
        ask(workspace, "GET", f"{V2}/registered-models/alias", {"name": "same", "alias": "best"}),
        ask(workspace, "GET", f"{V2}/registered-models/get-latest-versions", {"name": "same"}),
        ask(workspace, "GET", f"{V2}/model-versions/get", {"name": "same", "version": "1"}),
        ask(workspace, "GET", f"{V2}/model-versions/get-download-uri", {"name": "same", "version": "2"}),
        ask(workspace, "GET", f"{V2}/model-versions/search", {"max_results": 100, "order_by": ["name", "version_number"]}),
        ask(workspace, "GET", f"{V2}/model-versions/search", {"filter": "tags.k = 'a'"}),
        ask(workspace, "POST", f"{V3}/datasets/search", {"max_results": 100}),
        ask(workspace, "POST", f"{V3}/datasets/search", {"filter_string": "name = 'same'"}),
        ask(workspace, "POST", f"{V3}/datasets/search", {"experiment_ids": [f"$experiment{letter}"]}),
        ask(workspace, "GET", f"{V3}/scorers/list"),
        ask(workspace, "GET", f"{V3}/scorers/list", {"experiment_id": f"$experiment{letter}"}),
        ask(workspace, "GET", f"{V3}/scorers/get", {"experiment_id": f"$experiment{letter}", "name": "same"}),
        *_graphql(workspace, letter),
    ]


def _foreign(workspace: str | None, letter: str) -> list[Step]:
    """Returns requests with an id, in a workspace that does not have the entity. The entity must
    not be found or changed.
    """
    experiment, run, model, data, trace = f"$experiment{letter}", f"$run{letter}", f"$logged{letter}", f"$data{letter}", f"tr-{letter * 32}"
    location = _location(letter)
    assessment = {"assessment_name": "g", "feedback": {"value": 1}, "source": _SOURCE}
    tag = {"key": "foreign", "value": "v"}
    return [
        ask(workspace, "GET", f"{V2}/experiments/get", {"experiment_id": experiment}),
        ask(workspace, "POST", f"{V2}/experiments/update", {"experiment_id": experiment, "new_name": "stolen"}),
        ask(workspace, "POST", f"{V2}/experiments/set-experiment-tag", {"experiment_id": experiment, **tag}),
        ask(workspace, "POST", f"{V2}/experiments/delete-experiment-tag", {"experiment_id": experiment, "key": "k"}),
        ask(workspace, "POST", f"{V2}/experiments/delete", {"experiment_id": experiment}),
        ask(workspace, "POST", f"{V2}/experiments/restore", {"experiment_id": experiment}),
        ask(workspace, "POST", f"{V2}/runs/create", {"experiment_id": experiment, "start_time": 1}),
        ask(workspace, "POST", f"{V2}/runs/search", {"experiment_ids": [experiment]}),
        ask(workspace, "GET", f"{V2}/runs/get", {"run_id": run}),
        ask(workspace, "POST", f"{V2}/runs/update", {"run_id": run, "status": "FINISHED", "end_time": 2}),
        ask(workspace, "POST", f"{V2}/runs/log-metric", {"run_id": run, "key": "m", "value": 2, "timestamp": 2}),
        ask(workspace, "POST", f"{V2}/runs/log-parameter", {"run_id": run, "key": "p", "value": "2"}),
        ask(workspace, "POST", f"{V2}/runs/log-batch", {"run_id": run, "params": [{"key": "p", "value": "2"}]}),
        ask(workspace, "POST", f"{V2}/runs/log-inputs", {"run_id": run, "models": [{"model_id": model}]}),
        ask(workspace, "POST", f"{V2}/runs/outputs", {"run_id": run, "models": [{"model_id": model, "step": 1}]}),
        ask(workspace, "POST", f"{V2}/runs/log-model", {"run_id": run, "model_json": '{"artifact_path": "m", "flavors": {}, "utc_time_created": "2026-01-01 00:00:00.000000", "run_id": "x"}'}),
        ask(workspace, "POST", f"{V2}/runs/set-tag", {"run_id": run, **tag}),
        ask(workspace, "POST", f"{V2}/runs/delete-tag", {"run_id": run, "key": "mlflow.runName"}),
        ask(workspace, "POST", f"{V2}/runs/delete", {"run_id": run}),
        ask(workspace, "POST", f"{V2}/runs/restore", {"run_id": run}),
        ask(workspace, "GET", f"{V2}/metrics/get-history", {"run_id": run, "metric_key": "m"}),
        ask(workspace, "GET", f"{V2}/metrics/get-history-bulk-interval", {"run_ids": run, "metric_key": "m", "max_results": 5}),
        ask(workspace, "GET", "/ajax-api/2.0/mlflow/metrics/get-history-bulk", {"run_id": run, "metric_key": "m"}),
        ask(workspace, "GET", f"{V2}/artifacts/list", {"run_id": run}),
        ask(workspace, "POST", "/ajax-api/2.0/mlflow/experiments/search-datasets", {"experiment_ids": [experiment]}),
        ask(workspace, "POST", f"{V2}/logged-models", {"experiment_id": experiment, "name": "new"}),
        ask(workspace, "GET", f"{V2}/logged-models/{model}"),
        ask(workspace, "PATCH", f"{V2}/logged-models/{model}", {"status": "LOGGED_MODEL_READY"}),
        ask(workspace, "PATCH", f"{V2}/logged-models/{model}/tags", {"tags": [tag]}),
        ask(workspace, "POST", f"{V2}/logged-models/{model}/params", {"params": [{"key": "p", "value": "v"}]}),
        ask(workspace, "DELETE", f"{V2}/logged-models/{model}"),
        ask(workspace, "GET", f"{V2}/logged-models/{model}/artifacts/directories"),
        ask(workspace, "POST", f"{V2}/logged-models/search", {"experiment_ids": [experiment]}),
        ask(workspace, "GET", f"{V3}/traces/{trace}"),
        ask(workspace, "GET", f"{V2}/traces/{trace}/info"),
        ask(workspace, "GET", f"{V3}/traces/get", {"trace_id": trace}),
        ask(workspace, "GET", f"{V3}/traces/batchGet", {"trace_ids": [trace]}),
        ask(workspace, "POST", f"{V3}/traces/batchGetInfos", {"trace_ids": [trace]}),
        ask(workspace, "POST", f"{V3}/traces", {"trace": {"trace_info": _trace("e", letter)}}),
        ask(workspace, "POST", f"{V3}/traces/search", {"locations": [location]}),
        ask(workspace, "GET", f"{V2}/traces", {"experiment_ids": [experiment]}),
        ask(workspace, "PATCH", f"{V3}/traces/{trace}/tags", tag),
        ask(workspace, "DELETE", f"{V3}/traces/{trace}/tags", {"key": "k"}),
        ask(workspace, "POST", f"{V3}/traces/delete-traces", {"experiment_id": experiment, "request_ids": [trace]}),
        ask(workspace, "POST", f"{V3}/traces/{trace}/assessments", {"assessment": assessment}),
        ask(workspace, "GET", f"{V3}/traces/{trace}/assessments/$assessment{letter}"),
        ask(workspace, "PATCH", f"{V3}/traces/{trace}/assessments/$assessment{letter}", {"assessment": {"assessment_name": "h"}, "update_mask": "assessmentName"}),
        ask(workspace, "DELETE", f"{V3}/traces/{trace}/assessments/$assessment{letter}"),
        ask(workspace, "POST", f"{V2}/traces/link-to-run", {"trace_ids": [trace], "run_id": run}),
        ask(workspace, "POST", f"{V3}/traces/metrics", {"experiment_ids": [experiment], "view_type": "TRACES", "metric_name": "trace_count", "aggregations": [{"aggregation_type": "COUNT"}]}),
        ask(workspace, "GET", "/ajax-api/2.0/mlflow/get-trace-artifact", {"request_id": trace}),
        ask(workspace, "GET", f"{V3}/datasets/{data}"),
        ask(workspace, "GET", f"{V3}/datasets/{data}/records"),
        ask(workspace, "POST", f"{V3}/datasets/{data}/records", {"records": '[{"inputs": {"q": "new"}}]'}),
        ask(workspace, "GET", f"{V3}/datasets/{data}/experiment-ids"),
        ask(workspace, "POST", f"{V3}/datasets/{data}/add-experiments", {"experiment_ids": [experiment]}),
        ask(workspace, "POST", f"{V3}/datasets/{data}/remove-experiments", {"experiment_ids": [experiment]}),
        ask(workspace, "PATCH", f"{V3}/datasets/{data}/tags", {"tags": '{"k": "stolen"}'}),
        ask(workspace, "DELETE", f"{V3}/datasets/{data}/tags/k"),
        ask(workspace, "DELETE", f"{V3}/datasets/{data}"),
        ask(workspace, "POST", f"{V3}/datasets/search", {"experiment_ids": [experiment]}),
        ask(workspace, "GET", f"{V3}/scorers/list", {"experiment_id": experiment}),
        ask(workspace, "GET", f"{V3}/scorers/get", {"experiment_id": experiment, "name": "same"}),
        ask(workspace, "GET", f"{V3}/scorers/versions", {"experiment_id": experiment, "name": "same"}),
        ask(workspace, "POST", f"{V3}/scorers/register", {"experiment_id": experiment, "name": "new", "serialized_scorer": "{}"}),
        ask(workspace, "DELETE", f"{V3}/scorers/delete", {"experiment_id": experiment, "name": "same"}),
        ask(workspace, "PUT", f"{V3}/scorers/online-config", {"experiment_id": experiment, "name": "same", "sample_rate": 0.5}),
        ask(workspace, "GET", f"{V3}/scorers/online-configs", {"scorer_ids": [f"$scorer{letter}"]}),
        ask(workspace, "POST", f"{V3}/traces/calculate-filter-correlation", {"experiment_ids": [experiment], "filter_string1": "status = 'OK'", "filter_string2": "status = 'OK'"}),
        ask(workspace, "POST", f"{V2}/traces/link-prompts", {"trace_id": trace, "prompt_versions": [{"name": "prompt", "version": "1"}]}),
        ask(workspace, "POST", f"{V2}/traces", {"experiment_id": experiment, "timestamp_ms": 1_767_225_600_000}),
        ask(workspace, "PATCH", f"{V2}/traces/{trace}", {"request_id": trace, "timestamp_ms": 1_767_225_600_000, "status": "ERROR"}),
        ask(workspace, "PATCH", f"{V2}/traces/{trace}/tags", tag),
        ask(workspace, "POST", f"{V2}/traces/delete-traces", {"experiment_id": experiment, "max_timestamp_millis": 1_900_000_000_000}),
        ask(workspace, "POST", "/v1/traces", _spans(letter), {"x-mlflow-experiment-id": experiment}),
        *_graphql(workspace, letter),
    ]


def _spans(letter: str) -> dict[str, Any]:
    """Returns an export of a span of the trace."""
    span = {"traceId": letter * 32, "spanId": "1" * 16, "name": "s", "startTimeUnixNano": "1767225600000000000", "endTimeUnixNano": "1767225601000000000"}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


def _names() -> list[Step]:
    two = [("names-a", "a"), ("names-b", "b")]
    return [
        *(_create(name=workspace) for workspace, _ in two),
        *(step for workspace, letter in two for step in _furnish(workspace, letter)),
        *(step for workspace, letter in [*two, ("names-a", "b"), (None, "a")] for step in _lists(workspace, letter)),
        # Changes in one workspace do not affect the other one.
        ask("names-a", "POST", f"{V2}/registered-models/rename", {"name": "same", "new_name": "renamed"}),
        ask("names-a", "POST", f"{V2}/experiments/update", {"experiment_id": "$experimenta", "new_name": "renamed"}),
        ask("names-a", "DELETE", f"{V2}/registered-models/delete", {"name": "prompt"}),
        ask("names-a", "DELETE", f"{V3}/datasets/$dataa"),
        ask("names-a", "POST", f"{V2}/experiments/create", {"name": "same"}),
        *(step for workspace, letter in two for step in _lists(workspace, letter)),
    ]


def _by_id(foreign: Sequence[tuple[str | None, str]] = (("ids-d", "c"), (None, "d"))) -> list[Step]:
    own = [("ids-c", "c"), ("ids-d", "d")]
    return [
        *(_create(name=workspace) for workspace, _ in own),
        *(step for workspace, letter in own for step in _furnish(workspace, letter)),
        *(step for workspace, letter in foreign for step in _foreign(workspace, letter)),
        # Requests with ids from two workspaces.
        ask("ids-c", "POST", f"{V2}/runs/search", {"experiment_ids": ["$experimentc", "$experimentd"]}),
        ask("ids-c", "POST", f"{V2}/logged-models/search", {"experiment_ids": ["$experimentc", "$experimentd"]}),
        ask("ids-c", "POST", f"{V3}/datasets/$datac/add-experiments", {"experiment_ids": ["$experimentd"]}),
        ask("ids-c", "POST", f"{V3}/traces/batchGetInfos", {"trace_ids": [f"tr-{'c' * 32}", f"tr-{'d' * 32}"]}),
        ask("ids-c", "POST", f"{V2}/runs/outputs", {"run_id": "$runc", "models": [{"model_id": "$loggedd", "step": 1}]}),
        ask("ids-c", "POST", f"{V2}/logged-models", {"experiment_id": "$experimentc", "name": "new", "source_run_id": "$rund"}),
        ask("ids-c", "POST", f"{V2}/model-versions/create", {"name": "same", "source": "$rootd/model", "run_id": "$rund"}),
        ask("ids-c", "POST", f"{V2}/model-versions/create", {"name": "same", "source": "$rootd/model"}),
        ask("ids-c", "POST", f"{V2}/model-versions/create", {"name": "same", "source": "models:/$loggedd", "model_id": "$loggedd"}),
        ask("ids-c", "POST", f"{V2}/model-versions/create", {"name": "same", "source": "models:/same/1"}),
        ask("ids-c", "POST", f"{V2}/traces/link-to-run", {"trace_ids": [f"tr-{'d' * 32}"], "run_id": "$runc"}),
        ask("ids-c", "POST", f"{V2}/runs/log-inputs", {"run_id": "$runc", "models": [{"model_id": "$loggedd"}]}),
        ask("ids-c", "GET", f"{V3}/scorers/online-configs", {"scorer_ids": ["$scorerc", "$scorerd"]}),
        # Trace ids are chosen by clients.
        ask("ids-d", "POST", f"{V3}/traces", {"trace": {"trace_info": _trace("c", "d")}}),
        ask("ids-d", "POST", "/v1/traces", _spans("c"), {"x-mlflow-experiment-id": "$experimentd"}),
        *(ask(workspace, "GET", f"{V3}/traces/tr-{'c' * 32}") for workspace in ("ids-c", "ids-d")),
        *(ask(workspace, "GET", f"{V3}/traces/get", {"trace_id": f"tr-{'c' * 32}"}) for workspace in ("ids-c", "ids-d")),
        *(step for workspace, letter in own for step in _lists(workspace, letter)),
    ]


def _places() -> list[Step]:
    create = f"{V2}/experiments/create"
    return [
        _create(name="places"),
        _create(name="places-own", default_artifact_root="s3://bucket/own"),
        *(ask(workspace, "POST", create, {"name": "placed", "artifact_location": "s3://bucket/x"}) for workspace in (None, "places", "places-own")),
        *(ask(workspace, "POST", create, {"name": "placed", "artifact_location": ""}, experiment="experiment_id") for workspace in ("places", "places-own")),
        ask("places-own", "GET", f"{V2}/experiments/get", {"experiment_id": "$experiment"}),
        ask("places-own", "POST", f"{V2}/runs/create", {"experiment_id": "$experiment", "start_time": 1, "run_name": "r"}),
        _update("places-own", default_artifact_root="s3://bucket/other"),
        ask("places-own", "GET", f"{V2}/experiments/get", {"experiment_id": "$experiment"}),
        ask("places-own", "POST", create, {"name": "later"}, experiment="experiment_id"),
        ask("places-own", "GET", f"{V2}/experiments/get", {"experiment_id": "$experiment"}),
        _update("places-own", default_artifact_root=""),
        ask("places-own", "POST", create, {"name": "at last"}, experiment="experiment_id"),
        ask("places-own", "GET", f"{V2}/experiments/get", {"experiment_id": "$experiment"}),
    ]


def _artifacts() -> list[Step]:
    lists = "/api/2.0/mlflow-artifacts/artifacts"
    steps = [_create(name=name) for name in ("files-f", "files-g")]
    for workspace, letter in (("files-f", "f"), ("files-g", "g"), (None, "h")):
        steps += [
            ask(workspace, "POST", f"{V2}/experiments/create", {"name": "files"}, **{f"experiment{letter}": "experiment_id"}),
            ask(workspace, "POST", f"{V2}/runs/create", {"experiment_id": f"$experiment{letter}", "run_name": "r", "start_time": 1}, **{f"run{letter}": "run.info.run_id"}),
            ask(workspace, "POST", f"{V2}/logged-models", {"experiment_id": f"$experiment{letter}", "name": "m"}, **{f"logged{letter}": "model.info.model_id"}),
        ]
    full = "workspaces/files-f/$experimentf/$runf/artifacts"
    short = "$experimentf/$runf/artifacts"
    odd = [
        *("workspaces", "workspaces/", "workspaces//a", "workspaces/files-f", "workspaces/files-f/../files-g/x"),
        *("workspaces/files-f/%2e%2e/x", "/workspaces/files-f/loose.txt", "./workspaces/files-g/x"),
    ]
    directories = [
        *(full, short, f"{short}/sub", "", "workspaces", "workspaces/files-f", "workspaces/files-f/$experimentf", "$experimentf"),
        *("./workspaces/files-f", "workspaces/./files-f"),
    ]
    steps += [
        ask("files-f", "PUT", proxied(f"{full}/a.txt"), b"of f"),
        ask("files-f", "PUT", proxied(f"{short}/sub/b.txt"), b"of f, too"),
        ask("files-f", "PUT", proxied("workspaces/files-f/$experimentf/models/$loggedf/artifacts/MLmodel"), b"flavors: {}\n"),
        ask("files-g", "PUT", proxied("workspaces/files-g/$experimentg/$rung/artifacts/a.txt"), b"of g"),
        ask(None, "PUT", proxied("$experimenth/$runh/artifacts/a.txt"), b"of h"),
        ask("files-f", "PUT", proxied("loose.txt"), b"loose"),
        # Requests in another workspace, and without a workspace.
        *(ask(workspace, "PUT", proxied(f"{full}/stolen.txt"), b"x") for workspace in ("files-g", "default", None, "nothing")),
        *(ask(workspace, "GET", proxied(f"{path}/a.txt")) for path in (full, short) for workspace in ("files-f", "files-g", "default", None, "nothing")),
        *(ask(workspace, "GET", proxied(f"{full}/sub/b.txt")) for workspace in ("files-f", "files-g")),
        *(ask(workspace, "GET", proxied("loose.txt")) for workspace in ("files-f", "files-g", None)),
        *(ask("files-f", "GET", proxied(path)) for path in odd),
        *(ask(workspace, "GET", lists, {"path": path}) for workspace in ("files-f", "files-g", None) for path in directories),
        *(ask(workspace, "GET", lists) for workspace in ("files-f", "files-g")),
        *(ask(workspace, "GET", f"{V2}/artifacts/list", {"run_id": "$runf", "path": path}) for workspace in ("files-f", "files-g", None) for path in ("", "sub")),
        *(ask(workspace, "GET", "/get-artifact", {"run_id": "$runf", "path": "a.txt"}) for workspace in ("files-f", "files-g", None)),
        *(ask(workspace, "GET", "/get-artifact", {"run_uuid": "$runf", "path": "sub/b.txt", "workspace": "files-f"}) for workspace in ("files-f", None)),
        *(ask(workspace, "GET", f"{V2}/logged-models/$loggedf/artifacts/directories") for workspace in ("files-f", "files-g")),
        *(ask(workspace, "GET", "/ajax-api/2.0/mlflow/logged-models/$loggedf/artifacts/files", {"artifact_file_path": "MLmodel"}) for workspace in ("files-f", "files-g")),
        *(ask(workspace, "POST", "/ajax-api/2.0/mlflow/upload-artifact?run_uuid=$runf&path=ui.txt", b"of the UI", {"Content-Type": "text/plain"}) for workspace in ("files-g", None, "files-f")),
        ask("files-f", "GET", f"{V2}/artifacts/list", {"run_id": "$runf"}),
        ask("files-f", "GET", "/get-artifact", {"run_id": "$runf", "path": "ui.txt"}),
        ask("files-f", "POST", f"{V2}/registered-models/create", {"name": "filed"}),
        ask("files-f", "POST", f"{V2}/model-versions/create", {"name": "filed", "source": "mlflow-artifacts:/" + full, "run_id": "$runf"}),
        *(ask(workspace, "GET", "/model-versions/get-artifact", {"name": "filed", "version": "1", "path": "a.txt"}) for workspace in ("files-f", "files-g", None)),
        *(ask(workspace, "POST", f"/api/2.0/mlflow-artifacts/mpu/create/{full}/big.bin", {"path": "big.bin", "num_parts": 1}) for workspace in ("files-f", "files-g")),
        *(ask(workspace, "GET", f"/api/2.0/mlflow-artifacts/presigned/{full}/a.txt") for workspace in ("files-f", "files-g")),
        *(ask(workspace, "POST", f"{V2}/artifacts/presigned-download-url", {"run_id": "$runf", "path": "a.txt"}) for workspace in ("files-f", "files-g")),
        *(ask(workspace, "DELETE", proxied(f"{full}/a.txt")) for workspace in ("files-g", None, "files-f")),
        ask("files-f", "GET", proxied(f"{full}/a.txt")),
    ]
    return steps


def _deletion() -> list[Step]:
    def thing(workspace: str | None, kind: str) -> Step:
        name = {"name": "kept"}
        return {
            "experiment": ask(workspace, "POST", f"{V2}/experiments/create", name, **{f"kept{workspace}": "experiment_id"}),
            "model": ask(workspace, "POST", f"{V2}/registered-models/create", name),
            "prompt": ask(workspace, "POST", f"{V2}/registered-models/create", {**name, "tags": _PROMPT}),
            "dataset": ask(workspace, "POST", f"{V3}/datasets/create", name),
        }[kind]

    def delete(workspace: str, mode: str = "") -> Step:
        return ask(None, "DELETE", f"{WORKSPACES}/{workspace}{mode and '?mode=' + mode}")

    kinds = ["experiment", "model", "prompt", "dataset"]
    steps = [_create(name=f"gone-{kind}") for kind in kinds]
    steps += [thing(f"gone-{kind}", kind) for kind in kinds]
    # A workspace with content is not deleted. The response names the kind of content.
    steps += [delete(f"gone-{kind}") for kind in kinds] + [delete("gone-experiment", "RESTRICT")]
    # Deleted experiments are content, too.
    steps += [
        ask("gone-experiment", "POST", f"{V2}/experiments/delete", {"experiment_id": "$keptgone-experiment"}),
        delete("gone-experiment"),
        ask("gone-experiment", "POST", f"{V2}/experiments/restore", {"experiment_id": "$keptgone-experiment"}),
    ]
    # Creates the same names in the default workspace.
    steps += [thing(None, kind) for kind in ("experiment", "model", "dataset")]
    steps += [delete(f"gone-{kind}", "SET_DEFAULT") for kind in ("experiment", "model", "prompt")]
    steps += [
        ask("gone-experiment", "POST", f"{V2}/experiments/update", {"experiment_id": "$keptgone-experiment", "new_name": "moved"}),
        ask("gone-experiment", "POST", f"{V2}/runs/create", {"experiment_id": "$keptgone-experiment", "run_name": "r", "start_time": 1}, run="run.info.run_id"),
        ask("gone-model", "POST", f"{V2}/registered-models/rename", {"name": "kept", "new_name": "moved"}),
        ask("gone-model", "POST", f"{V2}/model-versions/create", {"name": "moved", "source": "s3://bucket/x"}),
        ask("gone-model", "POST", f"{V2}/registered-models/alias", {"name": "moved", "alias": "best", "version": "1"}),
        ask("gone-prompt", "POST", f"{V2}/registered-models/rename", {"name": "kept", "new_name": "moved prompt"}),
        *(delete(f"gone-{kind}", "SET_DEFAULT") for kind in ("experiment", "model", "prompt")),
        ask(None, "GET", f"{V2}/experiments/get", {"experiment_id": "$keptgone-experiment"}),
        ask(None, "GET", f"{V2}/experiments/get-by-name", {"experiment_name": "moved"}),
        ask(None, "GET", f"{V2}/runs/get", {"run_id": "$run"}),
        ask(None, "GET", f"{V2}/registered-models/get", {"name": "moved"}),
        ask(None, "GET", f"{V2}/registered-models/alias", {"name": "moved", "alias": "best"}),
        ask(None, "GET", f"{V2}/model-versions/search", {"filter": "name = 'moved'"}),
        ask(None, "GET", f"{V2}/registered-models/get", {"name": "moved prompt"}),
        *(ask(f"gone-{kind}", "POST", f"{V2}/experiments/search", {"max_results": 5}) for kind in kinds),
    ]
    # Deletes a workspace with all its content.
    steps += [
        _create(name="gone"),
        *_furnish("gone", "9"),
        # Prevents SQLite from reusing the greatest id after the deletion.
        ask(None, "POST", f"{V2}/experiments/create", {"name": "the one after the last"}),
        delete("gone"),
        delete("gone", "CASCADE"),
        ask(None, "GET", f"{WORKSPACES}/gone"),
        ask("gone", "GET", f"{V2}/experiments/get", {"experiment_id": "$experiment9"}),
        ask("gone", "POST", f"{V2}/experiments/create", {"name": "late"}),
        ask("gone", "POST", f"{V2}/registered-models/create", {"name": "late"}),
        ask("gone", "POST", f"{V3}/datasets/create", {"name": "late"}),
        ask("gone", "POST", f"{V2}/runs/create", {"experiment_id": "$experiment9", "start_time": 1}),
        *_foreign(None, "9"),
        _create(name="gone"),
        ask("gone", "POST", f"{V2}/experiments/search", {"max_results": 5, "view_type": "ALL"}),
        ask("gone", "GET", f"{V2}/registered-models/search"),
        ask("gone", "GET", f"{V2}/model-versions/search"),
        ask("gone", "POST", f"{V3}/datasets/search", {}),
        ask("gone", "GET", f"{V3}/scorers/list"),
        *_foreign("gone", "9"),
        ask("gone", "POST", f"{V2}/experiments/create", {"name": "same"}),
        ask("gone", "POST", f"{V2}/registered-models/create", {"name": "same"}),
        ask("gone", "POST", f"{V2}/model-versions/create", {"name": "same", "source": "s3://bucket/new"}),
        ask("gone", "GET", f"{V2}/registered-models/get", {"name": "same"}),
        delete("gone", "CASCADE"),
    ]
    return steps


SEQUENCES = {
    "routes": _routes, "headers": _headers, "unknown": _unknown, "names": _names, "by id": _by_id, "places": _places, "artifacts": _artifacts,
    "deletion": _deletion,
}


#: Sequences that `make test` leaves out, because they send many requests. The other sequences send
#: some requests to the same endpoints.
SLOW = {"unknown", "deletion", "names"}
#: Shortened sequences for `make test`: one artifact root and archive in four, and ids in one other
#: workspace.
SAMPLES: dict[str, Callable[[], list[Step]]] = {"routes": lambda: _routes(4), "by id": lambda: _by_id([("ids-d", "c")])}


def _cases() -> Iterator[Any]:
    # The complete sequences run late, because they create workspaces that only stock MLflow
    # accepts, and these appear in lists from then on. The deletion is last, because SQLite reuses
    # an experiment id afterwards.
    whole = [pytest.param(about, False, id=f"all of {about}", marks=pytest.mark.slow) for about in SAMPLES]
    for about in SEQUENCES:
        yield from whole if about == "deletion" else []
        yield pytest.param(about, about in SAMPLES, id=about, marks=[pytest.mark.slow] * (about in SLOW))


#: Sequences that were played on the two servers: samples in `make test`, and complete ones in `make
#: test-slow`.
_PLAYED: set[str] = set()


@pytest.mark.parametrize(("about", "is_sample"), _cases())
def test_answers_are_the_same(about: str, is_sample: bool, pair: Pair) -> None:
    if about in SAMPLES and not is_sample and about in _PLAYED:
        pytest.skip("a sample has already created the same entities")
    _PLAYED.add(about)
    steps = (SAMPLES if is_sample else SEQUENCES)[about]()
    different = pair.play(steps, ACCEPTED.get(about, []), is_sample)
    if different:
        pytest.fail(f"{len(different)} steps differ:\n\n" + "\n\n".join(different), pytrace=False)
