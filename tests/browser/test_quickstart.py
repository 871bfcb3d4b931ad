"""Tests that the run of the README's example is shown in a browser at the server's address."""

import pytest

from tests.browser.conftest import unexpected
from tests.browser.visit import Visit

pytestmark = pytest.mark.xdist_group("newcomer")


def test_the_run_is_there_with_its_params_charts_and_artifacts(newcomer: Visit):
    """Navigates from the server's address by clicks only."""
    page = newcomer.page
    page.get_by_role("link", name="quickstart", exact=True).first.click()
    page.get_by_text("Model training", exact=True).click()
    page.get_by_role("link", name="Runs", exact=True).click()
    page.locator(".ag-row").get_by_role("link").first.click()

    lines = newcomer.look("overview", page.get_by_text("Finished", exact=True))
    assert _after(lines, "optimizer") == "adam" and _after(lines, "rate") == "0.1"
    # The loss of the last step.
    assert _after(lines, "loss") == "0.125"

    page.get_by_role("tab", name="Model metrics").click()
    curve = page.locator(".js-plotly-plot path.js-line")
    curve.first.wait_for(state="attached")
    assert "loss" in newcomer.look("charts")
    # A line through the four points with a visible length.
    assert any(line.get_attribute("d").count("L") == 3 and line.bounding_box()["width"] > 100 for line in curve.all())

    page.get_by_role("tab", name="Artifacts").click()
    page.get_by_test_id("artifact-tree-node").filter(has_text="notes.txt").click()
    text = page.get_by_text("Each step halves the loss.")
    newcomer.look("artifacts", text)
    assert text.is_visible()
    assert unexpected(newcomer) == []


def _after(lines: list[str], name: str) -> str:
    """Returns the value next to a name in a table."""
    return lines[lines.index(name) + 1]
