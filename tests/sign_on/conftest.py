"""A browser, and a server with single sign-on."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.browser.visit import CHROMIUM, OPTIONS
from tests.sign_on.site import Site, site_of

_PATIENCE_MS = 60_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Yields Chromium. Each test opens contexts of its own, which share no cookies."""
    if not Path(CHROMIUM).is_file():
        pytest.fail(f"{CHROMIUM} is missing: install Debian's package chromium (apt-get install chromium)")
    expect.set_options(timeout=_PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Yields a server with a provider, which all tests share. Each uses accounts of its own."""
    with site_of(tmp_path_factory.mktemp("sign-on")) as running:
        yield running
