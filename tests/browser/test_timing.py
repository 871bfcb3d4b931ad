"""Measures how long a user waits for pages with much data: a list of 10,000 runs, and charts of a
million points.

The printed durations require a release build (`make test-slow` makes one) and an idle machine. The
assertions compare measurements that alternate, so that other programs slow down both equally.
"""

import http.client
import re
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Request

import bench.data as data
from bench.indexed import wait_until_indexed
from tests.browser import ui
from tests.support.http import Side
from tests.support.servers import ARTIFACT_ROOT, ServerlessMlflow, StockMlflow, stock_database

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

_RUNS = 10_000
_CURVES, _POINTS, _BATCH = 10, 100_000, 1_000
#: Number of times that a page is opened. The median counts.
_OPENINGS = 5
#: Requests must be this many times as fast as those of stock MLflow. For a user, most of the time
#: is spent in the browser, and must not exceed that of stock MLflow by more than this factor.
_TIMES_AS_FAST = 10
_MUCH_LONGER = 1.5
#: Number of points in a short curve.
_FEW_POINTS = 1_000
_PATIENCE_MS = 120_000
#: Number of consecutive polls without pending requests after which the page is considered idle.
_QUIET_LOOKS = 5


@dataclass
class Opening:
    """Seconds until each part of the page was visible, and the total duration of all requests to
    the API.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    requests: float = 0.0
    #: Method, path and body of these requests.
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Path]]:
    directory = tmp_path_factory.mktemp("ours")
    server = ServerlessMlflow(directory, options=("--ui", str(ui.directory())), artifact_root="mlflow-artifacts:/")
    yield Side("ours", server.url), directory / "data"
    server.stop()


def test_list_of_10_000_runs(browser, ours, tmp_path):
    """The list and its filter must appear as fast as with stock MLflow, and their requests must be
    ten times as fast.
    """
    side, directory = ours
    made = list(data.runs(_RUNS, seed=1))
    _load_into_stock(stock_database(tmp_path), made)
    stock = StockMlflow(tmp_path)
    try:
        data.load_by_http(side, made)
        wait_until_indexed(directory)
        sides = [side, Side("stock", stock.url)]
        pages = {side.name: _page(browser, side.url) for side in sides}
        openings: dict[str, list[Opening]] = {side.name: [] for side in sides}
        # Alternates, so that both sides are affected equally by other programs. The first opening
        # of each side loads the page's program.
        for _ in range(1 + _OPENINGS):
            for side in sides:
                openings[side.name].append(_open_list(pages[side.name], side))
        again = _ask_again(sides, {name: found[-1].asked for name, found in openings.items()})
    finally:
        stock.stop()
    requests = {name: statistics.median(opening.requests for opening in found[1:]) for name, found in openings.items()}
    times = again["stock"] / again["ours"]
    for name, found in openings.items():
        first = {what: round(seconds, 2) for what, seconds in found[0].seconds.items()}
        print(f"{name}: listed {_median(found, 'listed'):.2f} s, filtered {_median(found, 'filtered'):.2f} s, the first time {first};", end=" ")
        print(f"its requests together {1000 * requests[name]:.0f} ms, {1000 * again[name]:.0f} ms without the browser")
    print(f"{requests['stock'] / requests['ours']:.1f} times as fast, {times:.1f} times without the browser")
    for what in ("listed", "filtered"):
        assert _median(openings["ours"], what) < _MUCH_LONGER * _median(openings["stock"], what), what
    assert times > _TIMES_AS_FAST


def test_charts_of_a_million_points(browser, ours):
    """The curves of 10 runs with 100,000 points each must be drawn about as fast as those with a
    thousand.
    """
    side, _ = ours
    experiments = {}
    for points in (_FEW_POINTS, _POINTS):
        experiments[points] = data.post(side, "experiments/create", {"name": f"curves of {points}"})["experiment_id"]
        with ThreadPoolExecutor(_CURVES) as threads:
            for _ in threads.map(lambda number: _log_curve(side, experiments[points], number, points), range(_CURVES)):
                pass
    page = _page(browser, side.url)
    openings: dict[int, list[Opening]] = {points: [] for points in experiments}
    # Alternates as above.
    for _ in range(1 + _OPENINGS):
        for points, experiment in experiments.items():
            openings[points].append(_open_charts(page, side, experiment))
    for points, found in openings.items():
        print(f"{points} points: drawn in {_median(found, 'drawn'):.2f} s, the first time in {found[0].seconds['drawn']:.2f} s;", end=" ")
        print(f"its requests together {1000 * statistics.median(opening.requests for opening in found[1:]):.0f} ms")
    assert _median(openings[_POINTS], "drawn") < 2 * _median(openings[_FEW_POINTS], "drawn")


def _load_into_stock(database: Path, made: list[data.RunData]) -> None:
    """Inserts the runs directly into the tables, because MLflow's store takes minutes for this many
    runs.
    """
    from mlflow.store.tracking.dbmodels.models import SqlLatestMetric, SqlMetric, SqlParam, SqlRun, SqlTag
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    store = SqlAlchemyStore(f"sqlite:///{database}", ARTIFACT_ROOT)
    experiment = int(store.create_experiment(data.EXPERIMENT))
    rows: dict[type, list[dict]] = {table: [] for table in (SqlRun, SqlMetric, SqlLatestMetric, SqlParam, SqlTag)}
    for number, run in enumerate(made):
        run_id = {"run_uuid": f"{number:032x}"}
        times = {"start_time": run.start_time, "end_time": run.end_time, "status": run.status}
        about = {"experiment_id": experiment, "user_id": "bench", "lifecycle_stage": "active", "source_type": "UNKNOWN"}
        rows[SqlRun].append(run_id | times | about | {"name": run.name, "artifact_uri": f"{ARTIFACT_ROOT}/{number}"})
        for key, value in run.metrics.items():
            point = run_id | {"key": key, "value": value, "timestamp": run.end_time, "step": 0, "is_nan": False}
            rows[SqlMetric].append(point)
            rows[SqlLatestMetric].append(point)
        rows[SqlParam] += [run_id | {"key": key, "value": value} for key, value in run.params.items()]
        tags = run.tags | {"mlflow.runName": run.name}
        rows[SqlTag] += [run_id | {"key": key, "value": value} for key, value in tags.items()]
    with store.ManagedSessionMaker() as session:
        for table, found in rows.items():
            session.bulk_insert_mappings(table, found)


def _page(browser: Browser, url: str) -> Page:
    page = browser.new_context(viewport={"width": 1440, "height": 1000}).new_page()
    page.set_default_timeout(_PATIENCE_MS)
    return page


def _open_list(page: Page, side: Side) -> Opening:
    rows = page.locator(".ag-row").get_by_role("link")
    newest, one = re.compile(f"-{_RUNS - 1}$"), re.compile("-77$")
    experiment = data.experiment_id(side)

    def use(opening: Opening, spent: Callable[[], float]) -> None:
        page.goto(f"{side.url}/#/experiments/{experiment}/runs")
        rows.filter(has_text=newest).wait_for()
        opening.seconds["listed"] = spent()
        page.get_by_test_id("search-box").fill("params.seed = '77'")
        page.keyboard.press("Enter")
        rows.filter(has_text=one).wait_for()
        opening.seconds["filtered"] = spent() - opening.seconds["listed"]

    return _measured(page, side, use)


def _open_charts(page: Page, side: Side, experiment: str) -> Opening:
    def use(opening: Opening, spent: Callable[[], float]) -> None:
        page.goto(f"{side.url}/#/experiments/{experiment}/runs?compareRunsMode=CHART")
        page.locator(".js-plotly-plot path.js-line").nth(_CURVES - 1).wait_for(state="attached")
        opening.seconds["drawn"] = spent()

    return _measured(page, side, use)


def _measured(page: Page, side: Side, use: Callable[[Opening, Callable[[], float]], None]) -> Opening:
    """Opens the page from the settings page with an empty local storage, and performs
    `use` on it.
    """
    page.goto(f"{side.url}/#/settings")
    page.locator('[data-component-id="mlflow.settings.theme.toggle-switch"]').first.wait_for()
    page.evaluate("localStorage.clear()")
    opening, asked, start = Opening(), [], time.monotonic()

    def asks(request: Request) -> None:
        if "/ajax-api/" in request.url or request.url.endswith("/graphql"):
            asked.append(request)

    page.on("request", asks)
    use(opening, lambda: time.monotonic() - start)
    # Includes requests that a user does not wait for.
    deadline, quiet = time.monotonic() + _PATIENCE_MS / 1000, 0
    while quiet < _QUIET_LOOKS:
        assert time.monotonic() < deadline, f"{side.name} does not respond"
        page.wait_for_timeout(100)
        quiet = quiet + 1 if all(_took(request) > 0 for request in asked) else 0
    page.remove_listener("request", asks)
    opening.requests = sum(map(_took, asked))
    opening.asked = [(request.method, request.url.removeprefix(side.url), request.post_data) for request in asked]
    return opening


def _ask_again(sides: list[Side], asked: dict[str, list[tuple[str, str, str | None]]]) -> dict[str, float]:
    """Returns the seconds that the requests take when they are repeated one after another, while
    no browser competes with the servers for the CPU."""
    spent: dict[str, list[float]] = {side.name: [] for side in sides}
    connections = {side.name: http.client.HTTPConnection(side.url.removeprefix("http://"), timeout=60) for side in sides}
    for _ in range(_OPENINGS):
        for name, connection in connections.items():
            start = time.monotonic()
            for method, path, body in asked[name]:
                connection.request(method, path, body, {"Content-Type": "application/json"})
                answer = connection.getresponse()
                answer.read()
                assert answer.status < 500, f"{name}: {path} -> {answer.status}"
            spent[name].append(time.monotonic() - start)
    return {name: statistics.median(found) for name, found in spent.items()}


def _took(request: Request) -> float:
    """Returns the duration of a request in seconds, or a negative number if there is no response
    yet.
    """
    return (request.timing["responseEnd"] - request.timing["requestStart"]) / 1000 if request.timing["responseEnd"] > 0 else -1


def _median(openings: list[Opening], what: str) -> float:
    """Returns the median without the first opening, which loads the page's program."""
    return statistics.median(opening.seconds[what] for opening in openings[1:])


def _log_curve(side: Side, experiment: str, number: int, count: int) -> None:
    run = data.post(side, "runs/create", {"experiment_id": experiment, "run_name": f"curve {number}", "start_time": 1_750_000_000_000 + number})
    run_id = run["run"]["info"]["run_id"]
    for first in range(0, count, _BATCH):
        points = [
            {"key": "loss", "value": (number + 1) / (step + 1), "timestamp": 1_750_000_000_000 + step, "step": step}
            for step in range(first, first + _BATCH)
        ]
        data.post(side, "runs/log-batch", {"run_id": run_id, "metrics": points})
    data.post(side, "runs/update", {"run_id": run_id, "status": "FINISHED", "end_time": 1_750_000_000_000 + count})
