"""`mlflow-serverless login` in Chromium: the page leads back to the program, although its policy allows
forms to be submitted to the server only.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.sign_on.login_server import PASSWORD, USER, Laptop, LoginServer, login_server

_PATIENCE_SECONDS = 180


@pytest.fixture
def running(tmp_path: Path) -> Iterator[LoginServer]:
    with login_server(tmp_path) as running:
        yield running


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context()
    context.set_default_timeout(_PATIENCE_SECONDS * 1_000)
    expect.set_options(timeout=_PATIENCE_SECONDS * 1_000)
    yield context
    context.close()


def _sign_in(page: Page) -> None:
    page.get_by_label("Username").fill(USER)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()


@pytest.mark.parametrize(("button", "said", "is_successful"), [("Approve", "return to the terminal", True), ("Cancel", "was cancelled", False)])
def test_the_page_leads_back_to_the_program(
    running: LoginServer, context: BrowserContext, tmp_path: Path, button: str, said: str, is_successful: bool
) -> None:
    laptop = Laptop(tmp_path / "laptop")
    laptop.home.mkdir()
    opened = laptop.home / "url"
    # Renamed when it is complete, because the test reads it as soon as it exists.
    program = laptop.home / "browser"
    program.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}.part && mv {opened}.part {opened}\n')
    program.chmod(0o700)
    process = laptop.start("login", running.url, BROWSER=str(program))
    try:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not opened.exists():
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        page = context.new_page()
        page.goto(opened.read_text())
        _sign_in(page)
        expect(page.get_by_text("requests a token with all of your permissions")).to_be_visible()
        page.get_by_role("button", name=button).click()
        expect(page.get_by_text(said)).to_be_visible()
        assert page.url.startswith("http://127.0.0.1:") and not page.url.startswith(running.url)
        output, errors = process.communicate(timeout=_PATIENCE_SECONDS)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode == 0) == is_successful, errors
    assert laptop.tokens.exists() == is_successful
    assert output.startswith(f"Logged in to {running.url} as {USER}.") == is_successful


def test_a_code_is_entered_on_the_page(running: LoginServer, context: BrowserContext, tmp_path: Path) -> None:
    laptop = Laptop(tmp_path / "laptop")
    laptop.home.mkdir()
    process = laptop.start("login", running.url)
    try:
        assert process.stderr is not None
        code = process.stderr.readline().strip().removesuffix(".")[-9:]
        page = context.new_page()
        page.goto(f"{running.url}/login")
        _sign_in(page)
        page.get_by_label("Code that the client shows").fill("bcdf ghjk")
        page.get_by_role("button", name="Continue").click()
        expect(page.get_by_role("alert")).to_contain_text("The code is not valid.")
        page.get_by_label("Code that the client shows").fill(code.lower())
        page.get_by_role("button", name="Continue").click()
        page.get_by_role("button", name="Approve").click()
        expect(page.get_by_role("alert")).to_contain_text("Approved. You can close this page")
        output, errors = process.communicate(timeout=_PATIENCE_SECONDS)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, errors
    assert output.startswith(f"Logged in to {running.url} as {USER}.")
