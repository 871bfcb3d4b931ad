"""Failures of providers and processes while sessions are renewed."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests

from tests.sign_on.without_browser import Client
from tests.sign_on.site import Site, site_of
from tests.support.processes import wait_until

pytestmark = pytest.mark.xdist_group("sign-on")


def person(site: Site, name: str) -> str:
    site.provider.put(name, email=f"{name}@example.com", groups=["ml"])
    return f"{name}@example.com"


def is_overdue(client: Client, site: Site) -> bool:
    answer = client.current(site.url)
    return answer.status_code == 401 and answer.headers.get("mlflow-session") == "renew"


def test_concurrent_renewals_present_the_token_once(site: Site) -> None:
    user = person(site, "bea")
    client = Client(site, "bea")
    before = site.provider.refreshes()
    # The renewals overlap.
    site.provider.answer_tokens(delay_ms=500)
    try:
        site.overdue(user)
        with ThreadPoolExecutor(30) as threads:
            statuses = list(threads.map(lambda _: client.renew(site.url).status_code, range(30)))
    finally:
        site.provider.answer_tokens()
    assert site.provider.refreshes()[len(before) :] == [200]
    # All of them wait for the renewal.
    assert statuses == [200] * 30
    assert client.current(site.url).status_code == 200


@pytest.mark.parametrize("is_sent", [False, True], ids=["before the token is sent", "after the token was sent"])
def test_a_session_ends_after_the_grace_period_of_an_outage(site: Site, is_sent: bool) -> None:
    name = f"kim{int(is_sent)}"
    user = person(site, name)
    client = Client(site, name)
    assert client.current(site.url).status_code == 200
    if is_sent:
        site.provider.answer_tokens(status=503)
    else:
        site.provider.close()
    try:
        site.overdue(user)
        wait_until(lambda: is_overdue(client, site), "overdue session", site.server.process)
        client.renew(site.url)
        # The session goes on.
        assert client.current(site.url).status_code == 200
        site.set_renewals(user, "grace_until", int(time.time()) - 1)
        site.overdue(user)
        assert client.renew(site.url).status_code == 401
        assert client.current(site.url).status_code == 401
    finally:
        if is_sent:
            site.provider.answer_tokens()
        else:
            site.provider.open()
    # The session has ended, and does not come back with the provider.
    assert client.renew(site.url).status_code == 401
    assert client.current(site.url).status_code == 401


@pytest.mark.slow
def test_a_renewal_whose_process_is_killed_never_presents_its_token_again(tmp_path: Path) -> None:
    with site_of(tmp_path) as site:
        user = person(site, "max")
        client = Client(site, "max")
        site.overdue(user)
        site.provider.answer_tokens(delay_ms=3_600_000)
        before = site.provider.received()
        with ThreadPoolExecutor(1) as threads:
            lost = threads.submit(client.renew, site.url)
            wait_until(lambda: site.provider.received() > before, "the refresh", site.server.process)
            site.server.kill()
            with pytest.raises(requests.RequestException):
                lost.result()
        site.provider.answer_tokens()
        site.start_again()
        # Another process may still wait for the response.
        assert client.renew(site.url).status_code != 200
        site.set_renewals(user, "claimed_until", int(time.time()) - 1)
        assert client.renew(site.url).status_code == 401
        assert client.current(site.url).status_code == 401
        assert site.provider.received() == before + 1
