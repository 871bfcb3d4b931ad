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
def sides(sqlite: SchemaTemplates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    """Yields stock MLflow over a database, and the server under test over its import."""
    directory = tmp_path_factory.mktemp("served")
    source = sqlite.create(schemas.INSTALLED)
    schemas.fill(source, rows.tracking(with_long_ids=True))
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


def _in_any_order(value: Any) -> Any:
    """Sorts the lists whose order MLflow leaves to the database: tags, params, metrics, inputs."""
    if isinstance(value, dict):
        unordered = ("tags", "params", "metrics", "dataset_inputs", "dataset_summaries", "model_inputs", "model_outputs")
        inner = {key: _in_any_order(part) for key, part in value.items()}
        return {key: sorted(part, key=repr) if key in unordered and isinstance(part, list) else part for key, part in inner.items()}
    return [_in_any_order(part) for part in value] if isinstance(value, list) else value


def test_clients_see_no_difference(sides: tuple[Side, Side]) -> None:
    reference, subject = (_in_any_order(dict(reads(side))) for side in sides)
    assert reference.keys() == subject.keys()
    for what, expected in reference.items():
        assert subject[what] == expected, what


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
