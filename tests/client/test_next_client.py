"""Tests that the client of MLflow 3.18.0 can use APIs that 3.17.2 does not have, and that its command
`mlflow demo` fills a server.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.http import Request, Side
from tests.support.next_release import next_release
from tests.support.processes import child_environment
from tests.support.servers import ServerlessMlflow


def _run(directory: Path, *arguments: str) -> str:
    environment = child_environment(PYTHONPATH=str(next_release()), MLFLOW_GENAI_EVAL_MAX_WORKERS="2")
    done = subprocess.run([sys.executable, *arguments], cwd=directory, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_reviews_issues_servers_and_skills(tmp_path: Path) -> None:
    server = ServerlessMlflow(tmp_path / "server", in_memory=True, artifact_root="mlflow-artifacts:/")
    try:
        _run(tmp_path, str(Path(__file__).with_name("next_client_program.py")), server.url, str(tmp_path))
    finally:
        server.stop()


@pytest.mark.slow
def test_the_demo_fills_a_server(tmp_path: Path) -> None:
    server = ServerlessMlflow(tmp_path / "server", in_memory=True, artifact_root="mlflow-artifacts:/")
    try:
        told = _run(tmp_path, "-m", "mlflow", "demo", "--no-browser", "--tracking-uri", server.url)
        assert "Generated: prompts, traces, custom_view, saved_views, evaluation, judges, issues, review_queues" in told, told
        assert "ERROR" not in told, told
        side = Side("subject", server.url)
        search = Request.of_json("POST", "/api/3.0/mlflow/issues/search", {"experiment_id": "1", "include_trace_count": True})
        issues = side.send(search).body["issues"]
        queues = side.send(Request("GET", "/api/3.0/mlflow/review-queues/list", {"experiment_id": "1"})).body["review_queues"]
    finally:
        server.stop()
    assert len(issues) == 4 and all(issue["trace_count"] > 0 for issue in issues), issues
    assert len(queues) == 4, queues
