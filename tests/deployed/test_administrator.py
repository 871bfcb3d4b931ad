"""Tests how `tools/deploy --admin` creates an administrator, in front of a gateway that verifies
signatures, and users in memory. `test_archive.py` does it with the functions.
"""

import importlib.util
import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.clients.gateway import strict
from tests.clients.verifier import Verifier
from tests.support.http_server import Answer, Received, serving

from .emulator import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tools/deploy"))
import administrator  # noqa: E402
from administrator import Api, Refused, make_administrator  # noqa: E402
from settings import Settings  # noqa: E402

_REGION, _KEY, _SECRET = "eu-central-1", "AKIATEST", "secret"
_PASSWORD = "correct horse battery"


class _Users:
    """Users with their passwords and whether they are administrators."""

    def __init__(self) -> None:
        self.users: dict[str, dict[str, Any]] = {}
        self.failures: list[Answer] = []
        self.calls: list[tuple[str, str]] = []

    def answer(self, request: Received) -> Answer:
        parts = urlsplit(request.target)
        action = parts.path.removeprefix("/api/2.0/mlflow/users/")
        self.calls.append((request.method, action))
        if self.failures:
            return self.failures.pop(0)
        if (request.method, action) == ("GET", "get"):
            name = parse_qs(parts.query)["username"][0]
            if name not in self.users:
                return _error(404, "RESOURCE_DOES_NOT_EXIST")
            return _json(200, {"user": {"username": name, "is_admin": self.users[name]["is_admin"]}})
        body = json.loads(request.body)
        if (request.method, action) == ("POST", "create"):
            self.users[body["username"]] = {"password": body["password"], "is_admin": False}
        elif (request.method, action) == ("PATCH", "update-admin"):
            self.users[body["username"]]["is_admin"] = body["is_admin"]
        else:
            return _error(404, "ENDPOINT_NOT_FOUND")
        return _json(200, {})


def _json(status: int, body: dict[str, Any]) -> Answer:
    return status, [("Content-Type", "application/json")], json.dumps(body).encode()


def _error(status: int, code: str) -> Answer:
    return _json(status, {"error_code": code, "message": f"message of {code}"})


@pytest.fixture
def users(monkeypatch: pytest.MonkeyPatch) -> _Users:
    monkeypatch.setattr(administrator, "_PAUSES", (0, 0))
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{_PASSWORD}\n"))
    return _Users()


@contextmanager
def _api(users: _Users, monkeypatch: pytest.MonkeyPatch, secret: str = _SECRET) -> Iterator[Api]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", _KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    with serving(strict(Verifier(_KEY, _SECRET, _REGION), users.answer)) as url:
        yield Api(f"{url}/", _REGION)


@pytest.mark.parametrize("name", ["ann", "ann.lee+ml@example.com", "Änne"])
def test_the_password_is_the_first_line_of_standard_input(users: _Users, monkeypatch: pytest.MonkeyPatch, name: str):
    with _api(users, monkeypatch) as api:
        assert make_administrator(api, name) == f"Created the administrator {name}."
    assert users.users == {name: {"password": _PASSWORD, "is_admin": True}}


def test_a_user_who_exists_keeps_the_password(users: _Users, monkeypatch: pytest.MonkeyPatch):
    users.users["ann"] = {"password": "kept", "is_admin": False}
    with _api(users, monkeypatch) as api:
        assert "existed already, and is an administrator now" in make_administrator(api, "ann")
        assert users.users == {"ann": {"password": "kept", "is_admin": True}}
        assert "already an administrator" in make_administrator(api, "ann")
    # The password was not requested.
    assert sys.stdin.readline() == f"{_PASSWORD}\n"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("second, is_created", [(_PASSWORD, True), ("another horse battery", False)])
def test_a_terminal_is_prompted_twice(users: _Users, monkeypatch: pytest.MonkeyPatch, second: str, is_created: bool):
    typed = [_PASSWORD, second]
    monkeypatch.setattr(sys, "stdin", _Terminal())
    monkeypatch.setattr(administrator.getpass, "getpass", lambda _: typed.pop(0))
    with _api(users, monkeypatch) as api:
        if is_created:
            make_administrator(api, "ann")
        else:
            with pytest.raises(Refused, match="differ"):
                make_administrator(api, "ann")
    assert ("ann" in users.users) is is_created and typed == []


@pytest.mark.parametrize(
    "failure, said",
    [
        (_error(403, "PERMISSION_DENIED"), "acts as a user who is not an administrator"),
        (_json(403, {"Message": "User: arn is not authorized"}), "needs execute-api:Invoke"),
        ((400, [("Content-Type", "text/html")], b"Username and password cannot be empty."), "cannot be empty"),
    ],
)
def test_a_refusal_says_what_is_missing(users: _Users, monkeypatch: pytest.MonkeyPatch, failure: Answer, said: str):
    users.failures = [failure]
    with _api(users, monkeypatch) as api, pytest.raises(Refused, match=said):
        make_administrator(api, "ann")
    assert users.users == {}


def test_a_wrong_signature_is_refused(users: _Users, monkeypatch: pytest.MonkeyPatch):
    with _api(users, monkeypatch, secret="wrong") as api, pytest.raises(Refused, match="403"):
        make_administrator(api, "ann")
    assert users.calls == []


@pytest.mark.parametrize("uri", ["http://ml.example.com", "ml.example.com", "http://127.0.0.1.example.com"])
def test_a_password_is_only_sent_over_tls(uri: str):
    with pytest.raises(Refused, match="https://"):
        Api(uri, _REGION)


def test_an_api_that_has_just_been_created_is_asked_again(users: _Users, monkeypatch: pytest.MonkeyPatch):
    users.failures = [_error(503, "TEMPORARILY_UNAVAILABLE"), _error(500, "INTERNAL_ERROR")]
    with _api(users, monkeypatch) as api:
        make_administrator(api, "ann")
    assert users.calls == [("GET", "get")] * 3 + [("POST", "create"), ("PATCH", "update-admin")]


def test_a_creation_is_not_repeated(users: _Users, monkeypatch: pytest.MonkeyPatch):
    with _api(users, monkeypatch) as api:
        users.failures = [_error(404, "RESOURCE_DOES_NOT_EXIST"), _error(503, "TEMPORARILY_UNAVAILABLE")]
        with pytest.raises(Refused, match="503"):
            make_administrator(api, "ann")
    assert users.calls == [("GET", "get"), ("POST", "create")]


class _Stack:
    """A stack that may not exist, with these outputs."""

    name = "mlflow"

    def __init__(self, outputs: dict[str, str] | None):
        self._outputs = outputs

    def exists(self) -> bool:
        return self._outputs is not None

    def outputs(self) -> dict[str, str]:
        return self._outputs or {}


@pytest.mark.parametrize(
    "outputs, said", [(None, "There is no stack mlflow in eu-central-1."), ({"TrackingUri": "https://signed"}, "./deploy --parameters Users=on")]
)
def test_a_stack_without_users_is_not_asked(outputs: dict[str, str] | None, said: str):
    place = importlib.util.spec_from_file_location("deploy_command", REPOSITORY / "tools/deploy/__main__.py")
    command = importlib.util.module_from_spec(place)
    place.loader.exec_module(command)
    settings = Settings("default", "mlflow", _REGION, {}, [], is_built=True, only_checks=False)
    with pytest.raises(SystemExit) as ended:
        command._administrator(settings, _Stack(outputs), "ann", None)
    assert said in str(ended.value)
