"""The program of a release, in a root that has nothing but it, as in a container."""

import os
import platform
import re
import socket
import ssl
import struct
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import pytest
import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from mlflow import MlflowClient

from tests.support.local_engine import local_engine
from tests.support.processes import ChildProcess, wait_until

_RELEASED = os.environ.get("RELEASED")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not _RELEASED, reason="RELEASED names no directory with archives: make release PROFILE=dev"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may change the root"),
]


@pytest.fixture(scope="module")
def archive() -> Path:
    processor = {"aarch64": "arm64"}.get(platform.machine(), platform.machine())
    [found] = Path(_RELEASED).glob(f"*-linux-{processor}.tar.gz")
    return found


@pytest.fixture
def root(archive: Path, tmp_path: Path) -> Path:
    """An empty root with the program."""
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path / "unpacked", filter="data")
    [folder] = (tmp_path / "unpacked").iterdir()
    empty = tmp_path / "root"
    empty.mkdir()
    (folder / "mlflow-serverless").rename(empty / "mlflow-serverless")
    return empty


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
    # Of an interpreter: the loader of shared libraries.
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
    certificate, key = _certificate(tmp_path)
    (root / "roots.pem").write_bytes(certificate.read_bytes())
    with local_engine(tmp_path / "engine") as engine, _tls_before(engine.url, certificate, key) as endpoint:
        # Artifacts go to a bucket, so nothing is written here.
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
    certificate, key = _certificate(tmp_path)
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "local", "RUST_LOG": "debug"}
    with _tls_before("http://127.0.0.1:9", certificate, key) as endpoint:
        command = ["/usr/sbin/chroot", str(root), "/mlflow-serverless", "serve", "--port", "0", "--dynamodb-endpoint", endpoint]
        command += ["--artifact-root", "s3://bucket/root"]
        done = subprocess.run(command, env=keys, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert "those in the program are used" in done.stderr and "UnknownIssuer" in done.stderr
    assert "no native root" not in done.stderr


def _certificate(directory: Path) -> tuple[Path, Path]:
    """A certificate of 127.0.0.1, signed by itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    paths = directory / "certificate.pem", directory / "key.pem"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return paths


@contextmanager
def _tls_before(url: str, certificate: Path, key: Path) -> Iterator[str]:
    """An address that speaks TLS, and passes on what it gets."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    port = int(url.rsplit(":", 1)[1])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_accept, args=(listener, context, port), daemon=True).start()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"


def _accept(listener: socket.socket, context: ssl.SSLContext, port: int) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_pass_on, args=(connection, context, port), daemon=True).start()


def _pass_on(connection: socket.socket, context: ssl.SSLContext, port: int) -> None:
    try:
        with context.wrap_socket(connection, server_side=True) as client, socket.create_connection(("127.0.0.1", port)) as server:
            back = threading.Thread(target=_copy, args=(server, client), daemon=True)
            back.start()
            _copy(client, server)
            back.join()
    except OSError:
        # A client that does not trust this certificate.
        connection.close()


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return
