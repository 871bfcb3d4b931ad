"""AWS on this machine: ministack, which accepts a real `sam deploy`, runs the functions' programs,
and enforces their roles for each call.
"""

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from botocore.config import Config
from botocore.session import Session

from tests.support.processes import ChildProcess, PortTaken, start_on_own_port, wait_until

REPOSITORY = Path(__file__).resolve().parents[2]
#: Separate virtual environment, because the emulator pins botocore.
PYTHON = REPOSITORY / ".venv-emulator/bin/python"

REGION = "eu-central-1"
ACCOUNT = "123456789012"
#: The account's root user, who deploys.
_ROOT = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
#: Services that are loaded.
_SERVICES = (
    "s3,sqs,dynamodb,dynamodbstreams,lambda,iam,sts,logs,events,monitoring,apigateway,cloudformation,cloudtrail,service-quotas,acm,route53,kms,ssm,budgets"
)

_FAILING = "failing"
_LIBYAML = Path(__file__).with_name("libyaml")


@dataclass(frozen=True)
class Emulator:
    """A running emulator, with the environment variables that make an operator's programs use it as
    AWS.
    """

    process: ChildProcess
    url: str
    home: Path

    @property
    def operator(self) -> dict[str, str]:
        """Returns the operator's environment. It contains no credentials or settings of the user
        who runs the tests.
        """
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "SAM_"))}
        return kept | _ROOT | {
            # Only the variable that the guide mentions.
            "AWS_REGION": REGION,
            "AWS_ENDPOINT_URL": self.url,
            "AWS_EC2_METADATA_DISABLED": "true",
            "HOME": str(self.home),
            "SAM_CLI_TELEMETRY": "0",
            # Polling interval of a stack in seconds. The default is 5.
            "SAM_CLI_POLL_DELAY": "0.5",
            # SAM runs in Python, which imports `sitecustomize.py` from this directory.
            "PYTHONPATH": str(_LIBYAML),
        }

    def client(self, service: str, credentials: Mapping[str, str] = _ROOT, region: str = REGION) -> Any:
        """Returns AWS's own client of a service."""
        return Session().create_client(
            service,
            region,
            endpoint_url=self.url,
            aws_access_key_id=credentials["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=credentials["AWS_SECRET_ACCESS_KEY"],
            aws_session_token=credentials.get("AWS_SESSION_TOKEN"),
            # The timeout is that of a function, without retries.
            config=Config(s3={"addressing_style": "path"}, read_timeout=300, retries={"total_max_attempts": 1}, max_pool_connections=64),
        )

    @contextmanager
    def failing(self, stack: str, resource: str) -> Iterator[None]:
        """Makes the creation of this resource of this stack fail."""
        (self.home / _FAILING).write_text(f"{stack} {resource}")
        try:
            yield
        finally:
            (self.home / _FAILING).write_text("")

    @cached_property
    def cloudformation(self) -> Any:
        return self.client("cloudformation")

    @cached_property
    def dynamodb(self) -> Any:
        return self.client("dynamodb")

    @cached_property
    def s3(self) -> Any:
        return self.client("s3")

    @cached_property
    def functions(self) -> Any:
        return self.client("lambda")

    @cached_property
    def iam(self) -> Any:
        return self.client("iam")


def start_emulator(directory: Path, of_functions: Mapping[str, str]) -> Emulator:
    """Starts an emulator with an empty account. Functions get the variables in `of_functions` in
    addition to those of the template.
    """
    if not PYTHON.is_file():
        raise FileNotFoundError(f"{PYTHON} is missing: run `make emulator`")
    return start_on_own_port(lambda port: _start(directory, of_functions, port))


def _start(directory: Path, of_functions: Mapping[str, str], port: int) -> Emulator:
    home = directory / "home"
    home.mkdir(parents=True, exist_ok=True)
    (home / _FAILING).write_text("")
    # Does not include this process's environment, because functions would inherit it.
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TMPDIR": str(home),
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "MINISTACK_REGION": REGION,
        "MINISTACK_ACCOUNT_ID": ACCOUNT,
        "SERVICES": _SERVICES,
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        # Enforces roles and policies.
        "AUTH": "true",
        "CLOUDTRAIL_RECORDING": "1",
        "FAILING": str(home / _FAILING),
        **of_functions,
    }
    process = ChildProcess([str(PYTHON), str(Path(__file__).with_name("launch.py"))], environment, home, directory / "emulator.log")
    try:
        wait_until(lambda: _listens(port), "port of the emulator", process)
    except RuntimeError:
        if "already in use" in process.log_text():
            raise PortTaken(f"port {port}") from None
        raise
    return Emulator(process, f"http://127.0.0.1:{port}", home)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
