"""Signed requests to a deployment, without MLflow's client."""

from typing import Any

import requests
from mlflow_serverless_auth import SigV4

_SECONDS = 300


def ask(world, method: str, path: str, body: dict | None = None, query: dict[str, str] | None = None) -> requests.Response:
    return requests.request(
        method, f"{world.signed}{path}", json=body, params=query, auth=SigV4(), timeout=_SECONDS, allow_redirects=False
    )


def expect(world, status: int, method: str, path: str, body: dict | None = None, query: dict[str, str] | None = None) -> requests.Response:
    answer = ask(world, method, path, body, query)
    assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text}"
    return answer


def done(world, method: str, path: str, body: dict | None = None, query: dict[str, str] | None = None) -> Any:
    return expect(world, 200, method, path, body, query).json()


def download(world, path: str, query: dict[str, str]) -> bytes:
    """Returns a file to whose location the server redirects."""
    place = expect(world, 307, "GET", path, query=query).headers["Location"]
    content = requests.get(place, timeout=_SECONDS)
    assert content.status_code == 200, content.text
    return content.content
