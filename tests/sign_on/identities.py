"""People, and the kinds of identity by which a server knows them."""

import base64
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from http.cookiejar import DefaultCookiePolicy
from pathlib import Path
from typing import Any, NamedTuple

import requests

from tests.sign_on.issuer import Issuer
from tests.sign_on.login_server import Laptop
from tests.sign_on.provider import Provider
from tests.sign_on.scripted_browser import ScriptedBrowser
from tests.sign_on.world import OWN_PAGE, PASSWORD, V2, Browser, World, alert, provider_text, world
from tests.support.processes import child_environment
from tests.support.servers import binary

_TIMEOUT_SECONDS = 120
_CONCURRENCY = 16
_ACCESS_TABLE = "mlflow-access"
_DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code"
_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_JWT = "urn:ietf:params:oauth:token-type:jwt"
_MACHINE = """
[[machines]]
name = "{user}"
issuer = "{issuer}"
audience = "{server}"
user = "{user}"
require = [{{ claim = "sub", values = ["job-of-{user}"] }}]
"""


class Credentials(NamedTuple):
    """Headers that authenticate requests. `kind` is one of `KINDS`."""

    kind: str
    headers: dict[str, str]

    @property
    def is_session(self) -> bool:
        return "cookie" in self.headers

    @property
    def is_token(self) -> bool:
        return not self.is_session and self.kind != "password"

    def session(self) -> requests.Session:
        """Returns a session that sends these headers, follows no redirects, and ignores the cookies of responses."""
        session = _Unredirected()
        session.trust_env = False
        session.headers.update(self.headers)
        session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        return session


class _Unredirected(requests.Session):
    def request(self, *arguments: Any, **options: Any) -> requests.Response:
        return super().request(*arguments, **{**options, "allow_redirects": False})


class People:
    """A server with an identity provider and an issuer of identity tokens, and its users."""

    def __init__(self, served: World, provider: Provider, issuer: Issuer, directory: Path):
        self.served = served
        self.url = served.url
        self.provider = provider
        self._issuer = issuer
        self._directory = directory

    def unlink(self, user: str) -> None:
        self.served.command("unlink", user, self.provider.url, _subject(user))

    def known(self, kind: str, user: str) -> Credentials:
        """Authenticates a user in one of `KINDS`, and checks that the server knows the user."""
        credentials = Credentials(kind, KINDS[kind](self, user))
        answer = self.current(credentials)
        assert answer.status_code == 200 and answer.json()["user"]["username"] == user, (kind, answer.text)
        return credentials

    def current(self, credentials: Credentials) -> requests.Response:
        return credentials.session().get(f"{self.url}{V2}/users/current", timeout=_TIMEOUT_SECONDS)

    def session_of_password(self, user: str) -> dict[str, str]:
        browser = self.served.browser()
        answer = browser.sign_in_with_password(user)
        assert answer.status_code == 303, alert(answer)
        return _cookies(browser)

    def session_of_provider(self, user: str) -> dict[str, str]:
        browser = self.served.browser()
        answer = browser.sign_in(self.provider, "Mock", _subject(user))
        assert answer.status_code == 303, alert(answer)
        return _cookies(browser)

    def token(self, user: str) -> str:
        """Creates a token on the server's machine, and returns it."""
        place = ("--dynamodb-endpoint", self.served.engine.url)
        command = [str(binary()), "token", "create", user, "of the test", *place]
        environment = child_environment(**self.served.engine.environment)
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def login(self, user: str) -> dict[str, str]:
        """Returns the token of `mlflow-serverless login` with a browser on the same machine."""
        home = self._directory / user
        home.mkdir(exist_ok=True)
        laptop = Laptop(home)
        code, _, errors = laptop.run("login", self.url, BROWSER=laptop.browser(user))
        assert code == 0, errors
        code, token, errors = laptop.run("login", "--print", self.url)
        assert code == 0, errors
        return _bearer(token.strip())

    def device_login(self, user: str) -> dict[str, str]:
        """Returns the token of a login with a code."""
        begun = self._oauth("device", {"client_name": "device"})
        browser = ScriptedBrowser(user, PASSWORD)
        browser.enter(browser.open(f"{self.url}/login"), begun["user_code"])
        taken = self._oauth("token", {"grant_type": _DEVICE_CODE, "device_code": begun["device_code"]})
        return _bearer(taken["access_token"])

    def exchanged(self, user: str) -> dict[str, str]:
        """Returns a token for which a machine has exchanged the identity token of its platform."""
        token = self._issuer.token(self.url, sub=f"job-of-{user}")
        form = {"grant_type": _EXCHANGE, "subject_token": token, "subject_token_type": _JWT}
        return _bearer(self._oauth("token", form)["access_token"])

    def _oauth(self, path: str, form: dict[str, str]) -> dict[str, Any]:
        answer = requests.post(f"{self.url}/oauth/{path}", form, timeout=_TIMEOUT_SECONDS)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def set_past(self, user: str, rows: str, attribute: str) -> None:
        """Moves a time of a user's rows into the past. `rows` is a prefix of their sort keys."""
        client = self.served.engine.client()
        found = client.query(
            TableName=_ACCESS_TABLE,
            KeyConditionExpression="PK = :user AND begins_with(SK, :rows)",
            ExpressionAttributeValues={":user": {"S": f"USER#{user}"}, ":rows": {"S": rows}},
        )["Items"]
        assert found and all(attribute in item for item in found), (user, rows, found)
        for item in found:
            client.update_item(
                TableName=_ACCESS_TABLE,
                Key={"PK": item["PK"], "SK": item["SK"]},
                UpdateExpression="SET #attribute = :time",
                ExpressionAttributeNames={"#attribute": attribute},
                ExpressionAttributeValues={":time": {"N": str(int(time.time()) - 1)}},
            )


#: Functions that return the headers of a user, by the kind of identity.
KINDS: dict[str, Callable[[People, str], dict[str, str]]] = {
    "password": lambda people, user: _basic(user, PASSWORD),
    "session opened with the password": People.session_of_password,
    "session opened at the provider": People.session_of_provider,
    "token": lambda people, user: _bearer(people.token(user)),
    "token in place of the password": lambda people, user: _basic(user, people.token(user)),
    "token of a login": People.login,
    "token of a login with a code": People.device_login,
    "token of a machine": People.exchanged,
}


@contextmanager
def people(directory: Path, users: list[str], administrators: list[str], *options: str) -> Iterator[People]:
    """Starts a server, a provider and an issuer, and creates these users. Each has a password, an identity at the
    provider, and a machine that acts as the user.
    """
    provider, issuer = Provider(), Issuer()
    with ExitStack() as stops:
        stops.enter_context(provider.running())
        stops.enter_context(issuer.running())
        served = stops.enter_context(world(directory, *options))
        served.set_secret("mock", "any")
        everyone = [*users, *administrators]
        each(lambda user: served.command("create", user), administrators)
        for user in users:
            served.admin("POST", f"{V2}/users/create", {"username": user, "password": PASSWORD})
        rules = "".join(_MACHINE.format(user=user, issuer=issuer.url, server=served.url) for user in everyone)
        served.configure(provider_text(provider) + rules)
        each(lambda user: served.command("link", user, provider.url, _subject(user)), everyone)
        yield People(served, provider, issuer, directory)


def each(function: Callable[[Any], Any], arguments: Sequence[Any]) -> list[Any]:
    """Calls a function with each of the arguments concurrently, and returns the results in their order."""
    with ThreadPoolExecutor(_CONCURRENCY) as pool:
        return list(pool.map(function, arguments))


def _subject(user: str) -> str:
    return f"{user}@example.com"


def _cookies(browser: Browser) -> dict[str, str]:
    return {"cookie": "; ".join(f"{cookie.name}={cookie.value}" for cookie in browser.session.cookies), **OWN_PAGE}


def _bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def _basic(user: str, password: str) -> dict[str, str]:
    return {"authorization": f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"}
