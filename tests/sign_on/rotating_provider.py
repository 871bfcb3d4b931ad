"""An identity provider in a separate process: npm's `oidc-provider`, with rotation of refresh tokens and detection of their reuse."""

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.processes import ChildProcess, child_environment, wait_until

_HERE = Path(__file__).parent
_INSTALLED = Path(__file__).resolve().parents[2] / "target/oidc-provider"
_INSTALL_SECONDS = 300
CLIENT = "mlflow"
SECRET = "a secret of the client"


class Provider:
    """A running provider. Its accounts and failures can be changed while it runs."""

    def __init__(self, directory: Path, origin: str):
        directory.mkdir(parents=True)
        self._state, self._log = directory / "state.json", directory / "tokens.jsonl"
        self._log.touch()
        self._content: dict = {"accounts": {}}
        self._store()
        client = {
            "client_id": CLIENT,
            "client_secret": SECRET,
            "redirect_uris": [f"{origin}/signin"],
            "post_logout_redirect_uris": [f"{origin}/signin"],
            "grant_types": ["authorization_code", "refresh_token"],
        }
        environment = child_environment(CLIENTS=json.dumps([client]), STATE=str(self._state), LOG=str(self._log))
        self._process = ChildProcess(["node", str(_installed())], environment, directory, directory / "provider.log")
        try:
            found = wait_until(lambda: re.search(r"^issuer (\S+)$", self._process.log_text(), re.MULTILINE), "issuer", self._process)
        except BaseException:
            self._process.kill()
            raise
        self.issuer = found[1]

    def stop(self) -> None:
        self._process.kill()

    def put(self, account: str, **claims: object) -> None:
        """Creates an account, or replaces its claims."""
        self._content["accounts"][account] = claims
        self._store()

    def remove(self, account: str) -> None:
        """Deletes an account. Its refresh tokens are refused from now on."""
        del self._content["accounts"][account]
        self._store()

    def answer_tokens(self, status: int | None = None, delay_ms: int = 0) -> None:
        """Sets the status with which all requests for tokens fail, and the delay of successful ones."""
        self._content |= {"token_status": status, "token_delay_ms": delay_ms}
        self._store()

    def close(self) -> None:
        """Refuses connections, until `open`. What the provider has issued stays valid."""
        self._toggle("closed")

    def open(self) -> None:
        """Accepts connections again."""
        self._toggle("open")

    def refreshes(self) -> list[int]:
        """Returns the statuses of all refreshes so far."""
        return [entry["status"] for entry in self._entries() if entry.get("grant") == "refresh_token"]

    def received(self) -> int:
        """Returns the number of requests for tokens so far, including those that have not been answered."""
        return sum(entry["event"] == "received" for entry in self._entries())

    def _toggle(self, announcement: str) -> None:
        announced = self._process.log_text().count(f"\n{announcement}\n")
        os.kill(self._process.pid, signal.SIGUSR2)
        wait_until(lambda: self._process.log_text().count(f"\n{announcement}\n") > announced, announcement, self._process)

    def _entries(self) -> list[dict]:
        return [json.loads(line) for line in self._log.read_text().splitlines()]

    def _store(self) -> None:
        # The provider may read the file at any moment.
        temporary = self._state.with_suffix(".new")
        temporary.write_text(json.dumps(self._content))
        temporary.replace(self._state)


@contextmanager
def provider(directory: Path, origin: str) -> Iterator[Provider]:
    """Runs a provider for a server with this origin."""
    running = Provider(directory, origin)
    try:
        yield running
    finally:
        running.stop()


def _installed() -> Path:
    """Installs the packages of `package-lock.json` once, and returns the program next to them."""
    _INSTALLED.mkdir(parents=True, exist_ok=True)
    with (_INSTALLED / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = (_HERE / "package-lock.json").read_bytes()
        ready = _INSTALLED / "ready"
        if not ready.is_file() or ready.read_bytes() != wanted:
            for name in ("package.json", "package-lock.json"):
                shutil.copyfile(_HERE / name, _INSTALLED / name)
            command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            try:
                subprocess.run(command, cwd=_INSTALLED, check=True, capture_output=True, text=True, timeout=_INSTALL_SECONDS)
            except FileNotFoundError as error:
                raise FileNotFoundError("npm is missing: install Debian's packages nodejs and npm") from error
            except subprocess.CalledProcessError as error:
                raise RuntimeError(f"npm ci failed: {error.stderr}") from error
            ready.write_bytes(wanted)
        program = _INSTALLED / "provider.mjs"
        copy = (_HERE / "provider.mjs").read_bytes()
        if not program.is_file() or program.read_bytes() != copy:
            program.write_bytes(copy)
    return program
