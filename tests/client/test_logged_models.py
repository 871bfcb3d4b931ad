"""Tests of logged models for users whose models are stored elsewhere."""

import time

import mlflow
import pytest
from mlflow import MlflowClient
from mlflow.entities import LoggedModelStatus
from mlflow.exceptions import MlflowException

from tests.support.http import Request, Side
from tests.support.servers import ServerlessMlflow, subject_is_stock_mlflow

from .pages import pages


@pytest.fixture
def experiment_in_use(client: MlflowClient, experiment: str) -> str:
    mlflow.set_experiment(experiment_id=experiment)
    return experiment


def test_an_external_model_from_its_creation_to_its_deletion(client: MlflowClient, experiment_in_use: str):
    model = mlflow.create_external_model(
        name="agent", model_type="agent", params={"temperature": "0.1", "long": "x" * 7_000}, tags={"stage": "test"}
    )
    assert model.status == LoggedModelStatus.READY
    assert model.experiment_id == experiment_in_use
    mlflow.set_logged_model_tags(model.model_id, {"stage": "production", "gone": "soon", "n": 5})
    mlflow.delete_logged_model_tag(model.model_id, "gone")
    mlflow.log_model_params({"depth": "3", "é": "ü"}, model_id=model.model_id)

    found = mlflow.get_logged_model(model.model_id)
    assert (found.name, found.model_type, found.model_uri) == ("agent", "agent", f"models:/{model.model_id}")
    assert found.params == {"temperature": "0.1", "long": "x" * 7_000, "depth": "3", "é": "ü"}
    assert {key: found.tags[key] for key in ("stage", "n")} == {"stage": "production", "n": "5"}
    assert "gone" not in found.tags
    assert found.last_updated_timestamp >= found.creation_timestamp

    client.delete_logged_model(model.model_id)
    with pytest.raises(MlflowException, match="not found"):
        client.get_logged_model(model.model_id)
    assert client.search_logged_models([experiment_in_use]) == []


def test_a_model_is_initialized_and_finalized(client: MlflowClient, experiment_in_use: str):
    with mlflow.start_run() as run:
        model = mlflow.initialize_logged_model(name="net")
        assert model.status == LoggedModelStatus.PENDING
        mlflow.finalize_logged_model(model.model_id, "READY")
    found = mlflow.get_logged_model(model.model_id)
    assert found.status == LoggedModelStatus.READY
    assert found.source_run_id == run.info.run_id

    failed = mlflow.initialize_logged_model(name="other")
    client.finalize_logged_model(failed.model_id, LoggedModelStatus.FAILED)
    assert client.get_logged_model(failed.model_id).status == LoggedModelStatus.FAILED


def test_metrics_of_a_model_in_several_runs(client: MlflowClient, experiment_in_use: str):
    model = mlflow.create_external_model(name="measured")
    runs = []
    for value in (0.5, 0.75):
        with mlflow.start_run() as run:
            runs.append(run.info.run_id)
            for step in range(3):
                mlflow.log_metric("accuracy", value + step, step=step, model_id=model.model_id)
            mlflow.log_metrics({"f1": value, "loss": 1 - value}, model_id=model.model_id, step=7)

    metrics = mlflow.get_logged_model(model.model_id).metrics
    assert {(metric.key, metric.run_id, metric.step): metric.value for metric in metrics} == {
        (key, run_id, step): value
        for run_id, of_run in zip(runs, (0.5, 0.75))
        for key, step, value in [
            ("accuracy", 0, of_run),
            ("accuracy", 1, of_run + 1),
            ("accuracy", 2, of_run + 2),
            ("f1", 7, of_run),
            ("loss", 7, 1 - of_run),
        ]
    }
    assert all(metric.model_id == model.model_id for metric in metrics)


def test_searching_by_param_and_tag_in_order_and_in_pages(client: MlflowClient, experiment_in_use: str):
    for number in range(7):
        mlflow.create_external_model(
            name=f"model-{number}",
            params={"depth": str(number), "kind": "tree" if number % 2 else "line"},
            tags={"team": "blue" if number < 4 else "red"},
        )
        time.sleep(0.003)

    def names(filter_string: str | None = None, **more) -> list[str]:
        found = client.search_logged_models([experiment_in_use], filter_string=filter_string, **more)
        return [model.name for model in found]

    assert names() == [f"model-{number}" for number in reversed(range(7))]
    assert names("params.kind = 'tree'") == ["model-5", "model-3", "model-1"]
    assert names("params.kind = 'tree' AND tags.team = 'blue'") == ["model-3", "model-1"]
    assert names("name LIKE 'model-%' AND params.depth IN ('2', '6')") == ["model-6", "model-2"]
    by_name = [{"field_name": "name", "ascending": True}]
    assert names(order_by=by_name) == [f"model-{number}" for number in range(7)]

    def search(token: str | None):
        return client.search_logged_models([experiment_in_use], max_results=3, order_by=by_name, page_token=token)

    paged = [[model.name for model in page] for page in pages(search)]
    assert paged == [["model-0", "model-1", "model-2"], ["model-3", "model-4", "model-5"], ["model-6"]]
    frame = mlflow.search_logged_models([experiment_in_use], filter_string="params.depth = '4'")
    assert list(frame["name"]) == ["model-4"]
    listed = mlflow.search_logged_models([experiment_in_use], max_results=2, output_format="list")
    assert [model.name for model in listed] == ["model-6", "model-5"]
    with pytest.raises(MlflowException, match="Invalid filter string"):
        names("params.kind = 'tree' OR name = 'x'")


@pytest.mark.skipif(subject_is_stock_mlflow(), reason="stock MLflow reads from any directory")
def test_the_user_interface_reads_artifacts_from_the_servers_own_directory(client: MlflowClient, tmp_path):
    server = ServerlessMlflow(tmp_path / "server", in_memory=True, artifact_root=str(tmp_path / "artifacts"))
    try:
        mlflow.set_tracking_uri(server.url)
        client = MlflowClient(server.url)
        model = mlflow.initialize_logged_model(name="files")
        (tmp_path / "a.txt").write_text("content")
        client.log_model_artifact(model.model_id, str(tmp_path / "a.txt"), "sub")
        path = f"/ajax-api/2.0/mlflow/logged-models/{model.model_id}/artifacts"
        side = Side("subject", server.url)
        listed = side.send(Request("GET", f"{path}/directories", {"artifact_directory_path": "sub"})).body
        assert listed["files"] == [{"path": "sub/a.txt", "is_dir": False, "file_size": 7}]
        sent = side.send(Request("GET", f"{path}/files", {"artifact_file_path": "sub/a.txt"}))
        assert (sent.status, sent.body) == (200, "content")
    finally:
        server.stop()
