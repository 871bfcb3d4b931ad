"""Tests MLflow's pages on a server with workspaces: selecting a workspace, seeing only its entities
and artifacts, creating and changing a workspace.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import requests
from playwright.sync_api import Browser, Locator, Request, expect

from tests.browser import ui
from tests.browser.conftest import OUTPUT, unexpected
from tests.browser.visit import Visit
from tests.support.servers import ServerlessMlflow

pytestmark = pytest.mark.xdist_group("workspaces in the browser")

_V2, _V3 = "api/2.0/mlflow", "api/3.0/mlflow"
_HEADER = "x-mlflow-workspace"
_TEAMS = ("team-a", "team-b")
#: Kinds of entities in each workspace, each of which has a page.
_KINDS = ("experiment", "model", "run")
_PICTURE = Path(__file__).resolve().parents[2] / "docs/images/ui.png"
#: Selector of the download button above a file, which has no name. The omitted number is a line
#: number in the page's source code.
_DOWNLOAD = 'button[data-component-id^="codegen_mlflow_app_src_experiment-tracking_components_artifactview.tsx_"]'
#: Requests that are independent of the workspace. The pages send no workspace, or an empty one,
#: with them.
_OF_ALL = ("server-info", "workspaces", "users/current", "assistant/", "ui-telemetry")


@dataclass
class Site:
    """A server with the same entities in each workspace, except for their names."""

    url: str
    ids: dict[str, str] = field(default_factory=dict)

    def ask(self, workspace: str, method: str, path: str, content: dict | bytes | None = None) -> dict:
        sent = {"data": content} if isinstance(content, bytes) else {"json": content}
        answer = requests.request(method, f"{self.url}/{path}", headers={_HEADER: workspace}, timeout=120, **sent)
        assert answer.status_code < 300, f"{path}: {answer.text}"
        return answer.json() if answer.content else {}

    def furnish(self, team: str) -> None:
        """Creates an experiment with a run, which has a text and a picture, and a
        registered model.
        """
        experiment = self.ask(team, "POST", f"{_V2}/experiments/create", {"name": f"experiment of {team}"})["experiment_id"]
        run = self.ask(team, "POST", f"{_V2}/runs/create", {"experiment_id": experiment, "run_name": f"run of {team}"})["run"]["info"]
        place = run["artifact_uri"].removeprefix("mlflow-artifacts:/")
        for name, content in (("notes.txt", f"Notes of {team}".encode()), ("picture.png", _PICTURE.read_bytes())):
            self.ask(team, "PUT", f"api/2.0/mlflow-artifacts/artifacts/{place}/{name}", content)
        self.ask(team, "POST", f"{_V2}/registered-models/create", {"name": f"model of {team}"})
        self.ids |= {f"experiment of {team}": experiment, f"run of {team}": run["run_id"]}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    options = ("--workspaces", "--ui", str(ui.directory()))
    server = ServerlessMlflow(tmp_path / "server", options=options, artifact_root="mlflow-artifacts:/")
    try:
        site = Site(server.url)
        for team in _TEAMS:
            site.ask("", "POST", f"{_V3}/workspaces", {"name": team, "description": f"all of {team}"})
        for team in ("default", *_TEAMS):
            site.furnish(team)
        yield site
    finally:
        server.stop()


@dataclass
class Pages:
    """A browser on the server, and the workspaces in its requests."""

    visit: Visit
    site: Site
    #: Path and workspace of each request for data.
    named: list[tuple[str, str | None]] = field(default_factory=list)

    def note(self, request: Request) -> None:
        path = request.url.removeprefix(f"{self.site.url}/")
        if path.startswith(("ajax-api/", "graphql", "get-artifact", "model-versions/")) and not any(part in path for part in _OF_ALL):
            self.named.append((path, request.headers.get(_HEADER)))

    def selector(self) -> Locator:
        return self.visit.page.get_by_role("combobox", name="Workspace").or_(self.visit.page.get_by_label("Workspace", exact=False)).first

    def artifact(self, name: str) -> Locator:
        return self.visit.page.get_by_test_id("artifact-tree-node").filter(has_text=name)


@pytest.fixture
def pages(browser: Browser, site: Site, request: pytest.FixtureRequest) -> Iterator[Pages]:
    screenshots = OUTPUT / "workspaces"
    screenshots.mkdir(parents=True, exist_ok=True)
    visit = Visit(browser, site.url, site.ids, screenshots)
    visit.begin(request.node.name)
    pages = Pages(visit, site)
    visit.page.on("request", pages.note)
    yield pages
    visit.close()


@pytest.mark.parametrize("first", [pytest.param(_KINDS[:1], id="some pages"), pytest.param(_KINDS, id="all pages", marks=pytest.mark.slow)])
def test_a_workspace_is_chosen_and_another_one(first: Sequence[str], pages: Pages) -> None:
    page = pages.visit.page
    page.goto(pages.site.url)
    # The first page lists the workspaces.
    lines = pages.visit.look("workspaces", page.get_by_role("link", name="team-b", exact=True))
    assert [line for line in lines if line in ("default", *_TEAMS)] == ["default", *_TEAMS]
    assert "all of team-a" in lines
    page.get_by_role("link", name="team-a", exact=True).click()
    page.wait_for_url("**?workspace=team-a")
    _shows_only("team-a", pages, first)
    # Switches to another workspace in the side bar.
    pages.selector().click()
    choices = page.get_by_role("option")
    choices.filter(has_text="team-b").wait_for()
    assert sorted(choice.inner_text() for choice in choices.all()) == ["default", *_TEAMS]
    pages.named.clear()
    choices.filter(has_text="team-b").click()
    page.wait_for_url("**?workspace=team-b*")
    _shows_only("team-b", pages, _KINDS)
    assert unexpected(pages.visit) == []


def _shows_only(team: str, pages: Pages, kinds: Sequence[str]) -> None:
    """Checks that only the workspace's experiments, models and runs are shown, or some kinds of
    them, and that all requests refer to this workspace.
    """
    page = pages.visit.page
    paths = {"experiment": "experiments", "model": "models", "run": f"experiments/{pages.site.ids[f'experiment of {team}']}/runs"}
    for kind in kinds:
        pages.visit.open(f"{paths[kind]}?workspace={team}")
        # Checks only the rows, because the side bar keeps the name of the previous experiment, on
        # stock MLflow as well.
        rows = page.get_by_role("row")
        pages.visit.look(f"{kind}s of {team}", rows.filter(has_text=f"{kind} of {team}"))
        shown = {other for other in ("default", *_TEAMS) if rows.filter(has_text=f"{kind} of {other}").count()}
        assert shown == {team}, f"{kind}s of {team}: {shown}"
    assert {name for _, name in pages.named} == {team}, pages.named


@pytest.mark.slow
@pytest.mark.parametrize("team", ["team-a", "default"])
def test_artifacts_are_shown_and_downloaded(team: str, pages: Pages, tmp_path: Path) -> None:
    page = pages.visit.page
    ids = pages.site.ids
    pages.visit.open(f"experiments/{ids[f'experiment of {team}']}/runs/{ids[f'run of {team}']}/artifacts?workspace={team}")
    pages.artifact("notes.txt").click()
    place = f"workspaces/{team}/" if team != "default" else ""
    expect(page.get_by_text(f"Notes of {team}", exact=True)).to_be_visible()
    expect(page.get_by_text(f"mlflow-artifacts:/{place}{ids[f'experiment of {team}']}/")).to_be_visible()
    assert _downloaded(pages, tmp_path) == f"Notes of {team}".encode()
    pages.artifact("picture.png").click()
    picture = page.locator("img[src^='blob:']").first
    picture.wait_for()
    # The natural width is only available if the browser could decode the image.
    assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") > 100
    assert _downloaded(pages, tmp_path) == _PICTURE.read_bytes()
    assert {name for _, name in pages.named} == {team}, pages.named
    pages.visit.look("artifacts")
    assert unexpected(pages.visit) == []


def _downloaded(pages: Pages, directory: Path) -> bytes:
    page = pages.visit.page
    with page.expect_download() as started:
        page.locator(_DOWNLOAD).locator("visible=true").click()
    started.value.save_as(directory / "downloaded")
    return (directory / "downloaded").read_bytes()


@pytest.mark.slow
def test_a_link_to_what_another_workspace_has(pages: Pages) -> None:
    pages.visit.open(f"experiments/{pages.site.ids['experiment of team-b']}/runs?workspace=team-a")
    lines = pages.visit.look("another's", pages.visit.page.get_by_text("Experiment not found"))
    assert not [line for line in lines if "of team-b" in line]


@pytest.mark.slow
def test_a_workspace_is_made_and_changed(pages: Pages) -> None:
    page = pages.visit.page
    page.goto(pages.site.url)
    page.get_by_role("button", name="Create new workspace").click()
    dialog = page.get_by_role("dialog")
    # The page or the server refuses an existing name with a message.
    dialog.get_by_placeholder("Enter workspace name").fill("team-a")
    dialog.get_by_role("button", name="Create", exact=True).click()
    expect(dialog.get_by_text("already exists", exact=False)).to_be_visible()
    dialog.get_by_placeholder("Enter workspace name").fill("made-here")
    dialog.get_by_placeholder("Enter workspace description").fill("by hand")
    dialog.get_by_placeholder("Enter default artifact root URI").fill("s3://bucket/made")
    dialog.get_by_role("button", name="Create", exact=True).click()
    # The new workspace is selected immediately, and empty.
    page.wait_for_url("**?workspace=made-here")
    pages.visit.look("made", page.get_by_text("Create your first experiment", exact=True))
    made = pages.site.ask("", "GET", f"{_V3}/workspaces/made-here")["workspace"]
    assert made == {"name": "made-here", "description": "by hand", "default_artifact_root": "s3://bucket/made"}

    page.goto(f"{pages.site.url}/#/")
    row = page.get_by_role("row").filter(has_text="made-here")
    row.get_by_role("button", name="Edit workspace").click()
    dialog.get_by_placeholder("Enter workspace description").fill("changed")
    dialog.get_by_role("button", name="Save").click()
    expect(row.get_by_text("changed", exact=True)).to_be_visible()
    changed = pages.site.ask("", "GET", f"{_V3}/workspaces/made-here")["workspace"]
    assert changed == {"name": "made-here", "description": "changed", "default_artifact_root": "s3://bucket/made"}
    expected = "request: POST /ajax-api/3.0/mlflow/workspaces -> 400"
    assert [problem for problem in unexpected(pages.visit) if problem != expected] == []
