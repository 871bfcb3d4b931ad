"""Tests operations across workspaces that stock MLflow permits and this server refuses."""

from collections.abc import Iterator

import pytest

from tests.compare.times import Clock
from tests.support.http import Side
from tests.workspaces.world import V2, V3, WORKSPACES, Player, ask, start_ours


@pytest.fixture
def ours(tmp_path) -> Iterator[Player]:
    server = start_ours(tmp_path / "server")
    try:
        yield Player(Side("ours", server.url), Clock())
    finally:
        server.stop()


def test_nothing_is_tied_to_what_another_workspace_has(ours: Player) -> None:
    for workspace in ("one", "two"):
        made = {"name": "same"}
        for step in (
            ask(None, "POST", WORKSPACES, {"name": workspace}),
            ask(workspace, "POST", f"{V2}/experiments/create", made, **{f"experiment-{workspace}": "experiment_id"}),
            ask(workspace, "POST", f"{V2}/runs/create", {"experiment_id": f"$experiment-{workspace}"}, **{f"run-{workspace}": "run.info.run_id"}),
            ask(workspace, "POST", f"{V2}/logged-models", {"experiment_id": f"$experiment-{workspace}", **made}, **{f"model-{workspace}": "model.info.model_id"}),
        ):
            assert ours.play(step).status < 300, step
    refused = [
        # Stock MLflow checks the experiments of a dataset only if they are added later.
        (404, ask("one", "POST", f"{V3}/datasets/create", {"name": "of both", "experiment_ids": ["$experiment-one", "$experiment-two"]})),
        # Stock MLflow writes the metric to the model in the other workspace.
        (400, ask("one", "POST", f"{V2}/runs/log-metric", {"run_id": "$run-one", "key": "m", "value": 1, "timestamp": 1, "model_id": "$model-two"})),
    ]
    for status, step in refused:
        answer = ours.play(step)
        assert answer.status == status, f"{step}: {answer}"
    assert ours.play(ask("one", "POST", f"{V3}/datasets/search", {})).body == {}
    model = ours.play(ask("two", "GET", f"{V2}/logged-models/$model-two")).body["model"]
    assert "metrics" not in model["data"]
