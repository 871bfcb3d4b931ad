"""Tests that a sweep finds dead buttons and differences, on pages made for this purpose."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.sweep import RECORD_CLIPBOARD, Press, Sweep, differences

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

_PAGE = """<!doctype html><html><body><p>a page</p>
<button id="live">live</button> <button>dead</button> <button disabled>disabled</button> <button aria-disabled="true">off</button>
<button style="display: none">hidden</button>
<button onclick="document.getElementById('dialog').hidden = false">open</button>
<button onclick="navigator.clipboard.writeText('text')">copy</button>
<div id="dialog" role="dialog" aria-label="Dialog" hidden><button>dead inside</button>
<button onclick="document.getElementById('dialog').hidden = true">close</button></div>
<script>document.getElementById("live").onclick = () => fetch("/ajax-api/thing", { method: "POST" });</script>
</body></html>"""


@pytest.fixture
def sweep(browser: Browser, tmp_path: Path) -> Callable[[str, int], list[Press]]:
    """Returns a function that presses all buttons of a page. Its requests get this status."""

    def sweep(content: str, status: int) -> list[Press]:
        context = browser.new_context()
        context.add_init_script(RECORD_CLIPBOARD)
        context.route("http://pages.test/**", lambda route: route.fulfill(status=200, content_type="text/html", body=content))
        context.route("http://pages.test/ajax-api/**", lambda route: route.fulfill(status=status, body=""))
        filled = []
        swept = Sweep(context.new_page(), "http://pages.test", lambda: "page", lambda: filled.append(1), tmp_path / "log", "a page").run()
        context.close()
        assert len(filled) == sum(any(request.startswith("POST") for request in press.requests) for press in swept)
        assert len((tmp_path / "log").read_text().splitlines()) == len(swept)
        return swept

    return sweep


def test_a_dead_button_is_found_on_the_page_and_in_a_dialog(sweep: Callable[[str, int], list[Press]]) -> None:
    presses = {press.path[-1].split(" | ")[1]: press for press in sweep(_PAGE, 200)}
    assert set(presses) == {"live", "dead", "open", "copy", "dead inside", "close"}
    assert {label for label, press in presses.items() if press.dead} == {"dead", "dead inside"}
    assert presses["live"].requests == ["POST /ajax-api/thing -> 200"]
    assert presses["open"].opened == ["dialog Dialog"]
    assert presses["close"].closed == ["dialog Dialog"]
    assert presses["copy"].others == ["copied text"]


def test_a_covered_button_is_a_result(sweep: Callable[[str, int], list[Press]]) -> None:
    cover = '<div style="position: fixed; inset: 0"></div>'
    failures = [press.failure for press in sweep(f"<!doctype html><html><body><p>a page</p><button>covered</button>{cover}</body></html>", 200)]
    assert len(failures) == 1
    assert failures[0].startswith("cannot be pressed")


def test_sweeps_differ_in_statuses_texts_and_buttons(sweep: Callable[[str, int], list[Press]]) -> None:
    content = """<!doctype html><html><body><p>a page</p><button onclick="fetch('/ajax-api/thing')">ask</button>
        <button onclick="document.getElementById('text').hidden = false">show</button><p id="text" hidden>shown</p></body></html>"""
    reference = sweep(content, 200)
    assert differences(reference, sweep(content, 200)) == []
    assert differences(reference, sweep(content, 404)) == [
        "button | ask | : requests: +GET /ajax-api/thing -> 404",
        "button | ask | : requests: -GET /ajax-api/thing -> 200",
    ]
    assert differences(reference, sweep(content.replace(">ask<", ">other<").replace(">shown<", ">seen<"), 200)) == [
        "button | ask | : only on the reference",
        "button | other | : only on the subject",
        "button | show | : appeared: +seen",
        "button | show | : appeared: -shown",
    ]
