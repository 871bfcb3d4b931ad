"""Large files, moved by the stock client."""

import os
from pathlib import Path

from mlflow import MlflowClient

_BLOCK = 1 << 20


def upload_and_download(url: str, experiment_id: str, directory: Path, megabytes: int) -> None:
    """Send a file as an artifact of a new run, fetch it, and compare; the directory is made, and left without files."""
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
