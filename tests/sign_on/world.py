"""A server with users, an OpenID provider, and browsers that sign in."""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import requests

from tests.sign_on.provider import Provider
from tests.support.local_engine import LocalEngine, local_engine
from tests.support.processes import child_environment
from tests.support.servers import ServerlessMlflow, binary

ADMIN, PASSWORD = "admin", "correct horse battery"
V2, V3, AJAX = "/api/2.0/mlflow", "/api/3.0/mlflow", "/ajax-api/2.0/mlflow"
RENEW = f"{AJAX}/users/renew-session"
_TIMEOUT_SECONDS = 120
#: What a browser reports about requests of the server's own pages.
OWN_PAGE = {"sec-fetch-site": "same-origin"}


class _Page(HTMLParser):
    """The text of a page, the text of its alert, and the targets of its links."""

    def __init__(self, text: str):
        super().__init__()
        self.text, self.alert, self.links, self._open = "", "", {}, []
        self._link = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        attributes = dict(attrs)
        if tag == "a":
            self._link = attributes["href"]
        if attributes.get("role") == "alert":
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag == "a":
            self._link = None
        if self._open[-1:] == [tag]:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._link:
            self.links[data] = self._link
        if self._open:
            self.alert += data


def alert(answer: requests.Response) -> str:
    """Returns the sentence that a page shows after an action."""
    return _Page(answer.text).alert


def links(answer: requests.Response) -> dict[str, str]:
    """Returns the targets of a page's links by their texts."""
    return _Page(answer.text).links


@dataclass
class Browser:
    """A browser, as far as the server can tell."""

    url: str
    session: requests.Session = field(default_factory=requests.Session)

    def get(self, path: str, **headers: str) -> requests.Response:
        """Requests a page or an API path, without following redirects."""
        url = path if path.startswith("http") else f"{self.url}{path}"
        return self.session.get(url, headers=headers, allow_redirects=False, timeout=_TIMEOUT_SECONDS)

    def start(self, provider: str, page: str = "/tokens") -> str:
        """Follows the provider's link on the sign-in page. Returns the URL of the provider."""
        led = self.get(page)
        assert led.status_code == 303, led.text
        shown = self.get(led.headers["location"])
        assert shown.status_code == 200, shown.text
        answer = self.get(links(shown)[f"Sign in with {provider}"])
        assert answer.status_code == 303, alert(answer)
        return answer.headers["location"]

    def finish(self, callback: str) -> requests.Response:
        """Returns from the provider, as browsers do: by a navigation from another site."""
        visit = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
        return self.get(callback, **visit)

    def sign_in(self, provider: Provider, title: str, subject: str) -> requests.Response:
        return self.finish(provider.sign_in(self.start(title), subject))

    def sign_in_with_password(self, name: str, password: str = PASSWORD) -> requests.Response:
        form = {"username": name, "password": password}
        headers = {"origin": self.url}
        return self.session.post(f"{self.url}/signin", form, headers=headers, allow_redirects=False, timeout=_TIMEOUT_SECONDS)

    def api(self, path: str) -> requests.Response:
        return self.get(path, **OWN_PAGE)

    def user(self) -> str | None:
        """Returns the name of the user who is signed in."""
        answer = self.api(f"{AJAX}/users/current")
        assert answer.status_code in (200, 401), answer.text
        return answer.json()["user"]["username"] if answer.status_code == 200 else None

    def renew(self) -> requests.Response:
        return self.session.post(f"{self.url}{RENEW}", headers={"origin": self.url}, timeout=_TIMEOUT_SECONDS)

    def cookies(self) -> set[str]:
        return {cookie.name for cookie in self.session.cookies}


@dataclass
class World:
    """The server, its tables, and the directory with client secrets."""

    url: str
    engine: LocalEngine
    directory: Path
    server: ServerlessMlflow

    def browser(self) -> Browser:
        return Browser(self.url)

    def command(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return _command(self.engine, *arguments, check=check)

    def configure(self, text: str, *options: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Stores a configuration of single sign-on."""
        file = self.directory / "providers.toml"
        file.write_text(f'origins = ["{self.url}"]\n{text}')
        return self.command("providers", str(file), *options, check=check)

    def set_secret(self, provider: str, secret: str, mode: int = 0o600) -> None:
        file = self.directory / "secrets" / provider
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{secret}\n")
        file.chmod(mode)

    def admin(self, method: str, path: str, body: dict[str, Any]) -> Any:
        sent = {"params": body} if method == "GET" else {"json": body}
        answer = requests.request(method, f"{self.url}{path}", auth=(ADMIN, PASSWORD), timeout=_TIMEOUT_SECONDS, **sent)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def roles(self, user: str) -> set[str]:
        """Returns the names of a user's roles, without the role of the user's own grants."""
        roles = self.admin("GET", f"{V3}/users/roles/list", {"username": user})["roles"]
        return {role["name"] for role in roles if not role["name"].startswith("__user_")}

    def make_overdue(self, user: str) -> None:
        """Makes all sessions of a user overdue, as if time had passed."""
        client = self.engine.client()
        found = client.query(
            TableName="mlflow-access",
            KeyConditionExpression="PK = :user AND begins_with(SK, :session)",
            ExpressionAttributeValues={":user": {"S": f"USER#{user}"}, ":session": {"S": "U#SESSION#"}},
        )["Items"]
        assert found
        for item in found:
            client.update_item(
                TableName="mlflow-access",
                Key={"PK": item["PK"], "SK": item["SK"]},
                UpdateExpression="SET renew_by = :time",
                ExpressionAttributeValues={":time": {"N": str(int(time.time()) - 1)}},
            )

    def log(self) -> str:
        return self.server.process.log_text()


def provider_text(provider: Provider, name: str = "mock", client: str = "mlflow", rest: str = "", rules: str = "") -> str:
    """Returns the configuration of a provider. `rest` has further keys, `rules` further tables."""
    return (
        f'[[providers]]\nname = "{name}"\ntitle = "{name.capitalize()}"\nissuer = "{provider.url}"\n'
        f"client_id = {json.dumps(client)}\n{rest}\n{rules}\n"
    )


@contextmanager
def world(directory: Path, *options: str) -> Iterator[World]:
    """Starts a server with the administrator `admin`, over an engine of its own."""
    with ExitStack() as stops:
        engine = stops.enter_context(local_engine(directory / "engine"))
        _command(engine, "create", ADMIN)
        place = ("--dynamodb-endpoint", engine.url, "--auth", "basic", "--no-ui")
        place += ("--sign-on-secrets", str(directory / "secrets"))
        server = ServerlessMlflow(
            directory / "server", options=(*place, *options), artifact_root="mlflow-artifacts:/", environment=engine.environment
        )
        stops.callback(server.stop)
        yield World(server.url, engine, directory, server)


def _command(engine: LocalEngine, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    command = [str(binary()), "admin", *arguments, "--dynamodb-endpoint", engine.url]
    environment = child_environment(**engine.environment)
    done = subprocess.run(command, input=f"{PASSWORD}\n", capture_output=True, text=True, timeout=120, env=environment)
    assert not check or done.returncode == 0, done.stderr
    return done
