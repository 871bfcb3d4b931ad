"""Tests of the UI through `mlflow-serverless proxy`, with a stack whose API requires signed
requests.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from mlflow import MlflowClient
from playwright.sync_api import expect, sync_playwright
from samtranslator.yaml_helper import yaml_parse

from tests.browser.visit import CHROMIUM, OPTIONS
from tests.clients.gateway import strict
from tests.clients.verifier import Verifier
from tests.support.gateway import Gateway, Limits, read_routes
from tests.support.http_server import serving
from tests.support.proxy import Opened, proxying

from .conftest import PATIENCE_SECONDS, REPOSITORY, LocalLambda

_CALLER = Verifier("AKIDCALLER", "secret/of+caller", "eu-test-1")
_KEYS = {"AWS_ACCESS_KEY_ID": _CALLER.access_key, "AWS_SECRET_ACCESS_KEY": _CALLER.secret_key, "AWS_REGION": _CALLER.region}
_SECONDS = 300


@pytest.fixture
def one_time_url(local_lambda: LocalLambda, tmp_path: Path) -> Iterator[str]:
    """Yields the one-time URL of a proxy in front of an API that only accepts requests signed by
    this caller.
    """
    routes = read_routes(yaml_parse((REPOSITORY / "template.yaml").read_text()))
    gateway = Gateway(routes, local_lambda.functions, Limits(seconds=PATIENCE_SECONDS))
    with serving(strict(_CALLER, gateway.answer)) as api, proxying(api, _KEYS, tmp_path) as url:
        assert requests.get(api, timeout=_SECONDS).status_code == 403
        yield url


def test_a_browser_works_with_a_stack_that_takes_signed_requests(local_lambda: LocalLambda, one_time_url: str):
    opened = Opened(one_time_url)
    assert (opened.page.status_code, opened.page.url) == (200, f"{opened.url}/")
    assert "static-files/absent.js" in opened.page.text
    name = "by proxy = @ é"
    made = opened.post(f"{opened.url}/ajax-api/2.0/mlflow/experiments/create", json={"name": name}, timeout=_SECONDS)
    experiment = made.json()["experiment_id"]
    listed = opened.get(
        f"{opened.url}/ajax-api/2.0/mlflow/experiments/search",
        params={"max_results": 10, "filter": f"name = '{name}'"},
        timeout=_SECONDS,
    )
    assert [found["experiment_id"] for found in listed.json()["experiments"]] == [experiment]

    run = MlflowClient(local_lambda.gateway).create_run(experiment).info
    content = os.urandom(100_000)
    sent = opened.post(
        f"{opened.url}/ajax-api/2.0/mlflow/upload-artifact",
        params={"run_uuid": run.run_id, "path": "a b=c@é.bin"},
        data=content,
        headers={"Content-Type": "text/plain"},
        timeout=_SECONDS,
    )
    assert sent.status_code == 200, sent.text
    asked = {"run_id": run.run_id, "path": "a b=c@é.bin"}
    read = opened.get(f"{opened.url}/get-artifact", params=asked, timeout=_SECONDS)
    # The functions redirect to the bucket, and the proxy follows the redirect itself.
    assert (read.status_code, read.history, read.content == content) == (200, [], True)
    assert read.headers["Content-Disposition"].startswith("attachment; filename=")
    part = opened.get(f"{opened.url}/get-artifact", params=asked, headers={"Range": "bytes=10-19"}, timeout=_SECONDS)
    assert (part.status_code, part.content) == (206, content[10:20])
    missing = opened.get(f"{opened.url}/get-artifact", params=asked | {"path": "none"}, timeout=_SECONDS)
    assert (missing.status_code, missing.json()["error_code"]) == (404, "RESOURCE_DOES_NOT_EXIST")

    too_long = opened.post(f"{opened.url}/ajax-api/2.0/mlflow/upload-artifact", data=bytes(10_500_000), timeout=_SECONDS)
    assert too_long.status_code == 413
    stranger = requests.get(f"{opened.url}/ajax-api/2.0/mlflow/experiments/search?max_results=1", timeout=_SECONDS)
    assert (stranger.status_code, "one-time URL" in stranger.text) == (403, True)
    assert requests.get(one_time_url, timeout=_SECONDS).status_code == 403


@pytest.mark.slow
def test_chromium_shows_the_page(one_time_url: str):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        try:
            page = browser.new_context(locale="en-US").new_page()
            page.set_default_timeout(_SECONDS * 1000)
            failed: list[str] = []
            page.on("response", lambda answer: failed.append(f"{answer.status} {answer.url}") if answer.status == 403 else None)
            asked: list[str] = []
            page.on("request", lambda request: asked.append(request.headers.get("referer", "")))
            page.goto(one_time_url)
            assert page.url.partition("#")[0] == one_time_url.partition("open/")[0]
            with page.expect_response(lambda answer: "/ajax-api/" in answer.url and answer.ok):
                page.reload()
            expect(page.locator("#root")).not_to_be_empty(timeout=_SECONDS * 1000)
            assert failed == []
            assert not [referer for referer in asked if "/open/" in referer]
            another = browser.new_context().new_page()
            assert another.goto(one_time_url).status == 403
        finally:
            browser.close()
