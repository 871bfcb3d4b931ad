"""Tests a first visit to this project's server: what the server hides, where the side bars lead,
and what is at the addresses of features that are not implemented. `test_pages.py` cannot test this,
because it hides the same elements on both sides and closes the Assistant.
"""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator

from tests.browser import ui
from tests.browser.conftest import unexpected
from tests.browser.visit import Visit

pytestmark = pytest.mark.xdist_group("newcomer")

_IS_NEXT = ui.VERSION.startswith("3.18.")
_STYLE = Path(__file__).resolve().parents[2].joinpath("functions/ui/src/absent.css").read_text()
_SELECTORS = [selector.strip() for selector in re.sub(r"/\*.*?\*/", "", _STYLE, flags=re.DOTALL).partition("{")[0].split(",")]
_ASSISTANT = '[data-assistant-ui="true"]'
_SIDE_BAR = "aside a[href], aside button, nav a[href], nav button"
#: Texts of a page that fails to show its content.
_FAULT = re.compile("page not found|went wrong|failed to|could ?n.t|cannot be|can't be|an error", re.IGNORECASE)
_NO_SUCH_PAGE = "Page Not Found"
#: Texts at addresses without links, as described in docs/guide/ui.md.
_NOT_BUILT = {
    "gateway": _NO_SUCH_PAGE,
    "gateway/usage": _NO_SUCH_PAGE,
    "gateway/endpoints/create": _NO_SUCH_PAGE,
    "skills": "Register and catalog skills for your organization." if _IS_NEXT else _NO_SUCH_PAGE,
    "mcp-registry": "Register and catalog MCP servers for your organization.",
    "settings/llm-connections": "No API keys created",
    "experiments/{}/judges": "Create and manage judges",
    "experiments/{}/playground": "Select an endpoint",
    "account": "Not logged in",
    "admin": "Failed to load users",
}


@pytest.mark.slow
def test_the_assistant_is_neither_opened_nor_offered(newcomer: Visit):
    _look_at(newcomer, "")
    assert _found(newcomer, _ASSISTANT) and not _shown(newcomer, _ASSISTANT)
    assert "Assistant" not in newcomer.page.inner_text("body")
    # Without the server's additions to the page, the Assistant is shown.
    newcomer.page.route("**/static-files/absent.*", lambda route: route.abort())
    newcomer.page.evaluate("localStorage.clear()")
    newcomer.page.reload()
    _look_at(newcomer, "")
    assert _shown(newcomer, _ASSISTANT)
    assert "Assistant" in newcomer.page.inner_text("body")


@pytest.mark.slow
def test_all_that_the_server_hides_is_there_and_hidden(newcomer: Visit):
    found = dict.fromkeys(_SELECTORS, 0)
    for path in ["", "prompts", _experiment(newcomer), "settings"]:
        _look_at(newcomer, path)
        assert [selector for selector in _SELECTORS if _shown(newcomer, selector)] == []
        for selector in _SELECTORS:
            found[selector] += _found(newcomer, selector)
    assert not {selector for selector, count in found.items() if not count}
    assert "emo data" not in _main(newcomer).replace("workspace demo data", "")
    assert unexpected(newcomer) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["GenAI", "Model training"])
def test_the_side_bars_lead_to_pages(newcomer: Visit, kind: str):
    """Follows each link and button of the side bar, starting from the home page, an experiment and
    the settings.
    """
    experiment = _experiment(newcomer)
    _look_at(newcomer, experiment)
    newcomer.page.get_by_text(kind, exact=True).first.click()
    followed: set[str] = set()
    for start in ["", experiment, "settings"]:
        _look_at(newcomer, start)
        # The entries of the side bar depend on the pages visited before.
        while entry := next((entry for entry in _side_bar(newcomer) if _name(entry) not in followed), None):
            name = _name(entry)
            followed.add(name)
            entry.click()
            newcomer.look(f"{start} {name}")
            page = _main(newcomer)
            assert page.strip() and not _FAULT.search(page), (name, page)
            assert newcomer.page.locator("[class*=alert-error]").locator("visible=true").count() == 0, name
            if name.startswith("button"):
                # The button folds or unfolds the side bar.
                entry.click()
            _look_at(newcomer, start)
    assert len(followed) >= 8, followed
    assert unexpected(newcomer) == []


@pytest.mark.slow
def test_addresses_of_what_is_not_built(newcomer: Visit):
    number = _experiment(newcomer).rpartition("/")[2]
    for path, expected in _NOT_BUILT.items():
        newcomer.begin(f"not built {path}")
        _look_at(newcomer, path.format(number))
        page = _main(newcomer)
        assert expected in page, (path, page)
        assert newcomer.page.locator("[class*=alert-error]").locator("visible=true").count() == (1 if path == "admin" else 0), path
        failed = {"request: GET /ajax-api/2.0/mlflow/users/list -> 404"} if path == "admin" else set()
        assert set(unexpected(newcomer)) == failed, path


def _look_at(visit: Visit, path: str) -> None:
    visit.open(path)
    visit.look(path or "home")


def _main(visit: Visit) -> str:
    """Returns the text next to the side bar. In 3.18.0, the page of an experiment has a nested main
    element.
    """
    return visit.page.get_by_role("main").first.inner_text()


def _experiment(visit: Visit) -> str:
    """Returns the address of the only experiment that was created by a user."""
    return visit.page.get_by_role("link", name="quickstart", exact=True).first.get_attribute("href").removeprefix("#/")


def _found(visit: Visit, selector: str) -> int:
    return visit.page.locator(selector).count()


def _shown(visit: Visit, selector: str) -> int:
    return visit.page.locator(selector).locator("visible=true").count()


def _side_bar(visit: Visit) -> list[Locator]:
    """Returns the side bar's links to pages of the UI, and its buttons."""
    entries = visit.page.locator(_SIDE_BAR).locator("visible=true").all()
    return [entry for entry in entries if (entry.get_attribute("href") or "#").startswith("#")]


def _name(entry: Locator) -> str:
    """Returns the address of a link without its query, or the label of a button."""
    address = entry.get_attribute("href")
    return address.partition("?")[0] if address else f"button {entry.get_attribute('aria-label') or entry.inner_text()}"
