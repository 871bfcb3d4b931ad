"""Previews of HTML artifacts: the scripts of a report run, but cannot access the page or the API.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests
from playwright.sync_api import Browser, BrowserContext, Frame, Page, Route, expect

from tests.browser.conftest import OUTPUT
from tests.browser.stack import PASSWORD, functions, process, sign_in
from tests.support.http_server import Answer, Received, serving
from tests.support.s3 import LocalS3

pytestmark = pytest.mark.xdist_group("html artifacts in the browser")

_REPORTS = Path(__file__).with_name("reports")
_SECONDS = 120
_API = "api/2.0/mlflow"
_FRAME = "iframe.mlflow-html-iframe"
#: Makes the report as long as one that contains all of Plotly.
_PADDING = "x" * 4_800_000
#: The output of `figure.write_html(path, include_plotlyjs="cdn")`, which `mlflow.log_figure` uses.
_CDN = "https://cdn.plot.ly/plotly-3.0.0.min.js"
_FROM_CDN = f"""<html><head><meta charset="utf-8"></head><body><div>
<script type="text/javascript">window.PlotlyConfig = {{MathJaxConfig: 'local'}};</script>
<script charset="utf-8" src="{_CDN}" crossorigin="anonymous"></script>
<div id="figure" class="plotly-graph-div"></div>
<script type="text/javascript">window.drawn = Plotly.newPlot("figure", [7]); const loaded = [];</script>
<script>
  for (const address of ["https://evil.example/a.js", "https://cdn.plot.ly.evil.example/a.js", "http://cdn.plot.ly/a.js"]) {{
    const script = document.createElement("script");
    script.onerror = () => loaded.push("refused");
    script.onload = () => loaded.push(address);
    script.src = address;
    document.body.append(script);
  }}
</script></div></body></html>"""


@dataclass
class Site:
    """A server with a run, and a browser that is signed in to it if the server has users."""

    url: str
    has_users: bool
    context: BrowserContext
    run: str = ""
    _experiment: str = ""
    #: The URLs that were loaded, without those that a policy blocked.
    loaded: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._experiment = self._ask("POST", f"{_API}/experiments/create", json={"name": "reports"})["experiment_id"]
        run = self._ask("POST", f"{_API}/runs/create", json={"experiment_id": self._experiment})["run"]
        self.run = run["info"]["run_id"]
        page = self.context.new_page()
        if self.has_users:
            page.goto(self.url)
            sign_in(page, "admin", PASSWORD)
            page.wait_for_url(f"{self.url}/**")
            expect(page.get_by_role("heading", name="Sign in")).to_be_hidden()
        page.close()

    def _ask(self, method: str, path: str, **content: Any) -> dict:
        auth = ("admin", PASSWORD) if self.has_users else None
        answer = requests.request(method, f"{self.url}/{path}", auth=auth, timeout=_SECONDS, **content)
        assert answer.status_code == 200, answer.text
        return answer.json() if answer.content else {}

    def log(self, name: str, content: str) -> None:
        query = {"run_uuid": self.run, "path": name}
        self._ask("POST", f"ajax-{_API}/upload-artifact", params=query, data=content.encode(), headers={"content-type": "text/html"})

    def experiments(self) -> set[str]:
        found = self._ask("POST", f"{_API}/experiments/search", json={"max_results": 100})["experiments"]
        return {experiment["name"] for experiment in found}

    def open(self, name: str) -> tuple[Page, Frame]:
        """Opens the page of an artifact. Returns the page, and the frame with the artifact."""
        page = self.context.new_page()
        page.set_default_timeout(_SECONDS * 1000)
        page.on("response", lambda response: self.loaded.append(response.url))
        page.goto(f"{self.url}/#/experiments/{self._experiment}/runs/{self.run}/artifacts/{name}")
        shown = page.locator(_FRAME)
        shown.wait_for()
        frame = shown.element_handle().content_frame()
        return page, frame


@contextmanager
def _site(url: str, has_users: bool, browser: Browser) -> Iterator[Site]:
    context = browser.new_context(viewport={"width": 1440, "height": 1000}, locale="en-US")
    try:
        yield Site(url, has_users, context)
    finally:
        context.close()


@pytest.fixture(params=["process", "process with users", pytest.param("functions", marks=pytest.mark.slow)])
def site(request: pytest.FixtureRequest, tmp_path: Path, browser: Browser, s3: LocalS3) -> Iterator[Site]:
    """Yields a site: one process without users, one process with users, or the functions with users
    and a bucket.
    """
    has_users = request.param != "process"
    if request.param == "functions":
        server = functions(tmp_path, s3)
    else:
        server = process(tmp_path, *(("--auth", "basic") if has_users else ()))
    with server as url, _site(url, has_users, browser) as site:
        yield site


@contextmanager
def _elsewhere() -> Iterator[tuple[str, list[str]]]:
    """Starts another server. Yields its URL, and the requests that it has received."""
    received: list[str] = []

    def answer(request: Received) -> Answer:
        received.append(f"{request.method} {request.target}")
        return 200, [("access-control-allow-origin", "*"), ("content-length", "0")], b""

    with serving(answer) as url:
        yield url, received


def _picture(page: Page, name: str) -> None:
    (OUTPUT / "reports").mkdir(parents=True, exist_ok=True)
    page.screenshot(path=OUTPUT / "reports" / f"{name}.png")


def test_the_scripts_of_a_report_run(site: Site) -> None:
    site.log("report.html", (_REPORTS / "report.html").read_text().replace("PADDING", _PADDING))
    page, frame = site.open("report.html")
    frame.wait_for_function("window.done?.worker && done.data && seen?.includes('load')")
    assert page.locator(_FRAME).get_attribute("sandbox") == "allow-scripts"
    assert frame.evaluate("[self.origin, violations]") == ["null", []]
    assert frame.evaluate("seen") == ["loading", "DOMContentLoaded", "load"]
    assert frame.evaluate("done") == {
        "doctype": "CSS1Compat",
        "evaluated": 2,
        "compiled": 42,
        "worker": "from a worker",
        "data": 7,
        "pixel": [0, 0, 255, 255],
    }
    assert frame.locator("h1").inner_text() == "ÜBERSICHT"
    assert frame.locator("#chart rect").count() == 3 and frame.locator("#chart").bounding_box()["height"] > 50
    assert frame.locator("#picture").evaluate("image => image.decode().then(() => image.naturalWidth)") == 1
    frame.locator("#button").click()
    expect(frame.locator("#button")).to_have_text("clicked")
    frame.locator("#link").click()
    assert frame.evaluate("location.hash") == "#end"
    _picture(page, "report")


def test_the_policy_of_the_page_runs_no_script_of_a_report(site: Site) -> None:
    """Checks that the frame's policy is what allows scripts. A frame at a blob: URL, which MLflow's
    page creates, inherits the policy of the page.
    """
    site.context.route("**/static-files/preview.js", lambda route: route.abort())
    site.log("blank.html", "<p>text</p><script>window.done = true</script>")
    _, frame = site.open("blank.html")
    expect(frame.locator("p")).to_have_text("text")
    assert frame.url.startswith("blob:") and frame.evaluate("window.done === undefined")


def test_a_report_reaches_neither_the_page_nor_the_api(site: Site) -> None:
    with _elsewhere() as (elsewhere, received):
        attack = (_REPORTS / "attack.html").read_text().replace("SERVER", site.url).replace("ELSEWHERE", elsewhere)
        site.log("attack.html", attack)
        page, frame = site.open("attack.html")
        frame.wait_for_function("window.outcome && !Object.values(outcome).includes('pending')")
        outcome = frame.evaluate("outcome")
        assert outcome.pop("origin") == "null"
        # The page cannot observe the outcome of these attempts. Whether any request has arrived is
        # checked below.
        silent = {name for name, got in outcome.items() if got in ("nothing is said", "undefined")}
        assert silent == {
            "beacon to server", "beacon to elsewhere", "form", "link at the top", "link to a new tab",
            "top's address", "parent's script",
        } & silent  # fmt: skip
        assert {name: got for name, got in outcome.items() if got != "refused" and name not in silent} == {}
        assert len(outcome) > 50
        assert page.url.startswith(f"{site.url}/#/experiments/") and page.title() != "attacked"
        assert len(site.context.pages) == 1
        assert received == [] and site.experiments() == {"Default", "reports"}


def test_where_a_report_navigates_its_frame_to(site: Site) -> None:
    # The page's own policy restricts navigation of the frame, and reports violations.
    site.context.add_init_script("""
        window.refusals = [];
        document.addEventListener("securitypolicyviolation", (event) => refusals.push(`${event.violatedDirective} ${event.blockedURI}`));
    """)
    with _elsewhere() as (elsewhere, received):
        away = f'<script>location = "{elsewhere}/page?with=data"</script>'
        refreshed = f'<meta http-equiv="refresh" content="0; url={elsewhere}/page">'
        linked = f'<a href="{elsewhere}/page">out</a><script>document.links[0].click()</script>'
        for number, content in enumerate([away, refreshed, linked]):
            site.log(f"away{number}.html", content)
            page, _ = site.open(f"away{number}.html")
            page.wait_for_function("refusals.length > 0")
            assert [refusal.startswith(f"frame-src {elsewhere}") for refusal in page.evaluate("refusals")] == [True], content
            assert page.url.startswith(site.url)
            page.close()
        assert received == []

    # A document at a data: URL inherits the policy.
    reach = f'fetch("{site.url}/version").then(() => "sent", () => "refused").then((got) => {{ window.got = got; }})'
    site.log("data.html", f"<script>location = 'data:text/html,' + encodeURIComponent('<script>{reach}<' + '/script>')</script>")
    page, _ = site.open("data.html")
    frame = page.locator(_FRAME).element_handle().content_frame()
    frame.wait_for_url("data:**")
    frame.wait_for_function("window.got")
    assert frame.evaluate("[got, self.origin]") == ["refused", "null"]

    # The API treats such a navigation as a cross-site request without cookies.
    path = f"ajax-{_API}/users/current"
    site.log("api.html", f"<script>location = '{site.url}/{path}?by=report'</script>")
    with site.context.expect_event("response", lambda response: response.url.endswith("by=report")) as answered:
        site.open("api.html")
    assert answered.value.status in (401, 403), answered.value.text()
    assert "cookie" not in answered.value.request.all_headers()


def test_a_report_loads_scripts_from_cdns_and_from_nowhere_else(site: Site) -> None:
    library = "var Plotly = { newPlot(id, [value]) { document.getElementById(id).textContent = `drawn ${value}`; return 'yes'; } };"
    headers = {"access-control-allow-origin": "*", "content-type": "text/javascript"}
    site.context.route(_CDN, lambda route: route.fulfill(body=library, headers=headers))
    site.log("figure.html", _FROM_CDN)
    _, frame = site.open("figure.html")
    frame.wait_for_function("window.drawn && loaded.length === 3")
    assert frame.evaluate("[drawn, document.getElementById('figure').textContent, loaded]") == ["yes", "drawn 7", ["refused"] * 3]
    assert [url for url in site.loaded if "cdn" in url or "evil" in url] == [_CDN]


def test_a_report_that_does_not_change_is_kept_and_the_next_one_is_shown(site: Site) -> None:
    script = "<script>document.querySelector('h1').id = 'ran'</script>"
    for name in ("first", "second"):
        site.log(f"{name}.html", f"<h1>{name}</h1>{script}")
    page, frame = site.open("first.html")
    expect(frame.locator("#ran")).to_have_text("first")
    frame.evaluate("window.kept = true")
    # Simulates what the page does when it is rendered again: a new URL with the same content.
    again = """async (html) => {
        const source = URL.createObjectURL(new Blob([html], { type: "text/html" }));
        document.querySelector("iframe").setAttribute("src", source);
        await (await (await fetch(source)).blob()).text();
    }"""
    page.evaluate(again, f"<h1>first</h1>{script}")
    assert frame.evaluate("kept")
    page.evaluate(again, f"<h1>changed</h1>{script}")
    expect(page.frame_locator(_FRAME).locator("#ran")).to_have_text("changed")
    page.get_by_test_id("artifact-tree-node").filter(has_text="second.html").click()
    expect(page.frame_locator(_FRAME).locator("#ran")).to_have_text("second")


def test_a_report_does_not_get_the_next_one(site: Site) -> None:
    """Checks that a report cannot read the next one. The first report runs until the next document
    has loaded, and requests its content in the meantime.
    """
    spy = """<script>
        addEventListener("message", (event) => parent.postMessage({ leaked: event.data }, "*"));
        setInterval(() => ["", location.search].forEach((query) => parent.postMessage("preview-ready" + query, "*")), 1);
    </script><h1>spy</h1>"""
    site.log("spy.html", spy)
    page, frame = site.open("spy.html")
    expect(frame.locator("h1")).to_have_text("spy")
    held: list[Route] = []
    site.context.route("**/static-files/preview.html*", lambda route: held.append(route))
    page.evaluate("""() => {
        window.leaked = [];
        window.requested = 0;
        addEventListener("message", (event) => event.data.leaked ? leaked.push(event.data.leaked) : requested++);
        const source = URL.createObjectURL(new Blob(["<h1>secret</h1>"], { type: "text/html" }));
        document.querySelector("iframe").setAttribute("src", source);
    }""")
    page.wait_for_function("leaked.length > 0 || requested > 500")
    while not held:
        page.wait_for_timeout(10)
    before = page.evaluate("requested")
    page.wait_for_function(f"requested > {before + 100}")
    assert not [text for text in page.evaluate("leaked") if "secret" in text]
    held[0].continue_()
    expect(page.frame_locator(_FRAME).locator("h1")).to_have_text("secret")
    assert not [text for text in page.evaluate("leaked") if "secret" in text]


def test_another_site_cannot_show_anything_in_the_preview(site: Site) -> None:
    """Checks that another site cannot show content in the preview, neither in a frame nor in a
    tab that it opens."""
    preview = f"{site.url}/static-files/preview.html"
    content = f"""<iframe src="{preview}"></iframe><button onclick="window.opened = window.open('{preview}')">open</button>""".encode()

    def answer(_: Received) -> Answer:
        return 200, [("content-type", "text/html"), ("content-length", str(len(content)))], content

    html = "<script>document.title = 'shown'</script>"
    with serving(answer, "localhost") as elsewhere:
        page = site.context.new_page()
        page.goto(elsewhere)
        framed = page.locator("iframe").element_handle().content_frame()
        page.evaluate("(html) => frames[0].postMessage(html, '*')", html)
        assert "preview-ready" not in framed.content() and framed.title() != "shown"
        with site.context.expect_page() as opened:
            page.get_by_role("button").click()
        opened.value.wait_for_load_state()
        page.evaluate("(html) => opened.postMessage(html, '*')", html)
        # The single process refuses the request. With the functions, the document is detached from
        # the tab that opened it, so that it receives no messages.
        assert "preview-ready" not in opened.value.content() or page.evaluate("opened.closed")
        assert opened.value.title() != "shown"
    # The preview is also empty if its address is opened directly.
    page = site.context.new_page()
    page.goto(preview)
    assert page.evaluate("[self.origin, document.title, document.body.innerText]") == ["null", "Preview", ""]
