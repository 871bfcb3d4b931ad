"""A browser signs in on our page and signs out with MLflow's own menu.

The tests use one process, and the functions behind a gateway that renames the challenge header.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests
from playwright.sync_api import Browser, BrowserContext, expect

from tests.browser.stack import PASSWORD, functions, process, sign_in
from tests.support.http_server import Answer, Received, serving
from tests.support.s3 import LocalS3

_OTHER_PASSWORD = "another horse battery"
_API = "api/2.0/mlflow"


@dataclass
class World:
    """A server with an administrator, and with the user ann, who may read one of two experiments.
    """

    url: str
    run: str
    forbidden: str


def _furnish(url: str) -> World:
    def post(version: str, path: str, body: dict) -> dict:
        answer = requests.post(f"{url}/api/{version}/mlflow/{path}", json=body, auth=("admin", PASSWORD), timeout=120)
        assert answer.status_code == 200, answer.text
        return answer.json()

    post("2.0", "users/create", {"username": "ann", "password": PASSWORD})
    ids = [post("2.0", "experiments/create", {"name": name})["experiment_id"] for name in ("shown", "hidden")]
    run = post("2.0", "runs/create", {"experiment_id": ids[0], "run_name": "the run of the link"})["run"]["info"]["run_id"]
    grant = {"username": "ann", "resource_type": "experiment", "resource_id": ids[0], "permission": "READ"}
    post("3.0", "users/permissions/grant", grant)
    return World(url, f"/#/experiments/{ids[0]}/runs/{run}", f"/#/experiments/{ids[1]}/runs")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[World]:
    """Starts one process."""
    with process(tmp_path, "--auth", "basic") as url:
        yield _furnish(url)


@pytest.fixture
def deployed(tmp_path: Path, s3: LocalS3) -> Iterator[World]:
    """Starts the functions behind the gateway."""
    with functions(tmp_path, s3) as url:
        yield _furnish(url)


def _another_site(world: World):
    """Serves a page on another server, with a link to the run."""
    page = f'<!doctype html><a href="{world.url}{world.run}">the run</a>'

    def answer(_: Received) -> Answer:
        return 200, [("content-type", "text/html"), ("content-length", str(len(page)))], page.encode()

    return serving(answer)


def _current(context: BrowserContext, world: World, cookies: list) -> int:
    """Returns the status of a request with these cookies, which is 200 if they belong to a session.
    """
    header = "; ".join(f"{cookie['name']}={cookie['value']}" for cookie in cookies)
    headers = {"cookie": header, "sec-fetch-site": "same-origin"}
    return requests.get(f"{world.url}/ajax-{_API}/users/current", headers=headers, timeout=120).status_code


#: The functions are slow, and tests/deployed covers signing in to them as well.
@pytest.mark.parametrize("where", ["served", pytest.param("deployed", marks=pytest.mark.slow)])
def test_a_browser_signs_in_and_out(where: str, browser: Browser, request: pytest.FixtureRequest) -> None:
    world: World = request.getfixturevalue(where)
    context = browser.new_context(viewport={"width": 1440, "height": 1000}, locale="en-US")
    page = context.new_page()
    page.set_default_timeout(90_000)
    expect.set_options(timeout=90_000)
    try:
        with _another_site(world) as elsewhere:
            page.goto(elsewhere)
            page.get_by_role("link", name="the run").click()
            # The browser preserves the fragment across the redirect.
            expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
            sign_in(page, "ann", "wrong")
            expect(page.get_by_role("alert")).to_have_text("Incorrect username or password.")
            sign_in(page, "ann", PASSWORD)
            expect(page.get_by_text("the run of the link").first).to_be_visible()
            assert page.url == world.url + world.run

        page.goto(f"{world.url}/#/account")
        expect(page.get_by_text("ann", exact=True).first).to_be_visible()
        own = context.cookies()
        assert _current(context, world, own) == 200
        change = {"username": "ann", "password": _OTHER_PASSWORD, "current_password": PASSWORD}
        changed = page.evaluate(
            """async ([path, body]) => (await fetch(path, { method: "PATCH", body: JSON.stringify(body),
               headers: { "content-type": "application/json" } })).status""",
            [f"/ajax-{_API}/users/update-password", change],
        )
        assert changed == 200
        page.goto(world.url + world.forbidden)
        expect(page.get_by_text("Permission", exact=False).first).to_be_visible()

        # Signs out with the page's own button.
        page.goto(f"{world.url}/")
        page.get_by_text("ann", exact=True).first.click()
        page.get_by_text("Log out", exact=False).or_(page.get_by_text("Logout")).first.click()
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        assert _current(context, world, own) == 401
        sign_in(page, "ann", _OTHER_PASSWORD)
        page.wait_for_url(f"{world.url}/**")
        expect(page.get_by_role("heading", name="Sign in")).to_be_hidden()
    finally:
        page.screenshot(path=str(request.getfixturevalue("tmp_path") / f"{where}.png"))
        context.close()
