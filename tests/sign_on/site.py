"""A server with users whose sessions a provider opens, on an engine whose rows the tests can change."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import boto3
import requests
from boto3.dynamodb.conditions import Key

from tests.browser import ui
from tests.sign_on.rotating_provider import CLIENT, SECRET, Provider, provider
from tests.support.engine import start_engine
from tests.support.processes import child_environment, wait_until
from tests.support.servers import ServerlessMlflow, binary

PASSWORD = "correct horse battery"
TITLE = "Example Inc."
_ACCESS_TABLE = "mlflow-access"
_COMMAND_SECONDS = 120


@dataclass
class Site:
    """A running server with its provider."""

    url: str
    provider: Provider
    server: ServerlessMlflow
    #: The file with the client secret.
    secret: Path
    _table: object
    _place: tuple[str, ...]
    _environment: dict[str, str]
    _start: Callable[[], ServerlessMlflow]

    def admin(self, *arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        """Runs a command of `admin`. Returns also if it fails."""
        command = [str(binary()), "admin", *arguments, *self._place]
        return subprocess.run(
            command, input=text, text=True, capture_output=True, env=self._environment, timeout=_COMMAND_SECONDS, check=False
        )

    def post(self, path: str, body: dict, method: str = "POST") -> dict:
        """Sends a request as the administrator."""
        answer = requests.request(method, f"{self.url}/api/{path}", json=body, auth=("admin", PASSWORD), timeout=60)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def current(self, cookies: list, **headers: str) -> requests.Response:
        """Sends a request with these cookies of a browser. It is answered with 200 if they belong to a valid session."""
        header = "; ".join(f"{cookie['name']}={cookie['value']}" for cookie in cookies)
        headers = {"cookie": header, "sec-fetch-site": "same-origin", **headers}
        return requests.get(f"{self.url}/ajax-api/2.0/mlflow/users/current", headers=headers, timeout=60)

    def sessions(self, user: str) -> list[dict]:
        """Returns the rows of a user's sessions."""
        return self._rows(user, "U#SESSION#")

    def overdue(self, user: str, seconds: int = 1) -> None:
        """Moves the time at which the sessions of a user have to be renewed into the past."""
        self._set(self.sessions(user), "renew_by", int(time.time()) - seconds)

    def confirmed_until(self, user: str, when: int) -> None:
        """Sets the time until which the provider's confirmation covers the API tokens of a user."""
        self._set(self._rows(user, "U#META"), "confirmed_until", when)

    def set_renewals(self, user: str, attribute: str, value: int) -> None:
        """Sets an attribute of the rows that have the refresh tokens of a user."""
        self._set(self._rows(user, "U#RENEWAL#"), attribute, value)

    def start_again(self) -> None:
        """Starts the server on another port, after it was killed. Its configuration still has the former origin."""
        self.server = self._start()
        self.url = self.server.url

    def _rows(self, user: str, prefix: str) -> list[dict]:
        condition = Key("PK").eq(f"USER#{user}") & Key("SK").begins_with(prefix)
        return self._table.query(KeyConditionExpression=condition, ConsistentRead=True)["Items"]

    def _set(self, rows: list[dict], attribute: str, value: int) -> None:
        assert rows
        for row in rows:
            self._table.update_item(
                Key={"PK": row["PK"], "SK": row["SK"]},
                UpdateExpression="SET #attribute = :value",
                ConditionExpression="attribute_exists(PK)",
                ExpressionAttributeNames={"#attribute": attribute},
                ExpressionAttributeValues={":value": value},
            )


@contextmanager
def site_of(directory: Path, *options: str, **settings: object) -> Iterator[Site]:
    """Runs a server and a provider. `settings` are added to the configuration of the provider."""
    with ExitStack() as stops:
        engine = start_engine(directory, directory / "data")
        stops.callback(engine.process.stop)
        credentials = {"AWS_ACCESS_KEY_ID": engine.access_key, "AWS_SECRET_ACCESS_KEY": engine.secret, "AWS_REGION": "local"}
        environment = child_environment(**credentials)
        place = ("--dynamodb-endpoint", engine.url, "--table", "mlflow", "--access-table", _ACCESS_TABLE)
        command = [str(binary()), "admin", "create", "admin", *place]
        subprocess.run(
            command, input=f"{PASSWORD}\n", text=True, check=True, capture_output=True, timeout=_COMMAND_SECONDS, env=environment
        )
        secrets = directory / "secrets"
        secrets.mkdir(mode=0o700)
        secret = secrets / "company"
        secret.touch(mode=0o600)
        secret.write_text(SECRET)
        served = (*place, "--auth", "basic", "--follow-stream", "--sign-on-secrets", str(secrets))
        served += ("--artifacts-destination", str(directory / "artifacts"), "--ui", str(ui.directory()))

        def start() -> ServerlessMlflow:
            root = "mlflow-artifacts:/"
            started = ServerlessMlflow(
                directory / "server", options=(*served, *options), artifact_root=root, environment=credentials
            )
            stops.callback(started.stop)
            return started

        server = start()
        running = stops.enter_context(provider(directory / "provider", server.url))
        table = boto3.resource(
            "dynamodb",
            endpoint_url=engine.url,
            aws_access_key_id=engine.access_key,
            aws_secret_access_key=engine.secret,
            region_name="local",
        ).Table(_ACCESS_TABLE)
        made = Site(server.url, running, server, secret, table, place, environment, start)
        role = made.post("3.0/mlflow/roles/create", {"name": "trainers", "workspace": "default"})["role"]["id"]
        permission = {"role_id": role, "resource_type": "experiment", "resource_pattern": "*", "permission": "EDIT"}
        made.post("3.0/mlflow/roles/permissions/add", permission)
        file = directory / "sign-on.toml"
        file.write_text(configuration(server.url, running.issuer, **settings))
        stored = made.admin("providers", str(file))
        assert stored.returncode == 0, stored.stderr
        # Processes read a new configuration within a minute.
        wait_until(lambda: TITLE in requests.get(f"{server.url}/signin", timeout=60).text, "link to the provider", server.process)
        yield made


def configuration(origin: str, issuer: str, **settings: object) -> str:
    """Returns a configuration file with rules for the groups `ml` and `admins`."""
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items())
    return f"""
origins = ["{origin}"]

[[providers]]
name = "company"
title = "{TITLE}"
issuer = "{issuer}"
client_id = "{CLIENT}"
scopes = ["profile", "email"]
sign_out = true
{lines}
[[providers.require]]
claim = "groups"
values = ["ml", "admins"]

[[providers.roles]]
claim = "groups"
values = ["ml"]
role = "trainers"

[[providers.roles]]
claim = "groups"
values = ["admins"]
administrator = true
"""
