"""Compares the pages that show the data of `mlflow demo`, on MLflow 3.18.0 and on the server under
test.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.browser.conftest import OUTPUT
from tests.browser.texts import differences
from tests.browser.visit import Desk, Visit
from tests.support.http import Request, Side
from tests.support.next_release import form_reader, next_release
from tests.support.processes import child_environment
from tests.support.servers import NextStockMlflow, ServerlessMlflow

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("demo")]

_PROGRAM = Path(__file__).with_name("demo_program.py")
_SECONDS = 600
#: The pages by their names. Braces contain the names of ids.
_PAGES = {
    "home": "",
    "experiments": "experiments",
    "experiment": "experiments/{experiment}",
    "usage": "experiments/{experiment}/dashboard/usage",
    "quality": "experiments/{experiment}/dashboard/quality",
    "tool calls": "experiments/{experiment}/dashboard/tool-calls",
    "traces": "experiments/{experiment}/traces",
    "trace": "experiments/{experiment}/traces/{trace}",
    "sessions": "experiments/{experiment}/chat-sessions",
    "session": "experiments/{experiment}/chat-sessions/{session}",
    "issues": "experiments/{experiment}/issues",
    "issue runs": "experiments/{experiment}/issues/runs",
    "review queues": "experiments/{experiment}/review-queue",
    "datasets": "experiments/{experiment}/datasets",
    "evaluation runs": "experiments/{experiment}/evaluation-runs",
    "evaluation run": "experiments/{experiment}/evaluation-runs/{run}/details",
    "judges": "experiments/{experiment}/judges",
    "prompts of experiment": "experiments/{experiment}/prompts",
    "runs": "experiments/{experiment}/runs",
    "run": "experiments/{experiment}/runs/{run}",
    "prompts": "prompts",
    "prompt": "prompts/{prompt}",
    "settings": "settings",
}
#: Pages that show metrics, tags and assessments, which MLflow returns in any order.
_IN_ANY_ORDER = {"traces", "trace", "session", "evaluation runs", "evaluation run", "run"}


def test_pages_of_the_demo_show_the_same(desks: dict[str, Desk], subtests: pytest.Subtests) -> None:
    for page, path in _PAGES.items():
        with subtests.test(page):
            started = {side: desk.do(page, lambda visit, path=path: _open(visit, path)) for side, desk in desks.items()}
            reference, subject = (started[side].result(_SECONDS) for side in ("reference", "subject"))
            assert differences(reference.looks["page"], subject.looks["page"], page in _IN_ANY_ORDER) == []
            assert set(subject.problems) <= set(reference.problems)


@pytest.fixture(scope="module")
def desks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Desk]]:
    """Yields a browser on each server, with the data of the demo."""
    starts = {"reference": _stock, "subject": _ours}
    now = str(time.time())
    with ExitStack() as stops:
        with ThreadPoolExecutor() as threads:
            begun = {side: threads.submit(start, tmp_path_factory.mktemp(side)) for side, start in starts.items()}
            servers = {side: server.result() for side, server in begun.items()}
            for server in servers.values():
                stops.callback(server.stop)
            list(threads.map(lambda server: _run_demo(server.url, now), servers.values()))
        opened = {side: Desk(server.url, _ids(Side(side, server.url)), OUTPUT / f"demo {side}") for side, server in servers.items()}
        for desk in opened.values():
            stops.callback(desk.close)
        yield opened


def _run_demo(url: str, now: str) -> None:
    # On both servers, the cost of a trace depends on how many of its spans arrive before its end.
    one_at_a_time = {"MLFLOW_ENABLE_ASYNC_TRACE_LOGGING": "false", "MLFLOW_GENAI_EVAL_MAX_WORKERS": "1"}
    environment = child_environment(PYTHONPATH=str(next_release()), **one_at_a_time)
    command = [sys.executable, str(_PROGRAM), url, now]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_SECONDS)
    assert done.returncode == 0 and "ERROR" not in done.stdout + done.stderr, done.stdout + done.stderr


def _open(visit: Visit, path: str) -> None:
    visit.open(path.format(**visit.ids))
    visit.look_at_page()


def _stock(directory: Path) -> NextStockMlflow:
    release = next_release()
    return NextStockMlflow(directory / "server", release, environment={"PYTHONPATH": os.pathsep.join(map(str, (release, form_reader())))})


def _ours(directory: Path) -> ServerlessMlflow:
    build = next_release() / "mlflow/server/js/build"
    return ServerlessMlflow(directory / "server", options=("--ui", str(build)), artifact_root="mlflow-artifacts:/")


def _ids(side: Side) -> dict[str, str]:
    """Returns the ids in the addresses of the pages."""

    def found(path: str, body: dict) -> dict:
        answer = side.send(Request.of_json("POST", path, body))
        assert answer.status == 200, answer
        return answer.body

    by_name = side.send(Request("GET", "/api/2.0/mlflow/experiments/get-by-name", {"experiment_name": "MLflow Demo"}))
    experiment = by_name.body["experiment"]["experiment_id"]
    places = [{"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": experiment}}]
    traces = found("/api/3.0/mlflow/traces/search", {"locations": places, "max_results": 500, "order_by": ["timestamp_ms DESC"]})["traces"]
    in_session = next(trace for trace in traces if "mlflow.trace.session" in trace["trace_metadata"])
    runs = found("/api/2.0/mlflow/runs/search", {"experiment_ids": [experiment], "max_results": 100})["runs"]
    return {
        "experiment": experiment,
        "trace": in_session["trace_id"],
        "session": in_session["trace_metadata"]["mlflow.trace.session"],
        "run": next(run["info"]["run_id"] for run in runs if run["info"]["run_name"] == "trace-level-evaluation"),
        "prompt": "mlflow-demo.prompts.customer-support",
    }
