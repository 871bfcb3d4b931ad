"""Signing in at an identity provider, through `serve` and a provider on this machine."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

import pytest
import requests

from tests.sign_on.provider import Provider
from tests.sign_on.world import ADMIN, AJAX, OWN_PAGE, PASSWORD, V3, World, alert, links, provider_text, world

_GROUPS = """
[[providers.roles]]
claim = "groups"
values = ["readers"]
role = "reading"

[[providers.roles]]
claim = "groups"
values = ["operators"]
administrator = true
"""


@pytest.fixture
def provider() -> Iterator[Provider]:
    provider = Provider()
    with provider.running():
        yield provider


@pytest.fixture
def served(tmp_path: Path, provider: Provider) -> Iterator[World]:
    """Yields a server with one provider, `Mock`. Its people are named by their email addresses."""
    with world(tmp_path) as served:
        served.set_secret("mock", "any")
        served.configure(provider_text(provider, rest="sign_out = true"))
        yield served


def _query(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


def _with(url: str, **parameters: str) -> str:
    return urlunsplit(urlsplit(url)._replace(query=urlencode(_query(url) | parameters)))


def test_signing_in_leads_back_to_the_page(served: World, provider: Provider) -> None:
    browser = served.browser()
    location = browser.start("Mock", "/tokens")
    asked = _query(location)
    assert location.startswith(f"{provider.url}/oauth2/authorize?")
    assert (asked["response_type"], asked["client_id"], asked["code_challenge_method"]) == ("code", "mlflow", "S256")
    assert asked["redirect_uri"] == f"{served.url}/signin"
    assert {"openid", "email"} <= set(asked["scope"].split())
    assert len(asked["nonce"]) >= 22 and len(asked["state"]) >= 22 and len(asked["code_challenge"]) == 43
    answer = browser.finish(provider.sign_in(location, "ann@example.com"))
    assert (answer.status_code, answer.headers.get("location")) == (303, "/tokens"), alert(answer)
    assert browser.user() == "ann@example.com"
    assert browser.get("/tokens").status_code == 200
    [exchanged] = provider.token_requests
    assert len(exchanged["code_verifier"]) == 43 and exchanged["redirect_uri"] == f"{served.url}/signin"
    assert not any("attempt" in cookie for cookie in browser.cookies()), browser.cookies()
    # The person is recognized at the next sign-in, and the earlier session remains.
    second = served.browser()
    assert second.sign_in(provider, "Mock", "ann@example.com").status_code == 303
    assert (second.user(), browser.user()) == ("ann@example.com", "ann@example.com")
    assert len(served.admin("GET", "/api/2.0/mlflow/users/list", {})["users"]) == 2


def test_the_host_of_a_request_does_not_decide_the_redirect_uri(served: World, provider: Provider) -> None:
    port = urlsplit(served.url).port
    browser = served.browser()
    answer = browser.get("/signin?provider=mock", host=f"localhost:{port}")
    assert _query(answer.headers["location"])["redirect_uri"] == f"{served.url}/signin"


def test_a_forged_or_foreign_state_is_refused(served: World, provider: Provider) -> None:
    browser, other = served.browser(), served.browser()
    callback = provider.sign_in(browser.start("Mock"), "ann@example.com")
    foreign = _query(provider.sign_in(other.start("Mock"), "mallory@example.com"))
    for wrong in (
        _with(callback, state="x" * 22), _with(callback, state=_query(callback)["state"][:-1]),
        _with(callback, **foreign), _with(callback, state=""),
    ):
        answer = browser.finish(wrong)
        assert answer.status_code == 400 and "Sign in again" in alert(answer), alert(answer)
    # Another browser does not have the cookie of the attempt.
    assert served.browser().finish(callback).status_code == 400
    assert provider.token_requests == []
    assert browser.finish(callback).status_code == 303
    assert browser.user() == "ann@example.com"


def test_a_replayed_or_foreign_code_is_refused(served: World, provider: Provider) -> None:
    browser, other = served.browser(), served.browser()
    callback = provider.sign_in(browser.start("Mock"), "ann@example.com")
    kept = browser.session.cookies.copy()
    assert browser.finish(callback).status_code == 303
    thief = served.browser()
    thief.session.cookies = kept
    answer = thief.finish(callback)
    assert answer.status_code >= 400 and "refused" in alert(answer), alert(answer)
    assert thief.user() is None
    # The code of another attempt contains another nonce.
    own = provider.sign_in(other.start("Mock"), "bob@example.com")
    stolen = _query(provider.sign_in(served.browser().start("Mock"), "ann@example.com"))["code"]
    answer = other.finish(_with(own, code=stolen))
    assert answer.status_code >= 400 and alert(answer), answer.text
    assert other.user() is None


def test_two_tabs_sign_in_at_once(served: World, provider: Provider) -> None:
    browser = served.browser()
    first, second = browser.start("Mock", "/tokens"), browser.start("Mock", "/signup")
    for location, page in ((second, "/signup"), (first, "/tokens")):
        answer = browser.finish(provider.sign_in(location, "ann@example.com"))
        assert (answer.status_code, answer.headers.get("location")) == (303, page), alert(answer)
    assert browser.user() == "ann@example.com"


def test_only_five_attempts_are_remembered(served: World, provider: Provider) -> None:
    browser = served.browser()
    locations = [browser.start("Mock") for _ in range(7)]
    assert sum("attempt" in cookie for cookie in browser.cookies()) == 5
    assert browser.finish(provider.sign_in(locations[0], "ann@example.com")).status_code == 400
    assert browser.finish(provider.sign_in(locations[6], "ann@example.com")).status_code == 303


def test_a_refusal_of_the_provider_is_shown(served: World, provider: Provider) -> None:
    browser = served.browser()
    answer = browser.finish(provider.deny(browser.start("Mock")))
    assert answer.status_code == 401 and "access_denied" in alert(answer), alert(answer)
    assert browser.user() is None


def test_passwords_work_while_the_provider_is_down(tmp_path: Path) -> None:
    provider = Provider()
    with world(tmp_path) as served:
        served.set_secret("mock", "any")
        with provider.running():
            served.configure(provider_text(provider))
            browser = served.browser()
            callback = provider.sign_in(browser.start("Mock"), "ann@example.com")
        answer = browser.finish(callback)
        assert answer.status_code == 503 and "cannot be reached" in alert(answer), alert(answer)
        assert browser.sign_in_with_password(ADMIN).status_code == 303
        assert browser.user() == ADMIN


def test_a_wrong_client_secret_is_said_and_passwords_work(tmp_path: Path) -> None:
    provider = Provider(require_client_registration=True)
    with provider.running(), world(tmp_path) as served:
        client, secret = provider.register(f"{served.url}/signin")
        served.configure(provider_text(provider, client=client))
        browser = served.browser()
        for store, sentence in (
            (lambda: None, "client secret"),
            (lambda: served.set_secret("mock", secret, 0o644), "client secret"),
            (lambda: served.set_secret("mock", "wrong"), "client"),
        ):
            store()
            answer = browser.get("/signin?provider=mock")
            if answer.status_code == 303:
                answer = browser.finish(provider.sign_in(answer.headers["location"], "ann@example.com"))
            assert answer.status_code >= 400 and sentence in alert(answer), alert(answer)
            # The page is public, so it does not show where secrets are stored.
            assert str(tmp_path) not in answer.text and "wrong" not in alert(answer)
        assert "chmod 600" in served.log()
        assert browser.sign_in_with_password(ADMIN).status_code == 303
        served.set_secret("mock", secret)
        assert served.browser().sign_in(provider, "Mock", "ann@example.com").status_code == 303


def test_the_same_name_at_two_providers_is_two_people(tmp_path: Path) -> None:
    one, other = Provider(), Provider()
    with one.running(), other.running(), world(tmp_path) as served:
        for name in ("one", "other"):
            served.set_secret(name, "any")
        served.configure(provider_text(one, "one") + provider_text(other, "other"))
        assert served.browser().sign_in(one, "One", "ann@example.com").status_code == 303
        browser = served.browser()
        answer = browser.sign_in(other, "Other", "ann@example.com")
        assert answer.status_code == 403, alert(answer)
        command = f"mlflow-serverless admin link ann@example.com {other.url} ann@example.com"
        assert command in alert(answer), alert(answer)
        assert browser.user() is None
        served.command(*command.split()[2:])
        assert browser.sign_in(other, "Other", "ann@example.com").status_code == 303
        assert browser.user() == "ann@example.com"
        # Unlinking ends the sessions of this identity only.
        first = served.browser()
        assert first.sign_in(one, "One", "ann@example.com").status_code == 303
        served.command("unlink", "ann@example.com", other.url, "ann@example.com")
        assert (browser.user(), first.user()) == (None, "ann@example.com")


def test_roles_follow_the_claims(served: World, provider: Provider) -> None:
    for role in ("reading", "manual"):
        served.admin("POST", f"{V3}/roles/create", {"name": role, "workspace": "default"})
    served.configure(provider_text(provider, rules=_GROUPS))
    provider.set_person("ann", email="ann@example.com", groups=["readers", "operators"])
    browser = served.browser()
    assert browser.sign_in(provider, "Mock", "ann").status_code == 303
    assert served.roles("ann@example.com") == {"reading"}
    assert browser.api(f"{AJAX}/users/current").json()["user"]["is_admin"] is True
    manual = next(role for role in served.admin("GET", f"{V3}/roles/list", {"workspace": "default"})["roles"] if role["name"] == "manual")
    served.admin("POST", f"{V3}/roles/assign", {"username": "ann@example.com", "role_id": manual["id"]})
    # A renewal takes back what rules gave, and nothing else.
    provider.set_person("ann", email="ann@example.com", groups=[])
    served.make_overdue("ann@example.com")
    assert browser.renew().status_code == 200
    assert served.roles("ann@example.com") == {"manual"}
    assert browser.api(f"{AJAX}/users/current").json()["user"]["is_admin"] is False


def test_an_overdue_session_is_renewed_once(served: World, provider: Provider) -> None:
    browser = served.browser()
    assert browser.sign_in(provider, "Mock", "ann@example.com").status_code == 303
    assert "mlflow_renew_by" in browser.cookies()
    assert browser.renew().status_code == 200
    assert provider.refreshes() == 0, "a renewal that is not due is no request to the provider"
    served.make_overdue("ann@example.com")
    refused = browser.api(f"{AJAX}/users/current")
    assert (refused.status_code, refused.headers.get("mlflow-session")) == (401, "renew")
    cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in browser.session.cookies)

    def renew(_: int) -> requests.Response:
        headers = {"cookie": cookies, "origin": served.url}
        return requests.post(f"{served.url}{AJAX}/users/renew-session", headers=headers, timeout=120)

    with ThreadPoolExecutor(30) as pool:
        answers = list(pool.map(renew, range(30)))
    assert {answer.status_code for answer in answers} == {200}, [answer.text for answer in answers]
    assert provider.refreshes() == 1
    assert len({answer.json()["renew_by"] for answer in answers}) == 1
    assert browser.user() == "ann@example.com"


def test_a_page_with_an_overdue_session_is_shown_without_signing_in(served: World, provider: Provider) -> None:
    browser = served.browser()
    assert browser.sign_in(provider, "Mock", "ann@example.com").status_code == 303
    served.make_overdue("ann@example.com")
    led = browser.get("/tokens")
    assert (led.status_code, led.headers["location"]) == (303, "/signin?next=%2Ftokens")
    back = browser.get(led.headers["location"])
    assert (back.status_code, back.headers.get("location")) == (303, "/tokens"), back.text
    assert browser.get("/tokens").status_code == 200
    assert provider.refreshes() == 1


def test_the_session_ends_when_the_provider_refuses_it(served: World, provider: Provider) -> None:
    browser = served.browser()
    assert browser.sign_in(provider, "Mock", "ann@example.com").status_code == 303
    provider.revoke("ann@example.com")
    served.make_overdue("ann@example.com")
    assert browser.renew().status_code == 401
    assert browser.renew().status_code == 401
    assert provider.refreshes() == 1
    ended = browser.api(f"{AJAX}/users/current")
    assert (ended.status_code, ended.headers.get("mlflow-session")) == (401, None)
    assert browser.get("/tokens").status_code == 303


def test_a_session_survives_an_outage_of_the_provider(tmp_path: Path) -> None:
    provider = Provider()
    with world(tmp_path) as served:
        served.set_secret("mock", "any")
        with provider.running():
            served.configure(provider_text(provider))
            browser = served.browser()
            assert browser.sign_in(provider, "Mock", "ann@example.com").status_code == 303
        served.make_overdue("ann@example.com")
        assert browser.renew().status_code == 503
        assert browser.user() == "ann@example.com"
        served.make_overdue("ann@example.com")
        with provider.running():
            assert browser.renew().status_code == 200
            assert provider.refreshes() == 1
        assert browser.user() == "ann@example.com"


def test_a_renewal_is_accepted_from_the_own_page_only(served: World, provider: Provider) -> None:
    browser = served.browser()
    assert browser.sign_in(provider, "Mock", "ann@example.com").status_code == 303
    served.make_overdue("ann@example.com")
    path = f"{served.url}{AJAX}/users/renew-session"
    for headers in ({}, {"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}):
        assert browser.session.post(path, headers=headers, timeout=120).status_code == 403
    assert requests.post(path, headers=OWN_PAGE, timeout=120).status_code == 401
    assert provider.refreshes() == 0


def test_signing_out_offers_to_sign_out_at_the_provider(served: World, provider: Provider) -> None:
    browser = served.browser()
    assert browser.sign_in(provider, "Mock", "ann@example.com").status_code == 303
    assert not any("Sign out" in text for text in links(served.browser().get("/signin")))
    kept = browser.session.cookies.copy()
    # MLflow's page signs out by deleting the cookie that its script can read.
    del browser.session.cookies["mlflow_user"]
    assert browser.user() is None
    target = links(browser.get("/signin"))["Sign out at Mock as well"]
    assert target.startswith(f"{provider.url}/oauth2/end_session?")
    assert _query(target) == {"client_id": "mlflow", "post_logout_redirect_uri": f"{served.url}/signin"}
    browser.session.cookies = kept
    assert browser.user() is None, "the session has ended"
    assert browser.renew().status_code == 401


def test_without_passwords_only_named_administrators_have_one(tmp_path: Path, provider: Provider) -> None:
    with world(tmp_path, "--passwords", "off", "--password-administrators", ADMIN) as served:
        served.set_secret("mock", "any")
        served.configure(provider_text(provider))
        # An administrator, too, whom the option does not name.
        served.command("create", "bob")
        assert served.browser().sign_in_with_password("bob").status_code == 401
        basic = requests.get(f"{served.url}{AJAX}/users/current", auth=("bob", PASSWORD), timeout=120)
        assert basic.status_code == 401
        assert served.browser().sign_in_with_password(ADMIN).status_code == 303
        browser = served.browser()
        assert browser.sign_in(provider, "Mock", "ann@example.com").status_code == 303
        assert browser.api(f"{AJAX}/users/current").json()["is_basic_auth"] is True


def test_a_wrong_configuration_is_refused_with_a_sentence(served: World, provider: Provider) -> None:
    stored = served.command("providers").stdout
    assert provider.url in stored
    gone = Provider()
    with gone.running():
        pass
    for text, options, sentence in (
        (provider_text(provider).replace("client_id", "client_idd"), (), "client_idd"),
        (provider_text(provider) + provider_text(provider), (), "mock"),
        (provider_text(provider, rules=_GROUPS), (), "reading"),
        (provider_text(gone), (), gone.url),
        (provider_text(provider).replace(provider.url, "http://idp.example"), ("--offline",), "https"),
        ("[[providers]\n", (), "line"),
    ):
        done = served.configure(text, *options, check=False)
        assert done.returncode == 1, text
        [said] = [line for line in done.stderr.splitlines() if line.startswith("mlflow-serverless: ")]
        assert sentence in said, (said, text)
    assert served.command("providers").stdout == stored
    served.configure(provider_text(gone), "--offline")
    served.command("providers", "--remove")
    assert provider.url not in served.command("providers").stdout
