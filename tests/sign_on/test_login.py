"""`mlflow-serverless login` with users who sign in with a password, and clients that use its token."""

import json
import re
import socket
import stat
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
import requests

from tests.sign_on.login_server import PASSWORD, REPOSITORY, USER, Laptop, LoginServer, forwarded, login_server
from tests.sign_on.scripted_browser import ScriptedBrowser
from tests.support import warm
from tests.support.http_server import serving
from tests.support.servers import ServerlessMlflow, start_subject

#: One process runs all tests, so that the server starts only once.
pytestmark = pytest.mark.xdist_group("logins")

_TIMEOUT_SECONDS = 300
_CODE = re.compile(r"enter the code ([A-Z]{4}-[A-Z]{4})\.")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoginServer]:
    with login_server(tmp_path_factory.mktemp("logins")) as running:
        running.api("POST", "2.0/mlflow/experiments/create", {"name": "Default of ann"}, USER)
        yield running


@pytest.fixture
def laptop(tmp_path: Path) -> Laptop:
    return Laptop(tmp_path)


def _begin_device_login(laptop: Laptop, running: LoginServer, *options: str) -> tuple["subprocess.Popen[str]", str]:
    """Starts a login with a code, and returns the code that it shows."""
    process = laptop.start("login", running.url, *options)
    assert process.stderr is not None
    shown = ""
    for line in process.stderr:
        shown += line
        if found := _CODE.search(shown):
            return process, found[1]
    raise AssertionError(shown)


def _end(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    output, errors = process.communicate(timeout=_TIMEOUT_SECONDS)
    return process.returncode, output, errors


def _status(running: LoginServer, token: str) -> int:
    headers = {"authorization": f"Bearer {token}"}
    return requests.get(f"{running.url}/api/2.0/mlflow/users/current", headers=headers, timeout=_TIMEOUT_SECONDS).status_code


def _stored(laptop: Laptop, running: LoginServer) -> str:
    return json.loads(laptop.tokens.read_text())[running.url]["token"]


def test_a_browser_on_the_same_machine_logs_in(running: LoginServer, laptop: Laptop):
    code, output, errors = laptop.run("login", running.url, BROWSER=laptop.browser(USER))
    assert code == 0, errors
    assert output.startswith(f"Logged in to {running.url} as {USER}. The token expires on 20")
    assert stat.S_IMODE(laptop.tokens.stat().st_mode) == 0o600
    assert stat.S_IMODE(laptop.tokens.parent.stat().st_mode) == 0o700
    token = _stored(laptop, running)
    assert token not in output + errors
    assert _status(running, token) == 200
    assert socket.gethostname() in running.tokens_page()


def test_a_code_logs_in_from_another_machine(running: LoginServer, laptop: Laptop):
    process, code = _begin_device_login(laptop, running)
    browser = ScriptedBrowser(USER, PASSWORD)
    page = browser.open(f"{running.url}/login")
    # A code is accepted as people type it.
    shown = browser.enter(page, f" {code.replace('-', '').lower()} ")
    assert "return to" in shown.text, shown.text
    status, output, errors = _end(process)
    assert status == 0, errors
    assert output.startswith(f"Logged in to {running.url} as {USER}.")
    assert _status(running, _stored(laptop, running)) == 200
    again = browser.submit(page, {"user_code": code})
    assert again.status_code == 400 and "not valid" in again.text


def test_the_page_shows_who_requests_a_token_before_it_is_approved(running: LoginServer, laptop: Laptop):
    process, code = _begin_device_login(laptop, running, "--device")
    try:
        browser = ScriptedBrowser(USER, PASSWORD)
        page = browser.open(f"{running.url}/login?user_code={code}")
        assert code in page.text and socket.gethostname() not in page.text
        confirmation = browser.submit(page, {})
        assert socket.gethostname() in confirmation.text and f"({USER})" in confirmation.text
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_a_login_that_is_denied_stores_nothing(running: LoginServer, laptop: Laptop, where: str):
    if where == "here":
        code, output, errors = laptop.run("login", running.url, BROWSER=laptop.browser(USER, "deny"))
    else:
        process, shown = _begin_device_login(laptop, running)
        browser = ScriptedBrowser(USER, PASSWORD)
        browser.enter(browser.open(f"{running.url}/login"), shown, "deny")
        code, output, errors = _end(process)
    assert (code, output) == (1, "")
    assert "cancelled" in errors
    assert not laptop.tokens.exists()


def test_a_token_is_printed_for_clients_that_only_read_the_variable(running: LoginServer, laptop: Laptop):
    code, output, errors = laptop.run("login", "--print", MLFLOW_TRACKING_URI=running.url)
    assert (code, output) == (1, "")
    assert f"run mlflow-serverless login {running.url}" in errors
    assert laptop.run("login", running.url, BROWSER=laptop.browser(USER))[0] == 0
    # The name of the origin is not case-sensitive, and a slash does not matter.
    code, output, errors = laptop.run("login", "--print", running.url.upper().replace("HTTP", "http") + "/")
    assert (code, output, errors) == (0, f"{_stored(laptop, running)}\n", "")


def test_the_quickstart_runs_with_the_printed_token(running: LoginServer, laptop: Laptop):
    assert laptop.run("login", running.url, BROWSER=laptop.browser(USER))[0] == 0
    _, token, _ = laptop.run("login", "--print", running.url)
    environment = laptop.environment(MLFLOW_TRACKING_URI=running.url, MLFLOW_TRACKING_TOKEN=token.strip(), MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT="true")
    done = warm.run([str(REPOSITORY / "examples/quickstart.py")], environment, laptop.home)
    assert done.stdout == (REPOSITORY / "examples/quickstart.expected").read_text(), done.stderr


def test_the_python_client_uses_the_stored_token(running: LoginServer, laptop: Laptop):
    script = "import mlflow; print(mlflow.MlflowClient().get_experiment_by_name('Default of ann').name)"
    environment = laptop.environment(MLFLOW_TRACKING_URI=running.url, MLFLOW_TRACKING_AUTH="mlflow-serverless")
    without = warm.run(["-c", script], environment, laptop.home)
    assert "mlflow-serverless login" in without.stderr
    assert laptop.run("login", running.url, BROWSER=laptop.browser(USER))[0] == 0
    done = warm.run(["-c", script], environment, laptop.home)
    assert done.stdout == "Default of ann\n", done.stderr
    laptop.tokens.chmod(0o644)
    refused = warm.run(["-c", script], environment, laptop.home)
    assert "chmod 600" in refused.stderr and refused.stdout == ""
    code, _, errors = laptop.run("login", "--print", running.url)
    assert code == 1 and "chmod 600" in errors


def test_a_token_that_was_revoked_is_not_printed(running: LoginServer, laptop: Laptop):
    assert laptop.run("login", running.url, BROWSER=laptop.browser(USER))[0] == 0
    token = _stored(laptop, running)
    listed = running.command("token", "list", USER).splitlines()
    running.command("token", "revoke", USER, listed[-1].split("\t")[0])
    assert _status(running, token) == 401
    code, output, errors = laptop.run("login", "--print", running.url)
    assert (code, output) == (1, "") and "no valid token" in errors


def test_wrong_codes_are_limited_for_each_user(running: LoginServer, laptop: Laptop):
    """The limit is that of a user, so it does not lock out others."""
    for name in ("guesser", "other"):
        running.api("POST", "2.0/mlflow/users/create", {"username": name, "password": PASSWORD})
    guesser, other = (ScriptedBrowser(name, PASSWORD) for name in ("guesser", "other"))
    page = guesser.open(f"{running.url}/login")
    statuses = [guesser.submit(page, {"user_code": "BCDF-GHJK"}).status_code for _ in range(8)]
    assert statuses[:5] == [400] * 5 and 429 in statuses[5:], statuses
    process, code = _begin_device_login(laptop, running)
    other.enter(other.open(f"{running.url}/login"), code)
    assert _end(process)[0] == 0


def test_a_server_without_users_has_no_logins(tmp_path: Path, laptop: Laptop):
    server = start_subject(tmp_path / "open", in_memory=True)
    try:
        for options in ([], ["--device"]):
            code, _, errors = laptop.run("login", server.url, *options, BROWSER=laptop.browser(USER))
            assert code == 1 and "has no logins" in errors, errors
    finally:
        server.stop()


def test_tokens_of_two_servers_are_kept_apart(running: LoginServer, laptop: Laptop, tmp_path: Path):
    with login_server(tmp_path / "other") as other:
        for each in (running, other):
            assert laptop.run("login", each.url, BROWSER=laptop.browser(USER))[0] == 0
        assert _stored(laptop, running) != _stored(laptop, other)
        assert _status(other, _stored(laptop, running)) == 401
        assert _status(running, _stored(laptop, running)) == 200


def test_a_login_outlives_the_process_that_began_it(tmp_path: Path, laptop: Laptop):
    """The client polls while the server restarts, and another process issues the token."""
    with login_server(tmp_path) as first, ExitStack() as stops:
        targets = [first.url]
        front = stops.enter_context(serving(lambda request: forwarded(request, targets[-1])))
        process, code = _begin_device_login(laptop, replace(first, url=front))
        first.server.stop()
        options = ("--auth", "basic", "--no-ui")
        second = ServerlessMlflow(tmp_path / "server", options=options, artifact_root="mlflow-artifacts:/")
        stops.callback(second.stop)
        targets.append(second.url)
        browser = ScriptedBrowser(USER, PASSWORD)
        browser.enter(browser.open(f"{front}/login"), code)
        status, _, errors = _end(process)
        assert status == 0, errors
