"""Opens pages for the first time in an AWS account with a quota of ten concurrent functions: further
requests are answered with 503, and browsers do not repeat those for scripts.
"""

import json
from pathlib import Path

import pytest
import requests
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from tests.browser import ui
from tests.browser.stack import PASSWORD, functions, sign_in
from tests.support.s3 import LocalS3
from tests.support.ui_build import fetch_ui, ui_bundles

pytestmark = pytest.mark.xdist_group("newcomer")

_QUOTA = 10
#: Simulated duration of each request, so that requests which can be concurrent are concurrent.
_REQUEST_MS = 150
_PATIENCE_MS = 90_000


class Gateway:
    """Rejects requests beyond the quota. The browser hands over its requests without a limit per
    server, as over HTTP/2.
    """

    def __init__(self, context: BrowserContext):
        self.rejected: list[str] = []
        self.most_files = 0
        self._running: list[str] = []
        context.route("**/*", self._answer)

    def _answer(self, route: Route) -> None:
        path = "/" + route.request.url.split("/", 3)[3]
        if len(self._running) >= _QUOTA:
            self.rejected.append(path)
            route.fulfill(status=503, json={"message": "Service Unavailable"})
            return
        self._running.append(path)
        self.most_files = max(self.most_files, sum(running.startswith("/static-files/") for running in self._running))
        try:
            response = route.fetch()
            route.request.frame.page.wait_for_timeout(_REQUEST_MS)
        finally:
            self._running.remove(path)
        route.fulfill(response=response)


@pytest.fixture
def addresses(quickstart: str) -> dict[str, str]:
    """Returns the addresses of pages by name."""
    api = f"{quickstart}/api/2.0/mlflow"
    found = requests.get(f"{api}/experiments/get-by-name", params={"experiment_name": "quickstart"}, timeout=60).json()
    experiment = found["experiment"]["experiment_id"]
    [run] = requests.post(f"{api}/runs/search", json={"experiment_ids": [experiment]}, timeout=60).json()["runs"]
    page = f"{quickstart}/#/experiments/{experiment}"
    return {
        "home": f"{quickstart}/",
        "experiment": page,
        "runs": f"{page}/runs",
        "run": f"{page}/runs/{run['info']['run_id']}",
        "artifacts": f"{page}/runs/{run['info']['run_id']}/artifacts/notes.txt",
        "models": f"{quickstart}/#/models",
    }


_SHOWN = {
    "home": "quickstart",
    "experiment": "quickstart",
    "runs": "quickstart",
    "run": "optimizer",
    "artifacts": "Each step halves the loss.",
    "models": "Registered Models",
}


@pytest.mark.parametrize("name", _SHOWN)
def test_a_first_visit_fits_into_a_small_quota(browser: Browser, addresses: dict[str, str], name: str):
    context = browser.new_context(viewport={"width": 1440, "height": 1000}, locale="en-US")
    try:
        gateway = Gateway(context)
        page = context.new_page()
        errors = _errors(page)
        page.goto(addresses[name])
        expect(page.get_by_role("main").get_by_text(_SHOWN[name]).first).to_be_visible(timeout=_PATIENCE_MS)
        assert [path for path in gateway.rejected if not path.startswith("/ajax-api/3.0/mlflow/traces/metrics")] == []
        assert errors == []
        assert gateway.most_files < _QUOTA
    finally:
        context.unroute_all(behavior="wait")
        context.close()


@pytest.mark.slow
def test_a_first_visit_to_the_functions_fits_into_a_small_quota(browser: Browser, tmp_path: Path, s3: LocalS3):
    with functions(tmp_path, s3) as url:
        created = requests.post(
            f"{url}/api/2.0/mlflow/runs/create", json={"experiment_id": "0", "run_name": "first"}, auth=("admin", PASSWORD), timeout=120
        )
        assert created.status_code == 200, created.text
        context = browser.new_context(viewport={"width": 1440, "height": 1000}, locale="en-US")
        try:
            page = context.new_page()
            page.goto(url)
            sign_in(page, "admin", PASSWORD)
            expect(page.get_by_role("main").first).to_be_visible(timeout=_PATIENCE_MS)
            page.goto("about:blank")
            # The browser does not use its cache while requests are handed over.
            gateway = Gateway(context)
            errors = _errors(page)
            page.goto(f"{url}/#/experiments/0/runs/{created.json()['run']['info']['run_id']}")
            expect(page.get_by_role("heading", name="first").first).to_be_visible(timeout=_PATIENCE_MS)
            assert gateway.most_files > 1 and gateway.rejected == [] and errors == []
        finally:
            context.unroute_all(behavior="wait")
            context.close()


def test_scripts_that_fail_are_requested_again(browser: Browser, addresses: dict[str, str]):
    """Checks that each bundle is requested again after failing twice. One bundle always fails,
    so that the separate files of its chunks are used."""
    context = browser.new_context(viewport={"width": 1440, "height": 1000}, locale="en-US")
    try:
        attempts: dict[str, int] = {}
        missing = _largest_needed()

        def answer(route: Route) -> None:
            path = route.request.url.rpartition("/")[2]
            attempts[path] = attempts.get(path, 0) + 1
            if path == missing or (path.startswith("bundle.") and attempts[path] <= 2):
                route.fulfill(status=503)
            else:
                route.continue_()

        context.route("**/static/js/bundle.*", answer)
        context.route("**/static/js/*.chunk.js", answer)
        page = context.new_page()
        page.goto(addresses["run"])
        expect(page.get_by_text("optimizer").first).to_be_visible(timeout=_PATIENCE_MS)
        assert 3 <= attempts[missing] <= 6 and any(path.endswith(".chunk.js") for path in attempts)
    finally:
        context.unroute_all(behavior="wait")
        context.close()


def _errors(page: Page) -> list[str]:
    """Collects the errors of scripts, such as chunks that were not loaded."""
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if "ChunkLoadError" in message.text else None)
    return errors


def _largest_needed() -> str:
    """Returns the name of a bundle that the page of a run needs: the one with the most chunks."""
    [loader] = (ui.directory() / "static/js").glob("bundles.*.js")
    bundles = json.loads(next(line for line in loader.read_text().splitlines() if "const bundles" in line).partition("=")[2].rstrip("; "))
    return max(bundles, key=lambda name: len(bundles[name])).rpartition("/")[2]


def _build(directory: Path, chunks: int, entry: str) -> Path:
    """Writes a build whose entry script loads some chunks at once."""
    scripts = {"main.0.js": entry}
    for chunk in range(chunks):
        scripts[f"{chunk}.0.chunk.js"] = f'"use strict";(self["webpackChunkx"]=self["webpackChunkx"]||[]).push([[{chunk}],{{}}]);\n//# source'
    for name, content in scripts.items():
        fetch_ui.write(directory / "static/js" / name, content.encode())
    page = '<html><head><script defer="defer" src="./static-files/static/js/main.0.js"></script></head></html>'
    fetch_ui.write(directory / "index.html", page.encode())
    return directory


def test_chunks_that_are_loaded_together_become_bundles(tmp_path: Path):
    loads = ",".join(f"r.e({chunk})" for chunk in range(20))
    build = _build(tmp_path, 21, f"Promise.all([{loads}]).then(r.bind(r,1));r.e(20)")
    files = ui_bundles.bundled_files(build)
    scripts = {path.name: path.read_text() for path in (build / "static/js").glob("*.js")}
    ids = {str(chunk): f"{chunk}.0.chunk.js" for chunk in range(21)}
    found = ui_bundles.bundles(build, scripts, ids)
    alone = 20 - sum(len(bundle.files) for bundle in found)
    assert alone + len(found) == ui_bundles.SCRIPTS_PER_CALL
    assert all("20.0.chunk.js" not in bundle.files for bundle in found)
    bundles = {name: content.decode() for name, content in files.items() if "/bundle." in name}
    # Each chunk keeps its strict mode, which holds for a function.
    assert sum(content.count('(() => {\n"use strict";') for content in bundles.values()) == 20 - alone
    page = files["index.html"].decode()
    [loader] = (name for name in files if "/bundles." in name)
    assert page.index(f'<script defer="defer" src="./static-files/{loader}"></script>') < page.index("main.0.js")
    assert all(name in files[loader].decode() for name in bundles) and "webpackChunkx" in files[loader].decode()


@pytest.mark.parametrize("chunks, entry", [(0, "console.log()"), (3, "r.e(0);r.e(1)"), (3, "other(0, 1, 2)")])
def test_a_build_that_cannot_be_bundled_remains_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str], chunks: int, entry: str):
    build = _build(tmp_path, chunks, entry)
    before = {path: path.read_bytes() for path in build.rglob("*") if path.is_file()}
    fetch_ui.bundle(build)
    assert {path: path.read_bytes() for path in build.rglob("*") if path.is_file()} == before
    assert "one by one" in capsys.readouterr().err
