"""A browser on the pages of one server. Records what is visible and what goes wrong."""

import json
import re
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Request, Response, Route, sync_playwright

CHROMIUM = "/usr/bin/chromium"
#: Command line options of Chromium. The sandbox is disabled because it does not work as root, for
#: example in continuous integration, and Chromium opens only local servers here. Some charts
#: require WebGL, which SwiftShader renders without a graphics card. SwiftShader renders only these
#: charts, not the whole screen: with the whole screen, the browser took 108 CPU seconds for the
#: sample of `make test`, instead of 74.
OPTIONS = ["--no-sandbox", "--disable-gpu", "--enable-unsafe-swiftshader"]
#: Timeout for a page to become idle.
_PATIENCE_SECONDS = 90
_BETWEEN_LOOKS_MS = 100
#: Number of consecutive polls without a change after which the page is considered idle.
_SAME_LOOKS = 8
#: Style sheet with which this project's server hides features that are not implemented. They are
#: also hidden on the other side.
_HIDDEN = Path(__file__).resolve().parents[2].joinpath("functions/ui/src/absent.css").read_text()
#: Style sheet that shortens animations. A dialog that is still fading in is not visible yet,
#: depending on how busy the machine is. The duration is not zero, because the UI waits for the end
#: of some animations.
_STILL = "*, ::before, ::after { animation-duration: 1ms !important; animation-delay: 0s !important; \
transition-duration: 1ms !important; transition-delay: 0s !important }"
_HIDE = f"""addEventListener("DOMContentLoaded", () => {{
    if (window !== window.top) return;
    const hidden = document.querySelector("link[href*='absent']") ? "" : {json.dumps(_HIDDEN)};
    document.head.append(Object.assign(document.createElement("style"), {{ textContent: hidden + {json.dumps(_STILL)} }}));
}})"""
_LOOKING = Path(__file__).with_name("looking.js").read_text()
#: Script that dismisses pop-ups for new users in advance, and the Assistant, which opens on the
#: first visit.
_SEEN_BEFORE = """if (window === window.top) for (const key of ["mlflow.assistant.fab.autoOpenedOnFirstLoad", "mlflow.detectIssues.guidanceShown",
    "mlflow.telemetry.info.alert.dismissed"]) localStorage.setItem(`${key}_v1`, "true")"""
Result = TypeVar("Result")


@dataclass
class Seen:
    """Result of a step: the lines of each look, and the problems."""

    looks: dict[str, list[str]] = field(default_factory=dict)
    #: Console errors, failed requests, and links to features that are not implemented, as "console:
    #: …", "request: GET … -> 404" and "link: …".
    problems: list[str] = field(default_factory=list)


class Visit:
    """A browser tab. `page` is for clicks, and `look` waits until the page is idle. With
    `newcomer`, pop-ups are not dismissed in advance, nothing is hidden except by the server, and
    the server's responses are not changed.
    """

    def __init__(
        self, browser: Browser, url: str, ids: dict[str, str], screenshots: Path, ui: Path | None = None, newcomer: bool = False
    ):
        context = browser.new_context(
            viewport={"width": 1440, "height": 1000}, locale="en-US", timezone_id="UTC", reduced_motion="reduce"
        )
        if not newcomer:
            context.add_init_script(_SEEN_BEFORE)
            context.add_init_script(_HIDE)
            # Disables the AI gateway on both sides, because it is not compared.
            context.route("**/server-info", _without_gateway)
        if ui is not None:
            context.route(re.compile(rf"^{re.escape(url)}/(static-files/[^?#]*)?([?#].*)?$"), lambda route: _from(ui, url, route))
        self.page: Page = context.new_page()
        self.page.set_default_timeout(_PATIENCE_SECONDS * 1000)
        self.ids = ids
        self._url = url
        self._last: list[str] = []
        self._screenshots = screenshots
        self._under_way: set[Request] = set()
        self._seen = Seen()
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self._seen.problems.append(f"console: {error}"))
        self.page.on("request", self._asked)
        self.page.on("requestfinished", lambda request: self._under_way.discard(request))
        self.page.on("requestfailed", self._failed)
        self.page.on("response", self._answered)

    def begin(self, name: str) -> None:
        """Clears the browser's storage, where the UI keeps filters and similar state, and dismisses
        the pop-ups.
        """
        self._name = name
        self._seen = Seen()
        if self.page.url.startswith(self._url):
            self.page.evaluate(f"localStorage.clear(); {_SEEN_BEFORE}")

    def end(self) -> Seen:
        """Returns what was seen since `begin`, without duplicate problems."""
        self._seen.problems = list(dict.fromkeys(self._seen.problems))
        return self._seen

    def give_up(self) -> None:
        """Takes a screenshot after a failed step, and leaves the page, so that the next step starts
        clean.
        """
        self.page.screenshot(path=self._picture("failed"))
        self.page.goto("about:blank")
        self._under_way.clear()

    def close(self) -> None:
        """Closes the tab, and deletes the browser's data."""
        self.page.context.close()

    def open(self, path: str) -> None:
        """Opens a page of the UI like a click on a link, which loads the page's program
        only once.
        """
        self.page.goto(f"{self._url}/#/{path}")

    def look(self, name: str, until: Locator | None = None) -> list[str]:
        """Waits for `until` if given, and until the page is idle. Records and returns the page's
        lines.
        """
        if until is not None:
            until.first.wait_for()
        lines = self._at_rest(name)
        self._seen.looks[name] = self._last = lines
        self.page.screenshot(path=self._picture(name))
        return lines

    def look_at_page(self, until: Locator | None = None) -> None:
        """Looks at a page that was opened by its address. Records a problem if the previous page is
        still shown.
        """
        before = self._last
        if self.look("page", until) == before:
            self._seen.problems.append("the page did not change")

    def by_component(self, name: str) -> Locator:
        """Finds a button or field by the UI's internal name, which is unambiguous, unlike texts
        such as "Create".
        """
        return self.page.locator(f'[data-component-id="{name}"]').locator("visible=true")

    def _at_rest(self, name: str) -> list[str]:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        last, same = None, 0
        while True:
            now = self.page.evaluate("document.body.textContent")
            same = same + 1 if now == last and not self._under_way else 0
            last = now
            # Reading the lines is much more expensive than detecting changes.
            if same >= _SAME_LOOKS:
                found = self.page.evaluate(_LOOKING)
                if not found["turning"]:
                    self._seen.problems += [f"link: {address}" for address in found["nowhere"]]
                    return found["lines"]
            if time.monotonic() > deadline:
                return self._never_at_rest(name)
            self.page.wait_for_timeout(_BETWEEN_LOOKS_MS)

    def _never_at_rest(self, name: str) -> list[str]:
        found = self.page.evaluate(_LOOKING)
        waiting = [f"{request.method} {self._short(request.url)}" for request in self._under_way]
        self.page.screenshot(path=self._picture(f"{name} (never at rest)"))
        self._seen.problems.append(f"never at rest: {name}: {found['turning']} spinners, waiting for {waiting}")
        self._under_way.clear()
        return found["lines"]

    def _picture(self, name: str) -> Path:
        return self._screenshots / f"{self._name} - {name}.png".replace("/", "_")

    def _short(self, url: str) -> str:
        return url.removeprefix(self._url).partition("?")[0]

    def _heard(self, message: ConsoleMessage) -> None:
        # Failed requests are recorded separately, with their path.
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            self._seen.problems.append(f"console: {message.text}")

    def _asked(self, request: Request) -> None:
        # Playwright does not report when the script of a worker has been loaded.
        if not request.url.endswith(".worker.js"):
            self._under_way.add(request)

    def _failed(self, request: Request) -> None:
        self._under_way.discard(request)
        # Leaving a page cancels its pending requests.
        if request.failure != "net::ERR_ABORTED":
            self._seen.problems.append(f"request: {request.method} {self._short(request.url)} -> {request.failure}")

    def _answered(self, response: Response) -> None:
        if response.status >= 400:
            request = response.request
            self._seen.problems.append(f"request: {request.method} {self._short(request.url)} -> {response.status}")


class Desk:
    """A browser in its own thread, so that two servers can be used concurrently. With `ui`, the
    browser gets the files of the pages from that build, and only the data from the server.
    """

    def __init__(self, url: str, ids: dict[str, str], screenshots: Path, ui: Path | None = None):
        screenshots.mkdir(parents=True, exist_ok=True)
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._thread.submit(self._start, url, ids, screenshots, ui).result()

    def do(self, name: str, step: Callable[[Visit], None]) -> Future[Seen]:
        return self._thread.submit(self._do, name, step)

    def close(self) -> None:
        self._thread.submit(self._stop).result()
        self._thread.shutdown()

    def _start(self, url: str, ids: dict[str, str], screenshots: Path, ui: Path | None) -> None:
        self._playwright = sync_playwright().start()
        self._browser = self._playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        self._visit = Visit(self._browser, url, ids, screenshots, ui)

    def _stop(self) -> None:
        self._browser.close()
        self._playwright.stop()

    def _do(self, name: str, step: Callable[[Visit], None]) -> Seen:
        self._visit.begin(name)
        try:
            step(self._visit)
        except BaseException:
            self._visit.give_up()
            raise
        return self._visit.end()


def _without_gateway(route: Route) -> None:
    flags = route.fetch().json()
    route.fulfill(json=flags | {"features_enabled": {"gateway": False}})


def _from(ui: Path, url: str, route: Route) -> None:
    path = re.split("[?#]", route.request.url.removeprefix(f"{url}/"))[0]
    route.fulfill(path=ui / (path.removeprefix("static-files/") or "index.html"))
