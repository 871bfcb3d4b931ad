"""A server with secret files next to its artifacts, in a directory or in a bucket."""

import json
from pathlib import Path
from typing import Any

import mlflow
import requests
from mlflow import MlflowClient
from mlflow.utils.server_info import _clear_server_info_cache

from tests.support.http import send_as_it_is
from tests.support.s3 import LocalS3
from tests.support.servers import ServerlessMlflow

SERVED = "/api/2.0/mlflow-artifacts"
SECRET = b"secret of another"
#: Content of the files that the tested paths may lead to.
MINE = b"my own content"


class Attacked:
    """A server whose files the test inspects directly. They are in `place` or in the bucket, with
    the artifacts in `artifacts/`.
    """

    def __init__(self, directory: Path, s3: LocalS3 | None, name: str, is_direct: bool):
        self.place = directory / "place"
        self.bucket = s3.make_bucket(name) if s3 else None
        for path in ("secret", "outside/secret", "artifacts-of-another/secret"):
            self.put(path, SECRET)
        destination = f"s3://{name}/artifacts" if s3 else str(self.place / "artifacts")
        self.server = ServerlessMlflow(
            directory / "server",
            in_memory=True,
            options=("--artifacts-destination", destination),
            artifact_root=destination if is_direct else "mlflow-artifacts:/",
            environment=s3.environment if s3 else None,
        )
        self.url = self.server.url
        mlflow.set_tracking_uri(self.url)
        _clear_server_info_cache()

    def put(self, path: str, content: bytes) -> None:
        if self.bucket:
            self.bucket.put(path, content)
        else:
            (self.place / path).parent.mkdir(parents=True, exist_ok=True)
            (self.place / path).write_bytes(content)

    def files(self) -> dict[str, bytes]:
        """Returns the paths and contents of all files, without unfinished uploads."""
        if self.bucket:
            return {key: self.bucket.get(key) for key in self.bucket.keys()}
        found = {str(path.relative_to(self.place)): path for path in self.place.rglob("*") if path.is_file()}
        return {name: path.read_bytes() for name, path in found.items() if ".artifact.uploading." not in name}

    def raw(self, method: str, target: str, body: bytes = b"") -> tuple[int, dict[str, str], str]:
        """Sends a request without normalizing its target. Returns status, headers and text of the
        response. Does not follow redirects.
        """
        return send_as_it_is(self.url, method, target, body)

    def post(self, path: str, body: Any, headers: dict[str, str] | None = None) -> Any:
        answer = requests.post(f"{self.url}{path}", json=body, headers=headers, timeout=60)
        answer.raise_for_status()
        return answer.json()


class Owners:
    """Two runs, a logged model, a model version and a trace, each with an artifact `mine`. The
    artifact of the second run is secret."""

    def __init__(self, attacked: Attacked):
        client = MlflowClient(attacked.url)
        self.run, self.other = (client.create_run("0").info.run_id for _ in range(2))
        self.model = client.create_logged_model("0", name="m").model_id
        client.create_registered_model("r")
        client.create_model_version("r", f"models:/{self.model}", model_id=self.model)
        self.trace = f"tr-{7:032x}"
        location = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": "0"}}
        info = {"trace_id": self.trace, "trace_location": location, "request_time": "2025-01-01T00:00:00Z", "state": "OK"}
        attacked.post("/api/3.0/mlflow/traces", {"trace": {"trace_info": info}})
        self.of_run, self.of_model = f"0/{self.run}/artifacts", f"0/models/{self.model}/artifacts"
        self.of_trace = f"0/traces/{self.trace}/artifacts/attachments"
        for directory in (self.of_run, self.of_model, self.of_trace, "0"):
            attacked.put(f"artifacts/{directory}/mine", MINE)
        attacked.put(f"artifacts/0/{self.other}/artifacts/mine", SECRET)
        #: Paths from a run's artifacts to those of the other run.
        self.beside = [f"../../{self.other}/artifacts/mine", f"..%2f..%2f{self.other}%2fartifacts%2fmine"]


def graphql(run: str, path: str) -> bytes:
    """Returns the body of a query for a run's artifacts."""
    query = "query($r: String, $p: String) { mlflowListArtifacts(input: {runId: $r, path: $p}) { files { path } } }"
    return json.dumps({"query": query, "variables": {"r": run, "p": path}}).encode()
