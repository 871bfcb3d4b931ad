"""Single sign-on in Chromium, through `serve`, with npm's `oidc-provider`."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import requests
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.sign_on.site import PASSWORD, TITLE, Site
from tests.support.processes import wait_until

#: The tests share a server and a provider.
pytestmark = pytest.mark.xdist_group("sign-on")

_CURRENT = "/ajax-api/2.0/mlflow/users/current"
_RENEWAL = "/ajax-api/2.0/mlflow/users/renew-session"
_TEAM = ["ml"]
#: Starts requests without waiting for them.
_START = """([path, count]) => { window.started = Promise.all(Array.from({ length: count },
    () => fetch(path).then((answer) => answer.status))) }"""


@contextmanager
def opened(browser: Browser) -> Iterator[BrowserContext]:
    """Opens a browser without cookies."""
    context = browser.new_context(viewport={"width": 1440, "height": 1000}, locale="en-US")
    context.set_default_timeout(60_000)
    try:
        yield context
    finally:
        context.close()


def person(site: Site, name: str, groups: list[str] | None = None) -> str:
    """Creates an account at the provider, and returns the name that its user gets."""
    user = f"{name}@example.com"
    site.provider.put(name, email=user, groups=_TEAM if groups is None else groups)
    return user


def run_page(site: Site, name: str) -> tuple[str, str]:
    """Creates a run, and returns its name and the address of its page."""
    experiment = site.post("2.0/mlflow/experiments/create", {"name": f"experiment of {name}"})["experiment_id"]
    run = site.post("2.0/mlflow/runs/create", {"experiment_id": experiment, "run_name": f"run of {name}"})
    return f"run of {name}", f"{site.url}/#/experiments/{experiment}/runs/{run['run']['info']['run_id']}"


def select_provider(page: Page) -> None:
    page.get_by_role("link", name=f"Sign in with {TITLE}").click()


def continue_as(page: Page, account: str) -> None:
    """Fills in the form of the provider."""
    page.get_by_label("Account").fill(account)
    page.get_by_role("button", name="Continue").click()


def sign_in(page: Page, site: Site, account: str) -> None:
    page.goto(f"{site.url}/")
    select_provider(page)
    continue_as(page, account)
    page.wait_for_url(f"{site.url}/")
    expect(page.get_by_role("heading", name="Sign in")).to_be_hidden()


def status(page: Page, path: str, method: str = "GET") -> int:
    """Returns the status of a request that a script of the page sends."""
    return page.evaluate("([path, method]) => fetch(path, { method }).then((answer) => answer.status)", [path, method])


def test_a_person_signs_in_from_a_link_and_signs_out_for_good(browser: Browser, site: Site) -> None:
    user = person(site, "ann")
    run, address = run_page(site, "ann")
    with opened(browser) as context:
        page = context.new_page()
        page.goto(address)
        select_provider(page)
        continue_as(page, "ann")
        # The role that the rule for the group gives allows reading the run.
        expect(page.get_by_text(run).first).to_be_visible()
        assert page.url == address
        stolen = context.cookies()
        assert user in site.current(stolen).text

        # Signs out with the page's own button.
        page.goto(f"{site.url}/")
        page.get_by_text(user, exact=True).first.click()
        page.get_by_text("Log out", exact=False).or_(page.get_by_text("Logout")).first.click()
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        assert site.current(stolen).status_code == 401
        renewed = requests.post(f"{site.url}{_RENEWAL}", headers=headers_of(stolen), timeout=60)
        assert renewed.status_code == 401
        assert site.current(context.cookies()).status_code == 401

        # Nothing signs the person in again, although the provider would.
        page.goto(address)
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        # Sign-on takes one click as long as the session at the provider exists.
        select_provider(page)
        expect(page.get_by_text(run).first).to_be_visible()


@pytest.mark.slow
def test_signing_out_at_the_provider_as_well(browser: Browser, site: Site) -> None:
    user = person(site, "olga")
    with opened(browser) as context:
        page = context.new_page()
        sign_in(page, site, "olga")
        page.get_by_text(user, exact=True).first.click()
        page.get_by_text("Log out", exact=False).or_(page.get_by_text("Logout")).first.click()
        page.get_by_role("link", name=f"Sign out at {TITLE}").click()
        page.get_by_role("button", name="Sign out at the provider").click()
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        select_provider(page)
        expect(page.get_by_role("heading", name="Identity provider")).to_be_visible()


def test_thirty_requests_in_two_tabs_cause_one_refresh(browser: Browser, site: Site) -> None:
    user = person(site, "bob")
    with opened(browser) as context:
        tabs = [context.new_page(), context.new_page()]
        sign_in(tabs[0], site, "bob")
        tabs[1].goto(f"{site.url}/")
        for tab in tabs:
            expect(tab.get_by_text(user, exact=True).first).to_be_visible()
        # The second tab sends its requests while the refresh of the first is in progress.
        site.provider.answer_tokens(delay_ms=1_000)
        try:
            before = site.provider.refreshes()
            overdue(site, context, user)
            for tab in tabs:
                tab.evaluate(_START, [_CURRENT, 15])
            statuses = [tab.evaluate("window.started") for tab in tabs]
        finally:
            site.provider.answer_tokens()
        assert statuses == [[200] * 15] * 2
        assert site.provider.refreshes()[len(before) :] == [200]

        # The refresh token that was issued last is the one that is stored.
        overdue(site, context, user)
        assert status(tabs[1], _CURRENT) == 200
        assert site.provider.refreshes()[len(before) :] == [200, 200]


def test_a_page_that_is_opened_with_an_overdue_session_renews_it(browser: Browser, site: Site) -> None:
    user = person(site, "eva")
    run, address = run_page(site, "eva")
    with opened(browser) as context:
        sign_in(context.new_page(), site, "eva")
        before = site.provider.refreshes()
        overdue(site, context, user)
        page = context.new_page()
        page.goto(address)
        expect(page.get_by_text(run).first).to_be_visible()
        assert page.url == address
        assert site.provider.refreshes()[len(before) :] == [200]


def test_a_removed_person_is_locked_out(browser: Browser, site: Site) -> None:
    user = person(site, "carol")
    with opened(browser) as context:
        page = context.new_page()
        sign_in(page, site, "carol")
        token = token_of(page, site)
        assert with_token(site, token) == 200
        site.provider.remove("carol")
        # The interval has not passed.
        assert status(page, _CURRENT) == 200
        overdue(site, context, user)
        cookies = context.cookies()
        page.evaluate(_START, [_CURRENT, 1])
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        assert site.current(cookies).status_code == 401
        select_provider(page)
        # The provider does not know the person, either, and does not lead back.
        page.wait_for_url(lambda url: url.startswith(site.provider.issuer))
        assert site.current(context.cookies()).status_code == 401
    # Tokens last until the provider's last confirmation has expired.
    assert with_token(site, token) == 200
    site.confirmed_until(user, int(time.time()) - 1)
    wait_until(lambda: with_token(site, token) == 401, "end of the token", site.server.process)


def test_a_group_that_is_removed_takes_its_role_away(browser: Browser, site: Site) -> None:
    user = person(site, "dave", ["ml", "admins"])
    with opened(browser) as context:
        page = context.new_page()
        sign_in(page, site, "dave")
        assert status(page, "/ajax-api/3.0/mlflow/roles/list") == 200
        assert is_administrator(site, user)
        site.provider.put("dave", email=user, groups=["ml"])
        overdue(site, context, user)
        assert status(page, _CURRENT) == 200
        assert not is_administrator(site, user)
        assert roles(site, user) == ["trainers"]

        # Without any of the required groups, the person is not admitted.
        site.provider.put("dave", email=user, groups=[])
        overdue(site, context, user)
        cookies = context.cookies()
        page.evaluate(_START, [_CURRENT, 1])
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        assert site.current(cookies).status_code == 401
        select_provider(page)
        expect(page.get_by_role("alert")).to_contain_text("groups")
        assert site.current(context.cookies()).status_code == 401


def test_two_attempts_at_once_return_to_their_own_pages(browser: Browser, site: Site) -> None:
    person(site, "fred")
    # This page has a fragment only for the test, and is loaded faster than MLflow's.
    addresses = [f"{site.url}/tokens#{name}" for name in ("first", "second")]
    with opened(browser) as context:
        tabs = [context.new_page() for _ in addresses]
        for tab, address in zip(tabs, addresses, strict=True):
            tab.goto(address)
            select_provider(tab)
            expect(tab.get_by_label("Account")).to_be_visible()
        for tab, address in reversed(list(zip(tabs, addresses, strict=True))):
            continue_as(tab, "fred")
            expect(tab.get_by_role("heading", name="Tokens")).to_be_visible()
            assert tab.url == address


def test_a_provider_that_is_down_ends_no_session_and_passwords_work(browser: Browser, site: Site) -> None:
    user = person(site, "hugo")
    with opened(browser) as context, opened(browser) as other:
        page = context.new_page()
        sign_in(page, site, "hugo")
        site.provider.close()
        try:
            overdue(site, context, user)
            assert status(page, _CURRENT) == 200
            administrator = other.new_page()
            administrator.goto(f"{site.url}/")
            administrator.get_by_label("Username").fill("admin")
            administrator.get_by_label("Password").fill(PASSWORD)
            administrator.get_by_role("button", name="Sign in").click()
            administrator.wait_for_url(f"{site.url}/")
            expect(administrator.get_by_role("heading", name="Sign in")).to_be_hidden()
        finally:
            site.provider.open()
        # The token has not been sent, so it is still there.
        overdue(site, context, user)
        assert status(page, _CURRENT) == 200


@pytest.mark.slow
def test_a_name_that_is_taken_is_refused_with_the_command_that_links(browser: Browser, site: Site) -> None:
    site.post("2.0/mlflow/users/create", {"username": "ina@example.com", "password": PASSWORD})
    user = person(site, "ina")
    with opened(browser) as context:
        page = context.new_page()
        page.goto(f"{site.url}/")
        select_provider(page)
        continue_as(page, "ina")
        expect(page.get_by_role("alert")).to_contain_text("admin link")
        assert site.current(context.cookies()).status_code == 401
        linked = site.admin("link", user, site.provider.issuer, "ina")
        assert linked.returncode == 0, linked.stderr
        page.goto(f"{site.url}/")
        select_provider(page)
        page.wait_for_url(f"{site.url}/")
        assert status(page, _CURRENT) == 200
        unlinked = site.admin("unlink", user, site.provider.issuer, "ina")
        assert unlinked.returncode == 0, unlinked.stderr
        wait_until(lambda: site.current(context.cookies()).status_code == 401, "end of the session", site.server.process)


@pytest.mark.slow
def test_the_script_renews_ahead_of_time_once_for_all_tabs(browser: Browser, site: Site) -> None:
    user = person(site, "jane")
    with opened(browser) as context:
        tabs = [context.new_page(), context.new_page()]
        sign_in(tabs[0], site, "jane")
        before = site.provider.refreshes()
        # Due in a minute, so that the pages renew within the next minute.
        site.overdue(user, seconds=-60)
        set_renew_by(site, context, int(time.time()) + 60)
        for tab in tabs:
            tab.goto(f"{site.url}/")
        wait_until(lambda: tabs[0].wait_for_timeout(100) or site.provider.refreshes() != before, "a renewal", site.server.process)
        tabs[1].wait_for_timeout(20_000)
        assert site.provider.refreshes()[len(before) :] == [200]


def headers_of(cookies: list) -> dict[str, str]:
    header = "; ".join(f"{cookie['name']}={cookie['value']}" for cookie in cookies)
    return {"cookie": header, "sec-fetch-site": "same-origin"}


def overdue(site: Site, context: BrowserContext, user: str) -> None:
    """Makes the session of a browser overdue, and waits until the server has noticed."""
    site.overdue(user)
    set_renew_by(site, context, int(time.time()) - 1)
    wait_until(lambda: site.current(context.cookies()).status_code == 401, "overdue session", site.server.process)


def set_renew_by(site: Site, context: BrowserContext, when: int) -> None:
    """Sets the cookie from which pages read when the session has to be renewed."""
    context.add_cookies([{"name": "mlflow_renew_by", "value": str(when), "url": f"{site.url}/"}])


def token_of(page: Page, site: Site) -> str:
    """Creates a token on the page of tokens."""
    page.goto(f"{site.url}/tokens")
    page.get_by_label("Name", exact=True).fill("laptop")
    page.get_by_role("button", name="Create token").click()
    token = page.locator("code", has_text="mlflow-token_").first.inner_text()
    page.goto(f"{site.url}/")
    return token


def with_token(site: Site, token: str) -> int:
    return requests.get(f"{site.url}/api/2.0/mlflow/users/current", headers={"authorization": f"Bearer {token}"}, timeout=60).status_code


def is_administrator(site: Site, user: str) -> bool:
    answer = requests.get(f"{site.url}/api/2.0/mlflow/users/get", params={"username": user}, auth=("admin", PASSWORD), timeout=60)
    return answer.json()["user"]["is_admin"]


def roles(site: Site, user: str) -> list[str]:
    answer = requests.get(f"{site.url}/api/3.0/mlflow/users/roles/list", params={"username": user}, auth=("admin", PASSWORD), timeout=60)
    return [role["name"] for role in answer.json()["roles"]]
