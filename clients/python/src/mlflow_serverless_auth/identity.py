"""The identity token (JWT) that the environment of a program issues to it: in CI jobs and in pods."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import requests

#: Variable with a JWT, for GitLab's `id_tokens` and for other systems that set variables.
_TOKEN = "MLFLOW_OIDC_TOKEN"
#: Variable with the path of a file that contains a JWT, such as the projected token of a
#: Kubernetes service account. It is read again for every exchange, because its content is replaced.
_TOKEN_FILE = "MLFLOW_OIDC_TOKEN_FILE"
#: Path of that file if the variable is not set. The default token of a pod is not used, because
#: its audience is the API server of the cluster, where anyone who receives it could use it.
_DEFAULT_TOKEN_FILE = Path("/var/run/secrets/mlflow-serverless/token")
#: Variable with the audience to request. The default is the URL of the server.
_AUDIENCE = "MLFLOW_OIDC_AUDIENCE"
_GITHUB_URL = "ACTIONS_ID_TOKEN_REQUEST_URL"
_GITHUB_TOKEN = "ACTIONS_ID_TOKEN_REQUEST_TOKEN"
_TIMEOUT_SECONDS = 30


class IdentityError(Exception):
    """The environment's identity cannot be used. The message contains the reason."""


@dataclass(frozen=True)
class Identity:
    """A source of JWTs."""

    #: Where the JWT comes from, for messages.
    source: str
    #: Whether the user has set it up for MLflow. Jobs of GitHub Actions may also have it for AWS.
    is_explicit: bool
    #: Returns a JWT for the given server.
    fetch: Callable[[str], str]


def of_environment() -> Identity | None:
    """Returns the identity of this program, or `None` if its environment issues none."""
    if os.environ.get(_TOKEN):
        return Identity(f"the variable {_TOKEN}", True, lambda _: os.environ[_TOKEN].strip())
    file = Path(os.environ.get(_TOKEN_FILE) or _DEFAULT_TOKEN_FILE)
    if os.environ.get(_TOKEN_FILE) or file.exists():
        return Identity(f"the file {file}", True, lambda _: _from_file(file))
    if os.environ.get(_GITHUB_URL) and os.environ.get(_GITHUB_TOKEN):
        return Identity("GitHub Actions", False, _from_github)
    return None


def _from_file(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        raise IdentityError(f"The identity token in {file} cannot be read: {error}") from error


def _from_github(server: str) -> str:
    headers = {"Authorization": f"Bearer {os.environ[_GITHUB_TOKEN]}"}
    query = {"audience": os.environ.get(_AUDIENCE) or server}
    response = requests.get(os.environ[_GITHUB_URL], query, headers=headers, timeout=_TIMEOUT_SECONDS)
    if response.status_code != 200:
        raise IdentityError(f"GitHub Actions did not issue an identity token (status {response.status_code}).")
    return response.json()["value"]
