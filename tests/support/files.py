"""Transfers files with stock clients: large files, and files of many concurrent clients."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mlflow import MlflowClient

_BLOCK = 1 << 20
_FILES_EACH = 5
_FILE_BYTES = 100_000


def upload_and_download(url: str, experiment_id: str, directory: Path, megabytes: int) -> None:
    """Uploads a large file as an artifact of a new run, downloads it, and compares the contents.
    Creates `directory`, and removes the files from it at the end.
    """
    directory.mkdir()
    sent, random = directory / "big.bin", os.urandom(_BLOCK)
    with sent.open("wb") as target:
        for number in range(megabytes):
            target.write(number.to_bytes(8, "big") + random[8:])
    client = MlflowClient(url)
    run_id = client.create_run(experiment_id).info.run_id
    client.log_artifact(run_id, str(sent))
    assert [each.file_size for each in client.list_artifacts(run_id)] == [megabytes << 20]
    (directory / "fetched").mkdir()
    fetched = Path(client.download_artifacts(run_id, sent.name, str(directory / "fetched")))
    with sent.open("rb") as left, fetched.open("rb") as right:
        while block := left.read(_BLOCK):
            assert right.read(_BLOCK) == block
        assert right.read(1) == b""
    for path in (sent, fetched):
        path.unlink()


def log_and_fetch_by_many(url: str, experiment_id: str, directory: Path, clients: int) -> None:
    """Logs and downloads files with concurrent clients, which all start at the same time.

    Each client logs files to a run of its own and one file to a shared run, and then downloads the
    files of its own run. At the end, another client downloads all files of the shared run.
    """
    shared = MlflowClient(url).create_run(experiment_id).info.run_id
    start = threading.Barrier(clients, timeout=600)

    def work(number: int) -> None:
        client, sent, fetched = MlflowClient(url), directory / f"sent-{number}", directory / f"fetched-{number}"
        content = {f"{number}-{file}.bin": bytes([number, file]) * (_FILE_BYTES // 2) for file in range(_FILES_EACH)}
        for path in (sent, fetched):
            path.mkdir()
        for name, body in content.items():
            (sent / name).write_bytes(body)
        start.wait()
        run_id = client.create_run(experiment_id).info.run_id
        client.log_artifacts(run_id, str(sent), "files")
        client.log_artifact(shared, str(sent / f"{number}-0.bin"), "of all")
        assert _contents(client.download_artifacts(run_id, "files", str(fetched))) == content

    with ThreadPoolExecutor(clients) as threads:
        for _ in threads.map(work, range(clients)):
            pass
    found = _contents(MlflowClient(url).download_artifacts(shared, "of all", str(directory)))
    assert found == {f"{number}-0.bin": bytes([number, 0]) * (_FILE_BYTES // 2) for number in range(clients)}


def _contents(directory: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(directory).iterdir()}
