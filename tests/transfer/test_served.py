"""Clients see what was imported as they see it on MLflow's own server, and the other way round for
an export.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.http import Request, Side
from tests.support.servers import ServerlessMlflow, StockMlflow, stock_database
from tests.transfer import rows, schemas
from tests.transfer.commands import run
from tests.transfer.schemas import SchemaTemplates

_EVERYTHING = ["ACTIVE_ONLY", "DELETED_ONLY", "ALL"]


@pytest.fixture(scope="module")
def source(sqlite: SchemaTemplates) -> str:
    """Returns a database with entities of many kinds."""
    source = sqlite.create(schemas.INSTALLED)
    schemas.fill(source, rows.everything(with_long_ids=True))
    return source


@pytest.fixture(scope="module")
def sides(source: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    """Yields stock MLflow over a database, and the server under test over its import."""
    directory = tmp_path_factory.mktemp("served")
    run("import", "--from", source, "--data", directory / "subject/data")
    (directory / "reference").mkdir()
    stock_database(directory / "reference").write_bytes(Path(source.removeprefix("sqlite:///")).read_bytes())
    reference, subject = StockMlflow(directory / "reference"), ServerlessMlflow(directory / "subject")
    yield Side("reference", reference.url), Side("subject", subject.url)
    reference.stop()
    subject.stop()


def reads(side: Side) -> Iterator[tuple[str, Any]]:
    """Yields the responses to all reads of everything that a server has, with a description."""

    def get(path: str, **query: Any) -> Any:
        answer = side.send(Request("GET", f"/api/2.0/mlflow/{path}", query))
        assert answer.status == 200, (path, query, answer)
        return answer.body

    def post(path: str, body: dict) -> Any:
        answer = side.send(Request.of_json("POST", f"/ajax-api/2.0/mlflow/{path}", body))
        assert answer.status == 200, (path, body, answer)
        return answer.body

    experiments = get("experiments/search", max_results=100, view_type="ALL")["experiments"]
    yield "experiments", sorted(experiments, key=lambda experiment: experiment["experiment_id"])
    for experiment in experiments:
        id_ = experiment["experiment_id"]
        yield f"experiment {id_}", get("experiments/get", experiment_id=id_)
        for view in _EVERYTHING:
            for order in ([], ["metrics.loss DESC"], ["attributes.end_time ASC"]):
                body = {"experiment_ids": [id_], "run_view_type": view, "order_by": order, "max_results": 100}
                yield f"runs of {id_}, {view}, {order}", post("runs/search", body)
        for run_ in post("runs/search", {"experiment_ids": [id_], "run_view_type": "ALL"}).get("runs", []):
            run_id = run_["info"]["run_id"]
            yield f"run {run_id}", get("runs/get", run_id=run_id)
            for metric in run_["data"].get("metrics", []):
                yield f"{metric['key']} of {run_id}", get("metrics/get-history", run_id=run_id, metric_key=metric["key"])
        yield f"datasets of {id_}", post("experiments/search-datasets", {"experiment_ids": [id_]})


def reads_of_models(side: Side) -> Iterator[tuple[str, Any]]:
    """Yields the responses to all reads of logged and registered models."""

    def send(method: str, path: str, body: dict) -> Any:
        prefix = f"/ajax-api/2.0/mlflow/{path}"
        answer = side.send(Request("GET", prefix, body) if method == "GET" else Request.of_json(method, prefix, body))
        return {"status": answer.status, "body": answer.body}

    yield "logged models", send("POST", "logged-models/search", {"experiment_ids": ["1"]})
    for model in rows.LOGGED_MODELS:
        yield model, send("GET", f"logged-models/{model}", {})
    for filter_ in ("", "prompt = 'true'", "tags.`mlflow.prompt.is_prompt` = 'true'"):
        yield f"models, {filter_}", send("GET", "registered-models/search", {"filter": filter_})
    for name in ("churn", "empty", "greeting", "gone"):
        yield name, send("GET", "registered-models/get", {"name": name})
        versions = send("GET", "model-versions/search", {"filter": f"name = '{name}'"})
        for version in versions["body"].get("model_versions", []):
            # MLflow omits aliases here (docs/guide/differences.md).
            version.pop("aliases", None)
        yield f"versions of {name}", versions
        yield f"latest of {name}", send("POST", "registered-models/get-latest-versions", {"name": name})
        for number in range(1, 5):
            yield f"{name} {number}", send("GET", "model-versions/get", {"name": name, "version": str(number)})
            yield f"files of {name} {number}", send("GET", "model-versions/get-download-uri", {"name": name, "version": str(number)})
    for alias in ("champion", "first", "none"):
        yield alias, send("GET", "registered-models/alias", {"name": "churn", "alias": alias})
    webhooks = send("GET", "webhooks", {})
    for webhook in webhooks["body"]["webhooks"]:
        # Imported webhooks get new ids.
        del webhook["webhook_id"]
        webhook["events"].sort(key=repr)
    yield "webhooks", webhooks
    versions = send("GET", "model-versions/search", {"filter": f"run_id = '{rows.FINISHED}'"})
    for version in versions["body"]["model_versions"]:
        version.pop("aliases", None)
    yield "versions of a run", versions


def differences(expected: Any, found: Any, path: str) -> Iterator[str]:
    """Yields the parts in which two responses differ, each with its path."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in sorted(expected.keys() | found.keys()):
            yield from differences(expected.get(key, "missing"), found.get(key, "missing"), f"{path}/{key}")
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for position, (one, other) in enumerate(zip(expected, found, strict=True)):
            yield from differences(one, other, f"{path}/{position}")
    elif expected != found:
        yield f"{path}: {str(expected)[:200]!r} became {str(found)[:200]!r}"


def _in_any_order(value: Any) -> Any:
    """Sorts the lists whose order MLflow leaves to the database: tags, params, metrics, inputs."""
    if isinstance(value, dict):
        unordered = ("tags", "params", "metrics", "dataset_inputs", "dataset_summaries", "model_inputs", "model_outputs", "aliases", "latest_versions")
        inner = {key: _in_any_order(part) for key, part in value.items()}
        return {key: sorted(part, key=repr) if key in unordered and isinstance(part, list) else part for key, part in inner.items()}
    return [_in_any_order(part) for part in value] if isinstance(value, list) else value


def test_clients_see_no_difference(sides: tuple[Side, Side]) -> None:
    reference, subject = (_in_any_order(dict([*reads(side), *reads_of_models(side)])) for side in sides)
    assert reference.keys() == subject.keys()
    different = [difference for what, expected in reference.items() for difference in differences(expected, subject[what], what)]
    assert not different, "\n".join(different[:20])


def test_an_export_is_served_by_mlflow_and_imported_without_a_change(source: str, sides: tuple[Side, Side], tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("exported")
    run("import", "--from", source, "--data", directory / "data")
    (directory / "stock").mkdir()
    file = stock_database(directory / "stock")
    run("export", "--to", file, "--data", directory / "data")
    assert " imported" not in run("import", "--from", f"sqlite:///{file}", "--data", directory / "data").replace(" 0 imported", "")
    server = StockMlflow(directory / "stock")
    sides_of_stock = (sides[0], Side("export", server.url))
    reference, exported = (_in_any_order(dict([*reads(side), *reads_of_models(side)])) for side in sides_of_stock)
    server.stop()
    different = [difference for what, expected in reference.items() for difference in differences(expected, exported[what], what)]
    assert not different, "\n".join(different[:20])


def test_a_run_in_an_experiment_with_a_long_id_is_found_at_once(sides: tuple[Side, Side]) -> None:
    import mlflow

    client = mlflow.MlflowClient(sides[1].url)
    experiment = str(rows.LONG_EXPERIMENT)
    created = client.create_run(experiment, run_name="new")
    run_id = created.info.run_id
    client.log_metric(run_id, "loss", 0.5)
    assert client.get_run(run_id).data.metrics == {"loss": 0.5}
    found = client.search_runs([experiment], "attributes.run_name = 'new' AND metrics.loss < 1")
    assert [run.info.run_id for run in found] == [run_id]
    client.log_metric(rows.LONG_EXPERIMENT_RUN, "more", 1.5)
    assert client.get_run(rows.LONG_EXPERIMENT_RUN).data.metrics["more"] == 1.5
