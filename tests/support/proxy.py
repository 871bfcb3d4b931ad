"""Runs `mlflow-serverless proxy`, and opens its one-time URL in a session."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import requests

from .processes import ChildProcess, child_environment, wait_until
from .servers import binary

_PATIENCE_SECONDS = 60
_ONE_TIME_URL = re.compile(r"^http://127\.0\.0\.1:\d+/open/\S+$", re.MULTILINE)


@contextmanager
def proxying(api: str, credentials: Mapping[str, str], directory: Path) -> Iterator[str]:
    """Runs the proxy in front of an API, and yields its one-time URL."""
    command = [str(binary()), "proxy", "--tracking-uri", api, "--port", "0"]
    none = str(directory / "none")
    elsewhere = {"AWS_CONFIG_FILE": none, "AWS_SHARED_CREDENTIALS_FILE": none, "AWS_EC2_METADATA_DISABLED": "true"}
    environment = child_environment(**elsewhere, **credentials)
    process = ChildProcess(command, environment, directory, directory / "proxy.log")
    try:
        found = wait_until(lambda: _ONE_TIME_URL.search(process.log_text()), "one-time URL", process, _PATIENCE_SECONDS)
        yield found[0]
    finally:
        process.stop()


class Opened(requests.Session):
    """A session that acts like a browser: it opens the URL, keeps the cookie, and sends the origin
    of the page.
    """

    def __init__(self, one_time_url: str):
        super().__init__()
        self.trust_env = False
        self.url = one_time_url.partition("/open/")[0]
        self.page = self.get(one_time_url, headers={"Sec-Fetch-Site": "none"}, timeout=300)
        self.headers.update({"Origin": self.url, "Sec-Fetch-Site": "same-origin"})
