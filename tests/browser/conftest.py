"""Two servers with the same data, and a browser on each."""

import json
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser import ui
from tests.browser.names import PARTS, SAMPLE
from tests.browser.texts import Allowed
from tests.browser.visit import CHROMIUM, OPTIONS, Desk, Seen, Visit
from tests.support import warm
from tests.support.processes import child_environment
from tests.support.servers import ServerlessMlflow, StockMlflow, subject_is_stock_mlflow
from tests.webhooks.options import STOCK_ENVIRONMENT, subject_options

#: Directory of screenshots, with a directory for each side.
OUTPUT = Path(__file__).parent / "output"
_REPOSITORY = Path(__file__).resolve().parents[2]
#: Timeout for creating the data. It takes half a minute, and several minutes on a busy machine.
_DATA_SECONDS = 400
_STEP_SECONDS = 300

ALLOWED = Allowed(Path(__file__).with_name("allowed.yaml"), ui.VERSION)

Both = dict[str, Seen]


@pytest.fixture(scope="session")
def desks(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[dict[str, Desk]]:
    """Yields a browser on stock MLflow and one on the server under test."""
    require_chromium()
    parts = _parts(request.session)
    starts = {"reference": _stock, "subject": _stock if subject_is_stock_mlflow() else _ours}
    directories = {side: tmp_path_factory.mktemp(side) for side in starts}
    servers, opened = {}, {}
    try:
        with ThreadPoolExecutor() as threads:
            begun = {side: threads.submit(start, directories[side]) for side, start in starts.items()}
            servers = {side: server.result() for side, server in begun.items()}
            minute = int(time.time() // 60) - 1
            filled = {side: threads.submit(_fill, server, directories[side], minute, parts) for side, server in servers.items()}
            ids = {side: future.result() for side, future in filled.items()}
        for side, server in servers.items():
            # Stock MLflow has no option for a different user interface, so the browser replaces the
            # server's files.
            brought = ui.OTHER if isinstance(server, StockMlflow) else None
            opened[side] = Desk(server.url, ids[side], _output(side), brought)
        yield opened
    finally:
        for desk in opened.values():
            desk.close()
        for server in servers.values():
            server.stop()


@pytest.fixture(scope="session")
def see(desks: dict[str, Desk]) -> Callable[[str, Callable[[Visit], None]], Both]:
    """Returns a function that performs a step on both servers concurrently and returns what was
    seen. Results are cached by the name of the step."""
    done: dict[str, Both | BaseException] = {}

    def see(name: str, step: Callable[[Visit], None]) -> Both:
        if name not in done:
            started = {side: desk.do(name, step) for side, desk in desks.items()}
            try:
                done[name] = {side: seen.result(_STEP_SECONDS) for side, seen in started.items()}
            except BaseException as error:
                done[name] = error
        if isinstance(found := done[name], BaseException):
            raise found
        return found

    return see


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Yields a browser in this thread, for tests that need visits of their own. While it exists, no
    other event loop can run in the thread.
    """
    require_chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def quickstart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yields the URL of this project's server with only the data of the README's example."""
    directory = tmp_path_factory.mktemp("quickstart")
    server = _ours(directory)
    try:
        # Suppresses the lines with links, which contain the server's port.
        environment = child_environment(MLFLOW_TRACKING_URI=server.url, MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT="true")
        done = warm.run([str(_REPOSITORY / "examples/quickstart.py")], environment, directory, _DATA_SECONDS)
        assert done.returncode == 0, done.stderr
        assert done.stdout == (_REPOSITORY / "examples/quickstart.expected").read_text()
        yield server.url
    finally:
        server.stop()


@pytest.fixture
def newcomer(browser: Browser, quickstart: str, request: pytest.FixtureRequest) -> Iterator[Visit]:
    """Yields the visit of a user who opens the server for the first time."""
    screenshots = _output("newcomer")
    screenshots.mkdir(parents=True, exist_ok=True)
    visit = Visit(browser, quickstart, {}, screenshots, newcomer=True)
    visit.begin(request.node.name)
    visit.page.goto(quickstart)
    yield visit
    visit.close()


def unexpected(visit: Visit) -> list[str]:
    """Returns the problems on a newcomer's pages, except those that are allowed on every page."""
    return [problem for problem in visit.end().problems if not ALLOWED.problem("newcomer", "subject", problem)]


def require_chromium() -> None:
    if not Path(CHROMIUM).is_file():
        pytest.fail(f"{CHROMIUM} is missing: install Debian's package chromium (apt-get install chromium)")


def _stock(directory: Path) -> StockMlflow:
    artifacts = ("--artifacts-destination", str(directory / "artifacts"))
    return StockMlflow(directory / "server", artifact_options=artifacts, environment=STOCK_ENVIRONMENT)


def _ours(directory: Path) -> ServerlessMlflow:
    options = ("--ui", str(ui.directory()), *subject_options(directory))
    return ServerlessMlflow(directory / "server", options=options, artifact_root="mlflow-artifacts:/")


def _output(side: str) -> Path:
    return OUTPUT / (f"{side} {ui.VERSION}" if ui.OTHER else side)


def _parts(session: pytest.Session) -> Iterable[str]:
    """Returns the parts of the data that the steps of this session show: those of `make test`'s
    steps, or all if there are other steps.
    """
    steps = {item.callspec.params["step"] for item in session.items if "step" in getattr(getattr(item, "callspec", None), "params", ())}
    return {part for step in steps for part in SAMPLE[step]} if steps <= SAMPLE.keys() else PARTS


def _fill(server: StockMlflow | ServerlessMlflow, directory: Path, minute: int, parts: Iterable[str]) -> dict[str, str]:
    file = directory / "ids.json"
    program = ["-m", "tests.browser.data", server.url, str(file), str(minute), *parts]
    done = warm.run(program, child_environment(PYTHONPATH=str(_REPOSITORY)), directory, _DATA_SECONDS)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(file.read_text())
