"""Tests the program of a release in a root directory that contains nothing else, as in
a container.
"""

import os
import platform
import re
import shutil
import struct
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
from mlflow import MlflowClient

from tests.support.local_engine import local_engine
from tests.support.processes import ChildProcess, wait_until
from tests.support.tls import make_certificate, tls_before

_RELEASED = os.environ.get("RELEASED")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not _RELEASED, reason="RELEASED is not set to a directory of archives, which `make release PROFILE=dev` creates"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the root directory"),
]


@pytest.fixture(scope="module")
def archive() -> Path:
    processor = {"aarch64": "arm64"}.get(platform.machine(), platform.machine())
    [found] = Path(_RELEASED).glob(f"*-linux-{processor}.tar.gz")
    return found


@pytest.fixture
def root(archive: Path, tmp_path: Path) -> Path:
    """Creates an empty root directory with the program."""
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path / "unpacked", filter="data")
    [folder] = (tmp_path / "unpacked").iterdir()
    empty = tmp_path / "root"
    empty.mkdir()
    (folder / "mlflow-serverless").rename(empty / "mlflow-serverless")
    return empty


@pytest.mark.skipif(not shutil.which("buildah"), reason="Debian's package buildah is not installed")
def test_a_container_is_made_of_it(archive: Path, tmp_path: Path):
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path / "unpacked", filter="data")
    [folder] = (tmp_path / "unpacked").iterdir()
    storage = ["--storage-driver", "vfs", "--root", str(tmp_path / "images"), "--runroot", str(tmp_path / "running")]

    def buildah(*arguments: str) -> str:
        done = subprocess.run(["buildah", *storage, *arguments], cwd=folder, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    buildah("bud", "--isolation", "chroot", "--file", "Containerfile", "--tag", "mlflow-serverless", ".")
    container = buildah("from", "localhost/mlflow-serverless")
    assert buildah("inspect", "--format", "{{.OCIv1.Config.User}}", container) == "65532:65532"
    said = buildah("run", "--isolation", "chroot", container, "--", "/mlflow-serverless", "--version")
    assert re.fullmatch(r"mlflow-serverless \d+\.\d+\.\d+", said)


@contextmanager
def _serving(root: Path, log: Path, *options: str, **environment: str) -> Iterator[tuple[str, ChildProcess]]:
    command = ["/usr/sbin/chroot", "--userspec=65532:65532", str(root), "/mlflow-serverless", "serve", "--port", "0", *options]
    process = ChildProcess(command, environment, root, log)
    try:
        found = wait_until(lambda: re.search(r"^(http://127\.0\.0\.1:\d+)$", process.log_text(), re.MULTILINE), "URL", process)
        yield found[1], process
    finally:
        process.stop()


def test_it_is_linked_with_nothing(root: Path):
    program = (root / "mlflow-serverless").read_bytes()
    offset, size, count = struct.unpack_from("<Q", program, 32)[0], *struct.unpack_from("<HH", program, 54)
    kinds = [struct.unpack_from("<I", program, offset + number * size)[0] for number in range(count)]
    # 3 is the type of an interpreter segment, which would name the loader of shared libraries.
    assert program[:4] == b"\x7fELF" and 3 not in kinds


def test_the_page_is_in_it(root: Path, tmp_path: Path):
    with _serving(root, tmp_path / "log", "--memory") as (url, _):
        page = requests.get(url, timeout=60)
        assert page.status_code == 200 and "<title>MLflow</title>" in page.text
        scripts = re.findall(r'src="(static-files/static/js/main\.[^"]+)"', page.text)
        assert scripts
        for script in scripts:
            compressed = requests.get(f"{url}/{script}", timeout=60)
            assert compressed.headers["Content-Encoding"] == "gzip" and "immutable" in compressed.headers["Cache-Control"]
            plain = requests.get(f"{url}/{script}", headers={"Accept-Encoding": "identity"}, timeout=60)
            assert plain.content == compressed.content
        assert requests.get(f"{url}/static-files/missing.js", timeout=60).status_code == 404


def test_it_serves_and_follows_a_table_over_tls(root: Path, tmp_path: Path):
    certificate, key = make_certificate(tmp_path)
    (root / "roots.pem").write_bytes(certificate.read_bytes())
    with local_engine(tmp_path / "engine") as engine, tls_before(engine.url, certificate, key) as endpoint:
        # Artifacts go to a bucket, so that nothing is written here.
        options = ("--dynamodb-endpoint", endpoint, "--follow-stream", "--run-indexing-interval", "0", "--artifact-root", "s3://bucket/root")
        with _serving(root, tmp_path / "log", *options, SSL_CERT_FILE="/roots.pem", **engine.environment) as (url, process):
            client = MlflowClient(url)
            experiment = client.create_experiment("e")
            run = client.create_run(experiment).info.run_id
            client.log_metric(run, "loss", 0.5)
            client.set_terminated(run)
            wait_until(lambda: engine.marks(experiment) == 0, "index", process)
            assert [found.info.run_id for found in client.search_runs([experiment], "metrics.loss < 1")] == [run]
        assert sorted(path.name for path in root.iterdir()) == ["mlflow-serverless", "roots.pem"]


def test_roots_of_trust_are_in_it_and_do_not_trust_everybody(root: Path, tmp_path: Path):
    certificate, key = make_certificate(tmp_path)
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "local", "RUST_LOG": "debug"}
    with tls_before("http://127.0.0.1:9", certificate, key) as endpoint:
        command = ["/usr/sbin/chroot", str(root), "/mlflow-serverless", "serve", "--port", "0", "--dynamodb-endpoint", endpoint]
        command += ["--artifact-root", "s3://bucket/root"]
        done = subprocess.run(command, env=keys, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert "those in the program are used" in done.stderr and "UnknownIssuer" in done.stderr
    assert "no native root" not in done.stderr
