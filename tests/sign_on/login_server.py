"""A server with users, and commands of the program on the machine of one of them."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import requests

from tests.support.http_server import Answer, Received
from tests.support.processes import child_environment
from tests.support.servers import ServerlessMlflow, binary

REPOSITORY = Path(__file__).resolve().parents[2]
ADMIN, USER, PASSWORD = "admin", "ann", "correct horse battery"
_TIMEOUT_SECONDS = 300


@dataclass
class LoginServer:
    """`serve` with users."""

    url: str
    data: Path
    server: ServerlessMlflow

    def command(self, *arguments: str, is_successful: bool = True) -> str:
        """Runs a command of an operator. Returns what it prints, or why it fails."""
        command = [str(binary()), *arguments, "--data", str(self.data)]
        done = subprocess.run(
            command, input=f"{PASSWORD}\n", capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, env=child_environment()
        )
        assert (done.returncode == 0) == is_successful, done.stderr
        return done.stdout.strip() if is_successful else done.stderr

    def api(self, method: str, path: str, content: dict, user: str = ADMIN) -> dict:
        """Sends a request with a password."""
        response = requests.request(method, f"{self.url}/api/{path}", auth=(user, PASSWORD), json=content, timeout=_TIMEOUT_SECONDS)
        assert response.status_code == 200, response.text
        return response.json()

    def tokens_page(self, user: str = USER) -> str:
        """Returns the page with the user's tokens."""
        response = requests.get(f"{self.url}/tokens", auth=(user, PASSWORD), timeout=_TIMEOUT_SECONDS)
        assert response.status_code == 200, response.text
        return response.text


@contextmanager
def login_server(directory: Path, options: Sequence[str] = ()) -> Iterator[LoginServer]:
    """Runs `serve` with the administrator `admin` and the user `ann`."""
    data = directory / "server/data"
    command = [str(binary()), "admin", "create", ADMIN, "--data", str(data)]
    subprocess.run(command, input=f"{PASSWORD}\n", text=True, check=True, capture_output=True, timeout=_TIMEOUT_SECONDS, env=child_environment())
    options = ("--auth", "basic", "--no-ui", "--default-permission", "NO_PERMISSIONS", *options)
    server = ServerlessMlflow(directory / "server", options=options, artifact_root="mlflow-artifacts:/")
    try:
        running = LoginServer(server.url, data, server)
        running.api("POST", "2.0/mlflow/users/create", {"username": USER, "password": PASSWORD})
        yield running
    finally:
        server.stop()


def forwarded(request: Received, url: str) -> Answer:
    """Sends a request to another server as it was received, and returns its response."""
    headers = {name: value for name, value in request.headers if name.lower() not in ("content-length", "transfer-encoding")}
    answer = requests.request(
        request.method, f"{url}{request.target}", headers=headers, data=request.body, timeout=_TIMEOUT_SECONDS, allow_redirects=False
    )
    kept = ("content-type", "location", "refresh", "set-cookie", "www-authenticate")
    return answer.status_code, [(name, value) for name, value in answer.raw.headers.items() if name.lower() in kept], answer.content


@dataclass
class Laptop:
    """A machine of a user, with a home directory of its own."""

    home: Path
    #: Additional variables.
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def tokens(self) -> Path:
        return self.home / ".config/mlflow-serverless/tokens.json"

    def environment(self, **additions: str) -> dict[str, str]:
        """Returns an environment without AWS credentials, and without a display."""
        hidden = ("AWS_", "ACTIONS_", "XDG_", "SSH_")
        kept = {name: value for name, value in child_environment().items() if not name.startswith(hidden) and name not in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")}
        return kept | {"HOME": str(self.home), "AWS_EC2_METADATA_DISABLED": "true"} | self.variables | additions

    def browser(self, user: str, answer: str = "approve") -> str:
        """Creates a program for `BROWSER` in which the user signs in, and returns its path."""
        program = self.home / f"browser-{user}-{answer}"
        script = REPOSITORY / "tests/sign_on/scripted_browser.py"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {script} {user} "{PASSWORD}" {answer} "$1"\n')
        program.chmod(0o700)
        return str(program)

    def start(self, *arguments: str, **additions: str) -> "subprocess.Popen[str]":
        """Starts a command of the program."""
        return subprocess.Popen(
            [str(binary()), *arguments],
            env=self.environment(**additions),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, **additions: str) -> tuple[int, str, str]:
        """Runs a command of the program. Returns its exit code, output and error output."""
        process = self.start(*arguments, **additions)
        output, errors = process.communicate(timeout=_TIMEOUT_SECONDS)
        return process.returncode, output, errors
