"""Signs in to the deployed stack at an identity provider on this machine, whose client secret is in
Parameter Store.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookiejar import Cookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import requests
from requests.cookies import RequestsCookieJar

from tests.sign_on.provider import Provider
from tests.sign_on.world import AJAX, V2, V3, Browser, alert, links, provider_text

from .steps import PASSWORD, command, token_of, wait_for

_SECONDS = 300
#: How long a change of a user may take until every process of a function has it. The lease is 300 ms,
#: but functions are slow here.
_PATIENCE_SECONDS = 30
_PERSON, _EMAIL = "mia", "mia@example.com"
_RULE = '[[providers.roles]]\nclaim = "groups"\nvalues = ["readers"]\nrole = "sso readers"'


def single_sign_on(world, directory: Path) -> None:
    """Signs a person in from a link to a page, renews the session, gives and takes back a role, and
    locks the person out when the provider refuses to renew the session.
    """
    with _provider(world, directory) as (provider, experiment):
        provider.set_person(_PERSON, email=_EMAIL, groups=["readers"])
        browser = _browser(world)
        _signs_in_from_a_link(world, provider, browser)
        read = f"{AJAX}/experiments/get?experiment_id={experiment}"
        assert browser.api(read).status_code == 200
        token = _tokens_end_without_confirmation(world, provider)
        _a_renewal_takes_back_a_role(world, provider, browser, read)
        _a_refused_person_is_locked_out(world, provider, browser)
        _signs_out(world, provider)
        assert _status(world, token) == 200


def _signs_in_from_a_link(world, provider: Provider, browser: Browser) -> None:
    location = browser.start("Mock", "/tokens?from=link")
    # The redirect URI is built from the configured origins.
    elsewhere = _browser(world).get("/signin?provider=mock", host="elsewhere.example.com").headers["location"]
    assert {_parameter(url, "redirect_uri") for url in (location, elsewhere)} == {f"{world.users}/signin"}
    [attempt] = browser.cookies()
    assert attempt.startswith("__Host-mlflow_attempt_")
    answer = browser.finish(provider.sign_in(location, _PERSON))
    assert (answer.status_code, answer.headers.get("location")) == (303, "/tokens?from=link"), alert(answer)
    # Each cookie has a header of its own: new ones, and the deleted one of the attempt.
    received = answer.raw.headers.getlist("set-cookie")
    assert len(received) == len(browser.cookies()) + 1 and attempt not in browser.cookies(), received
    assert all("; Secure" in cookie for cookie in received), received
    assert browser.get(answer.headers["location"]).status_code == 200
    assert browser.user() == _EMAIL


def _tokens_end_without_confirmation(world, provider: Provider) -> str:
    """Sets back the time until which the provider has confirmed the person. Returns a token, which is
    valid again after the next sign-in.
    """
    token = token_of(world, _EMAIL)
    assert _status(world, token) == 200
    _set(world, {"PK": {"S": f"USER#{_EMAIL}"}, "SK": {"S": "U#META"}}, "confirmed_until")
    wait_for(lambda: _status(world, token) == 401, "refusal of the token", _PATIENCE_SECONDS)
    assert _browser(world).sign_in(provider, "Mock", _PERSON).status_code == 303
    wait_for(lambda: _status(world, token) == 200, "token of a person who is confirmed again", _PATIENCE_SECONDS)
    return token


def _a_renewal_takes_back_a_role(world, provider: Provider, browser: Browser, read: str) -> None:
    provider.set_person(_PERSON, email=_EMAIL, groups=[])
    _is_overdue(world, browser, read)
    assert browser.renew().status_code == 200
    assert provider.refreshes() == 1
    assert browser.user() == _EMAIL
    wait_for(lambda: browser.api(read).status_code == 403, "refusal without the role", _PATIENCE_SECONDS)


def _a_refused_person_is_locked_out(world, provider: Provider, browser: Browser) -> None:
    provider.revoke(_PERSON)
    _is_overdue(world, browser, f"{AJAX}/experiments/get?experiment_id=0")
    for _ in range(2):
        assert browser.renew().status_code == 401
    assert provider.refreshes() == 2
    ended = browser.api(f"{AJAX}/users/current")
    assert (ended.status_code, ended.headers.get("mlflow-session")) == (401, None)
    assert browser.get("/tokens").headers["location"].startswith("/signin")


def _signs_out(world, provider: Provider) -> None:
    browser = _browser(world)
    assert browser.sign_in(provider, "Mock", _PERSON).status_code == 303
    kept = browser.session.cookies.copy()
    # MLflow's page signs out by deleting the cookie that its script can read.
    del browser.session.cookies["mlflow_user"]
    assert browser.user() is None
    target = links(browser.get("/signin"))["Sign out at Mock as well"]
    assert _parameter(target, "post_logout_redirect_uri") == f"{world.users}/signin"
    browser.session.cookies = kept
    wait_for(lambda: browser.user() is None, "end of the session", _PATIENCE_SECONDS)
    assert browser.renew().status_code == 401


#: The steps in their order.
SINGLE_SIGN_ON = [single_sign_on]


@contextmanager
def _provider(world, directory: Path) -> Iterator[tuple[Provider, str]]:
    """Configures a provider that requires the client secret, and a role that a group gives. Yields the
    provider, and an experiment that the role can read.
    """
    provider, secrets = Provider(require_client_registration=True), world.account.emulator.client("ssm")
    name = f"/mlflow/{world.stack.name}/sign-on/mock"
    with provider.running():
        client, secret = provider.register(f"{world.users}/signin")
        secrets.put_parameter(Name=name, Value=secret, Type="SecureString")
        experiment = _admin(world, f"{V2}/experiments/create", {"name": "of a role"})["experiment_id"]
        role = _admin(world, f"{V3}/roles/create", {"name": "sso readers", "workspace": "default"})["role"]["id"]
        right = {"resource_type": "experiment", "resource_pattern": experiment, "permission": "READ"}
        _admin(world, f"{V3}/roles/permissions/add", {"role_id": role} | right)
        file = directory / "providers.toml"
        file.write_text(f'origins = ["{world.users}"]\n{provider_text(provider, client=client, rest="sign_out = true", rules=_RULE)}')
        command(world, "admin", "providers", str(file))
        yield provider, experiment
        command(world, "admin", "providers", "--remove")
        secrets.delete_parameter(Name=name)


class _Cookies(RequestsCookieJar):
    """Cookies of a browser that sends `Secure` ones to this machine without TLS, as Chromium does."""

    def set_cookie(self, cookie: Cookie, *others: Any, **named: Any) -> None:
        cookie.secure = False
        super().set_cookie(cookie, *others, **named)


def _browser(world) -> Browser:
    browser = Browser(world.users)
    browser.session.cookies = _Cookies()
    return browser


def _is_overdue(world, browser: Browser, read: str) -> None:
    """Makes all sessions of the person overdue, as if time had passed, and waits until a function
    refuses to read.
    """
    found = world.account.emulator.dynamodb.query(
        TableName=world.stack.outputs["AccessTableName"],
        KeyConditionExpression="PK = :user AND begins_with(SK, :session)",
        ExpressionAttributeValues={":user": {"S": f"USER#{_EMAIL}"}, ":session": {"S": "U#SESSION#"}},
    )["Items"]
    assert found
    for item in found:
        _set(world, {name: item[name] for name in ("PK", "SK")}, "renew_by")

    def is_refused() -> bool:
        answer = browser.api(read)
        return (answer.status_code, answer.headers.get("mlflow-session")) == (401, "renew")

    wait_for(is_refused, "refusal of an overdue session", _PATIENCE_SECONDS)


def _set(world, key: dict[str, Any], attribute: str) -> None:
    """Sets a time in an item of the access table to the past."""
    world.account.emulator.dynamodb.update_item(
        TableName=world.stack.outputs["AccessTableName"],
        Key=key,
        UpdateExpression="SET #name = :time",
        ConditionExpression="attribute_exists(#name)",
        ExpressionAttributeNames={"#name": attribute},
        ExpressionAttributeValues={":time": {"N": str(int(time.time()) - 1)}},
    )


def _status(world, token: str) -> int:
    """Returns the status of a request with a token."""
    headers = {"Authorization": f"Bearer {token}"}
    return requests.get(f"{world.users}{V2}/users/current", headers=headers, timeout=_SECONDS).status_code


def _admin(world, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = requests.post(f"{world.users}{path}", json=body, auth=("admin", PASSWORD), timeout=_SECONDS)
    assert answer.status_code == 200, answer.text
    return answer.json()


def _parameter(url: str, name: str) -> str:
    return parse_qs(urlsplit(url).query)[name][0]
