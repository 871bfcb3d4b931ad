"""A browser signs in on a page and out by MLflow's own menu: on one process, and on the functions behind a gateway that renames the challenge."""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests
from playwright.sync_api import Browser, BrowserContext, Page, expect
from samtranslator.yaml_helper import yaml_parse

from tests.browser import ui
from tests.support.engine import Engine, start_engine
from tests.support.gateway import Gateway, Limits, read_routes
from tests.support.http_server import Answer, Received, serving
from tests.support.runtime_api import Function
from tests.support.s3 import LocalS3
from tests.support.servers import ARTIFACT_ROOT, ServerlessMlflow, binary

_REPOSITORY = Path(__file__).resolve().parents[2]
_PATIENCE_SECONDS = 300
_PASSWORD, _OTHER_PASSWORD = "correct horse battery", "another horse battery"
_API = "api/2.0/mlflow"


@dataclass
class World:
    """A server with an administrator, and with ann, who may read one of two experiments."""

    url: str
    run: str
    forbidden: str


def _administrator(*place: str, env: dict[str, str] | None = None) -> None:
    command = [str(binary()), "admin", "create", "admin", *place]
    subprocess.run(command, input=f"{_PASSWORD}\n", text=True, check=True, capture_output=True, timeout=120, env=env)


def _furnish(url: str) -> World:
    def post(version: str, path: str, body: dict) -> dict:
        answer = requests.post(f"{url}/api/{version}/mlflow/{path}", json=body, auth=("admin", _PASSWORD), timeout=120)
        assert answer.status_code == 200, answer.text
        return answer.json()

    post("2.0", "users/create", {"username": "ann", "password": _PASSWORD})
    ids = [post("2.0", "experiments/create", {"name": name})["experiment_id"] for name in ("shown", "hidden")]
    run = post("2.0", "runs/create", {"experiment_id": ids[0], "run_name": "the run of the link"})["run"]["info"]["run_id"]
    grant = {"username": "ann", "resource_type": "experiment", "resource_id": ids[0], "permission": "READ"}
    post("3.0", "users/permissions/grant", grant)
    return World(url, f"/#/experiments/{ids[0]}/runs/{run}", f"/#/experiments/{ids[1]}/runs")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[World]:
    """One process."""
    _administrator("--data", str(tmp_path / "server/data"))
    server = ServerlessMlflow(tmp_path / "server", options=("--auth", "basic", "--ui", str(ui.DIRECTORY)), artifact_root="mlflow-artifacts:/")
    try:
        yield _furnish(server.url)
    finally:
        server.stop()


@pytest.fixture
def deployed(tmp_path: Path, s3: LocalS3) -> Iterator[World]:
    """The functions behind the gateway."""
    with ExitStack() as stops:
        engine = start_engine(tmp_path, tmp_path / "data")
        stops.callback(engine.process.stop)
        bucket = s3.make_bucket(urlsplit(ARTIFACT_ROOT).netloc + "-users")
        settings = _settings(engine, s3.url, bucket.name)
        _administrator(
            "--dynamodb-endpoint", engine.url, "--table", "mlflow", "--access-table", "mlflow-access", env=settings
        )
        names = [crate.parent.name for crate in _REPOSITORY.glob("functions/*/Cargo.toml")]
        functions = {
            name: Function(_REPOSITORY / "target/debug" / name, tmp_path, settings, _PATIENCE_SECONDS) for name in names
        }
        for function in functions.values():
            stops.callback(function.stop)
        routes = read_routes(yaml_parse((_REPOSITORY / "template.yaml").read_text()))
        gateway = Gateway(routes, functions, Limits(seconds=_PATIENCE_SECONDS))
        yield _furnish(stops.enter_context(serving(gateway.answer)))


def _settings(engine: Engine, s3: str, bucket: str) -> dict[str, str]:
    return {
        "DYNAMODB_ENDPOINT": engine.url,
        "ACCESS_MODE": "basic",
        "DEFAULT_PERMISSION": "NO_PERMISSIONS",
        "TABLE_NAME": "mlflow",
        "ACCESS_TABLE_NAME": "mlflow-access",
        "ARTIFACT_ROOT": f"s3://{bucket}/root",
        "AWS_ENDPOINT_URL_S3": s3,
        "AWS_ACCESS_KEY_ID": engine.access_key,
        "AWS_SECRET_ACCESS_KEY": engine.secret,
        "AWS_REGION": "local",
        "UI_DIRECTORY": str(ui.DIRECTORY),
    }


def _another_site(world: World):
    """A page of another server, with a link to the run."""
    page = f'<!doctype html><a href="{world.url}{world.run}">the run</a>'

    def answer(_: Received) -> Answer:
        return 200, [("content-type", "text/html"), ("content-length", str(len(page)))], page.encode()

    return serving(answer)


def _sign_in(page: Page, password: str) -> None:
    page.get_by_label("Username").fill("ann")
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


def _current(context: BrowserContext, world: World, cookies: list) -> int:
    """Whether somebody with these cookies is known."""
    header = "; ".join(f"{cookie['name']}={cookie['value']}" for cookie in cookies)
    headers = {"cookie": header, "sec-fetch-site": "same-origin"}
    return requests.get(f"{world.url}/ajax-{_API}/users/current", headers=headers, timeout=120).status_code


#: Before the functions, tests/deployed signs in as well.
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
            # On the way the browser keeps what stands behind the #.
            expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
            _sign_in(page, "wrong")
            expect(page.get_by_role("alert")).to_have_text("The username or the password is wrong.")
            _sign_in(page, _PASSWORD)
            expect(page.get_by_text("the run of the link").first).to_be_visible()
            assert page.url == world.url + world.run

        page.goto(f"{world.url}/#/account")
        expect(page.get_by_text("ann", exact=True).first).to_be_visible()
        own = context.cookies()
        assert _current(context, world, own) == 200
        change = {"username": "ann", "password": _OTHER_PASSWORD, "current_password": _PASSWORD}
        changed = page.evaluate(
            """async ([path, body]) => (await fetch(path, { method: "PATCH", body: JSON.stringify(body),
               headers: { "content-type": "application/json" } })).status""",
            [f"/ajax-{_API}/users/update-password", change],
        )
        assert changed == 200
        page.goto(world.url + world.forbidden)
        expect(page.get_by_text("Permission", exact=False).first).to_be_visible()

        # Out by the page's own button.
        page.goto(f"{world.url}/")
        page.get_by_text("ann", exact=True).first.click()
        page.get_by_text("Log out", exact=False).or_(page.get_by_text("Logout")).first.click()
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        assert _current(context, world, own) == 401
        _sign_in(page, _OTHER_PASSWORD)
        page.wait_for_url(f"{world.url}/**")
        expect(page.get_by_role("heading", name="Sign in")).to_be_hidden()
    finally:
        page.screenshot(path=str(request.getfixturevalue("tmp_path") / f"{where}.png"))
        context.close()
