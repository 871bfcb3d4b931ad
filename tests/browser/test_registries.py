"""Compares the pages of review queues, issues, MCP servers and skills on MLflow 3.18.0 and on the
server under test, both with the user interface of 3.18.0.

Each page has a flow, in which a user does what the page is for, and sweeps, in which every button
is pressed. The log of a sweep is in `target/browser-sweeps`.
"""

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.browser.conftest import OUTPUT, require_chromium
from tests.browser.registry_data import FILL, Moment
from tests.browser.registry_flows import FLOWS, SWEEPS
from tests.browser.sweep import RECORD_CLIPBOARD, Press, Sweep, differences
from tests.browser.texts import Allowed
from tests.browser.texts import differences as differences_of_texts
from tests.browser.visit import Desk, Seen, Visit
from tests.support.http import Side
from tests.support.next_release import form_reader, next_release
from tests.support.servers import NextStockMlflow, ServerlessMlflow
from tests.support.ui_build import next_build

_LOGS = Path(__file__).resolve().parents[2] / "target/browser-sweeps"
_ALLOWED = Allowed(Path(__file__).with_name("allowed_registries.yaml"), "3.18.0")
#: The flow of `make test`. Most of its time is the start of MLflow 3.18.0.
_SAMPLE = "new skill"
_FLOW_SECONDS, _SWEEP_SECONDS = 300, 1800

pytestmark = pytest.mark.xdist_group("browser")


class Site:
    """A server and a browser on it."""

    def __init__(self, name: str, server: NextStockMlflow | ServerlessMlflow):
        self.server = server
        self.name = name
        self._ids: dict[str, str] = {}
        self._side = Side(name, server.url)
        self.desk = Desk(server.url, self._ids, OUTPUT / f"{name} 3.18.0")

    def fill(self, page: str, moment: Moment) -> None:
        """Creates the data of a page."""
        self._ids.clear()
        self._ids.update(FILL[page](self._side, moment))

    def close(self) -> None:
        self.desk.close()

    def sweep(self, page: str, name: str, moments: Iterator[Moment]) -> list[Press]:
        """Presses all buttons of a page."""
        address, until = SWEEPS[page][name]
        found: list[Press] = []

        def step(visit: Visit) -> None:
            # While requests are intercepted, Chromium has no cache.
            visit.page.context.unroute_all()
            visit.page.context.add_init_script(RECORD_CLIPBOARD)
            log = _LOGS / f"{name}.{self.name}.jsonl"
            sweep = Sweep(visit.page, self.server.url, lambda: address(self._ids), lambda: self.fill(page, next(moments)), log, until)
            found.extend(sweep.run())

        self.fill(page, next(moments))
        self.desk.do(f"sweep of {name}", step).result(_SWEEP_SECONDS)
        return found


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Site]]:
    """Yields MLflow 3.18.0 and the server under test, each with a browser."""
    require_chromium()
    starts: dict[str, Callable[[Path], NextStockMlflow | ServerlessMlflow]] = {"reference": _stock, "subject": _ours}
    servers: dict[str, NextStockMlflow | ServerlessMlflow] = {}
    opened: dict[str, Site] = {}
    try:
        with ThreadPoolExecutor() as threads:
            begun = {side: threads.submit(start, tmp_path_factory.mktemp(side)) for side, start in starts.items()}
            servers = {side: server.result() for side, server in begun.items()}
        opened = {side: Site(side, server) for side, server in servers.items()}
        yield opened
    finally:
        for site in opened.values():
            site.close()
        for server in servers.values():
            server.stop()


def _stock(directory: Path) -> NextStockMlflow:
    paths = os.pathsep.join(map(str, (next_release(), form_reader())))
    return NextStockMlflow(directory / "server", next_release(), environment={"PYTHONPATH": paths})


def _ours(directory: Path) -> ServerlessMlflow:
    return ServerlessMlflow(directory / "server", options=("--ui", str(next_build())))


@pytest.fixture
def minute() -> int:
    """Returns the minute in which traces begin, on both sides."""
    return int(time.time() // 60) - 1


#: Numbers of the creations of data, different in each test.
_numbers = iter(range(0, 10**6, 1000))


def _moments(minute: int, first: int) -> Iterator[Moment]:
    return (Moment(minute, number) for number in range(first, first + 1000))


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name == _SAMPLE else pytest.mark.slow) for name in FLOWS])
def test_pages_are_the_same_at_each_step(name: str, sites: dict[str, Site], minute: int) -> None:
    page, flow = FLOWS[name]
    moment = Moment(minute, next(_numbers))
    for site in sites.values():
        site.fill(page, moment)
    begun = {side: site.desk.do(name, flow) for side, site in sites.items()}
    seen: dict[str, Seen] = {side: future.result(_FLOW_SECONDS) for side, future in begun.items()}
    problems = [f"{side}: {problem}" for side, found in seen.items() for problem in found.problems if not _ALLOWED.problem(name, side, problem)]
    reference, subject = seen["reference"].looks, seen["subject"].looks
    assert list(reference) == list(subject)
    found = {look: differences_of_texts(reference[look], subject[look], _ALLOWED.any_order(f"{name}: {look}")) for look in reference}
    found = {look: [line for line in lines if not _ALLOWED.line(name, line)] for look, lines in found.items()}
    assert {look: lines for look, lines in found.items() if lines} == {}
    assert problems == []


@pytest.mark.slow
@pytest.mark.parametrize(("page", "name"), [(page, name) for page in SWEEPS for name in SWEEPS[page]])
def test_every_button_does_the_same(page: str, name: str, sites: dict[str, Site], minute: int) -> None:
    first = next(_numbers)
    with ThreadPoolExecutor() as threads:
        begun = {side: threads.submit(site.sweep, page, name, _moments(minute, first)) for side, site in sites.items()}
        presses = {side: future.result() for side, future in begun.items()}
    print(f"{name}: {len(presses['subject'])} buttons pressed; nothing happened: {[press.name for press in presses['subject'] if press.dead]}")
    step = f"sweep of {name}"
    assert [line for line in differences(presses["reference"], presses["subject"]) if not _ALLOWED.line(step, line)] == []
    dead = [press.name for press in presses["subject"] if press.dead]
    assert [button for button in dead if not _ALLOWED.problem(step, "subject", f"dead: {button}")] == []
