"""Uses a workspace with the stock client, and prints what it reads: `python -m
tests.workspaces.tour make TEAM` or `look IDS`.

The workspace is that of MLFLOW_WORKSPACE, unless `--set TEAM` sets one in the program. The output
is JSON.
"""

import json
import sys
from typing import Any

import mlflow
import requests
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

_EXPERIMENT, _NAME = "quickstart", "shared"


def _double(model_input: list[str]) -> list[str]:
    return [text * 2 for text in model_input]


def make(team: str) -> dict[str, Any]:
    """Creates one entity of each kind, with the same names in each workspace. Returns the ids, and
    what was read back.
    """
    client = MlflowClient()
    experiment = mlflow.set_experiment(_EXPERIMENT)
    with mlflow.start_run(run_name=team, tags={"team": team}) as run:
        mlflow.log_params({"team": team})
        for step in range(3):
            mlflow.log_metric("loss", 0.5**step, step=step)
        mlflow.log_text(f"of {team}", "notes/notes.txt")
        logged = mlflow.pyfunc.log_model(name="model", python_model=_double, registered_model_name=_NAME, pip_requirements=["mlflow"])
    with mlflow.start_span(name=team) as span:
        span.set_inputs({"team": team})
    mlflow.flush_trace_async_logging()
    mlflow.genai.register_prompt(name="greeting", template=f"Hello {team}")
    client.set_registered_model_alias(_NAME, "best", "1")
    data = mlflow.genai.datasets.create_dataset(name="questions", experiment_id=experiment.experiment_id)
    data.merge_records([{"inputs": {"question": team}}])
    found = mlflow.get_run(run.info.run_id)
    return {
        "ids": {
            "experiment": experiment.experiment_id,
            "run": run.info.run_id,
            "artifacts": run.info.artifact_uri,
            "model": logged.model_id,
            "trace": span.trace_id,
            "dataset": data.dataset_id,
        },
        "params": found.data.params,
        "history": [point.value for point in client.get_metric_history(run.info.run_id, "loss")],
        "notes": mlflow.artifacts.load_text(f"{run.info.artifact_uri}/notes/notes.txt"),
        "files": [file.path for file in client.list_artifacts(run.info.run_id, "notes")],
        "prediction": mlflow.pyfunc.load_model(f"models:/{_NAME}@best").predict(["ab"]),
        "logged": mlflow.pyfunc.load_model(logged.model_uri).predict(["x"]),
        "spans": [span.name for span in mlflow.get_trace(span.trace_id).data.spans],
        **_seen(client, experiment.experiment_id),
    }


def _seen(client: MlflowClient, experiment: str) -> dict[str, Any]:
    """Returns the results of lists and searches."""
    return {
        "experiments": sorted(found.name for found in client.search_experiments()),
        "runs": [run.info.run_name for run in client.search_runs([experiment])],
        "logged models": [model.name for model in mlflow.search_logged_models([experiment], output_format="list")],
        "traces": [trace.data.spans[0].name for trace in mlflow.search_traces(locations=[experiment], return_type="list")],
        "models": [model.name for model in client.search_registered_models()],
        "versions": [version.run_id for version in client.search_model_versions()],
        "prompts": [prompt.name for prompt in mlflow.genai.search_prompts()],
        "prompt": mlflow.genai.load_prompt("prompts:/greeting/1").template,
        "datasets": [data.name for data in mlflow.genai.datasets.search_datasets()],
    }


def look(ids: dict[str, str]) -> dict[str, str]:
    """Requests entities of another workspace by their ids, and returns the results or errors."""
    client = MlflowClient()
    asked = {
        "experiment": lambda: client.get_experiment(ids["experiment"]).name,
        "run": lambda: client.get_run(ids["run"]).info.run_name,
        "runs": lambda: client.search_runs([ids["experiment"]]),
        "write": lambda: client.log_param(ids["run"], "stolen", "1"),
        "model": lambda: client.get_logged_model(ids["model"]).name,
        "files": lambda: client.list_artifacts(ids["run"]),
        "file": lambda: mlflow.artifacts.load_text(f"{ids['artifacts']}/notes/notes.txt"),
        "trace": lambda: mlflow.get_trace(ids["trace"]),
        "traces": lambda: mlflow.search_traces(locations=[ids["experiment"]], return_type="list"),
        "dataset": lambda: mlflow.genai.datasets.get_dataset(dataset_id=ids["dataset"]).name,
    }
    return {name: _said(ask) for name, ask in asked.items()}


def _said(ask: Any) -> str:
    try:
        return repr(ask())
    except MlflowException as error:
        return error.error_code
    except requests.HTTPError as error:
        # The client raises this for artifact downloads.
        return f"status {error.response.status_code}"


if __name__ == "__main__":
    if "--set" in sys.argv:
        at = sys.argv.index("--set")
        mlflow.set_workspace(sys.argv[at + 1])
        del sys.argv[at : at + 2]
    what, argument = sys.argv[1:]
    print(json.dumps(make(argument) if what == "make" else look(json.loads(argument))))
