"""One request to every route by the same person, known by each kind of identity: the responses do not depend on
the kind. Identities that are no longer valid are refused at every route that requires sign-in.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
import requests

from tests.sign_on.identities import KINDS, Credentials, People, each, people
from tests.sign_on.route_samples import GROUPS, OWN, SHARED, UNDO, Visitor, route_of, routes
from tests.support.processes import wait_until
from tests.users.routes import Asked
from tests.users.world import ADMIN, V2, V3, Server, furnish

#: One process runs all tests, so that the server starts only once.
pytestmark = pytest.mark.xdist_group("identity-kinds")

USER, ADMINISTRATOR = "ann", "boss"
#: The kinds that every run covers. The slow tests cover the others, too, which are tokens sent or issued in another way.
_FEW_KINDS = [kind for kind in KINDS if kind not in ("token in place of the password", "token of a login")]
_PAGES = ("/", "/tokens", "/signup", "/login")

_DIRECT = [("experiment", "$experiment1", "EDIT"), ("registered_model", "model1", "MANAGE"), ("prompt", "prompt1", "READ")]
_OF_ROLE = [("workspace", "*", "USE"), ("scorer", "*", "READ"), ("experiment", "$experiment2", "READ")]


class Exemption(NamedTuple):
    """A route whose response depends on the kind of identity: the kinds, their status, and the reason."""

    applies: Callable[[Credentials], bool]
    status: int
    reason: str


def _is_session(credentials: Credentials) -> bool:
    return credentials.is_session


def _is_token(credentials: Credentials) -> bool:
    return credentials.is_token


_NO_TOKENS = "a token must not create another one, which could outlive it"
#: The routes at which some kinds get another response than the password.
EXEMPTIONS = {
    ("GET", "/signin"): Exemption(_is_session, 303, "a browser that is signed in is redirected to the page"),
    ("POST", "/ajax-api/2.0/mlflow/users/renew-session"): Exemption(_is_session, 200, "only sessions can be renewed"),
    ("GET", "/tokens"): Exemption(_is_token, 403, _NO_TOKENS),
    ("POST", "/tokens"): Exemption(_is_token, 403, _NO_TOKENS),
    ("GET", "/login"): Exemption(_is_token, 403, _NO_TOKENS),
    ("POST", "/login"): Exemption(_is_token, 403, _NO_TOKENS),
}


class Response(NamedTuple):
    """What is compared of a response. `body` is empty if it may differ between callers."""

    status: int
    error_code: str | None
    location: str | None
    body: str = ""


def _of(answer: requests.Response, body: str = "") -> Response:
    return Response(answer.status_code, _error_code(answer), answer.headers.get("location"), body)


def _error_code(answer: requests.Response) -> str | None:
    """Returns the error code of MLflow's API, or of an OAuth endpoint."""
    if answer.headers.get("content-type", "").partition(";")[0] != "application/json" or answer.status_code < 400:
        return None
    content = answer.json()
    return content.get("error_code") or content.get("error") if isinstance(content, dict) else None


class Party:
    """The people of these tests with their entities."""

    def __init__(self, people: People):
        self.people = people
        self.entities = Server(people.url)
        furnish(self.entities)
        self._grant()
        self._known: dict[tuple[str, str], Credentials] = {}

    def known(self, user: str, kinds: Sequence[str]) -> list[Credentials]:
        """Returns identities of a person, which are authenticated at the first call."""
        missing = [kind for kind in kinds if (user, kind) not in self._known]
        for kind, credentials in zip(missing, each(lambda kind: self.people.known(kind, user), missing), strict=True):
            self._known[user, kind] = credentials
        return [self._known[user, kind] for kind in kinds]

    def _grant(self) -> None:
        for kind, resource, level in _DIRECT:
            granted = {"username": USER, "resource_type": kind, "resource_id": resource, "permission": level}
            self.administer("POST", f"{V3}/users/permissions/grant", granted)
        made = self.administer("POST", f"{V3}/roles/create", {"name": "team", "workspace": "default"})
        role = {"role_id": made["role"]["id"]}
        for kind, pattern, level in _OF_ROLE:
            granted = {**role, "resource_type": kind, "resource_pattern": pattern, "permission": level}
            self.administer("POST", f"{V3}/roles/permissions/add", granted)
        self.administer("POST", f"{V3}/roles/assign", {**role, "username": USER})

    def administer(self, method: str, path: str, content: Any) -> Any:
        answer = self.entities.ask(ADMIN, method, path, content)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def visitors(self, user: str, kinds: Sequence[str], walk: str) -> list[tuple[Credentials, Visitor]]:
        """Returns a visitor for each identity of a person. `walk` is a prefix of the names of their own entities."""
        return [
            (credentials, self._visitor(user, credentials, f"{walk}-{user}-{index}"))
            for index, credentials in enumerate(self.known(user, kinds))
        ]

    def _visitor(self, user: str, credentials: Credentials, own: str) -> Visitor:
        return Visitor(self.people.url, {**self.entities.ids, "own": own, "caller": user}, credentials.session())


@pytest.fixture(scope="module")
def party(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Party]:
    directory = tmp_path_factory.mktemp("identity-kinds")
    options = ("--default-permission", "NO_PERMISSIONS", "--workspaces")
    with people(directory, [USER], [ADMINISTRATOR, *_REFUSED, *_REFUSED_SLOWLY], *options) as running:
        yield Party(running)


def _differences(asked: Asked, responses: list[tuple[Credentials, Response]]) -> Iterator[str]:
    """Yields the kinds of identity that get another response than the password, without an exemption."""
    exemption = EXEMPTIONS.get(route_of(asked))
    _, expected = responses[0]
    for credentials, response in responses[1:]:
        if exemption and exemption.applies(credentials):
            is_same = response.status == exemption.status != expected.status
        else:
            is_same = response == expected
        if not is_same:
            yield f"{asked.method} {asked.path} {asked.content}: {credentials.kind} {response}, password {expected}"


def _walk_own(party: Party, user: str, kinds: Sequence[str], walk: str) -> list[str]:
    """Sends requests concurrently by all identities of a person, each to entities of its own. Returns the
    differences.
    """

    def walk_group(of_group: tuple[int, int]) -> list[tuple[Credentials, Response]]:
        number, index = of_group
        credentials, visitor = party.visitors(user, kinds, f"{walk}-{number}")[index]
        GROUPS[number].furnish(Server(visitor.url, visitor.ids))
        return [(credentials, _of(visitor.visit(asked))) for asked in GROUPS[number].requests]

    indexes = range(len(kinds))
    walked = iter(each(walk_group, [(number, index) for number in range(len(GROUPS)) for index in indexes]))
    different = []
    for group in GROUPS:
        rows = zip(*[next(walked) for _ in indexes], strict=True)
        different += [found for asked, row in zip(group.requests, rows, strict=True) for found in _differences(asked, list(row))]
    return different


def _walk_shared(party: Party, user: str, kinds: Sequence[str], samples: list[Asked]) -> list[str]:
    """Sends each request by all identities of a person, one after another, to the same entities. Returns the
    differences. Another identity is the first for each request, so that none profits from the order.
    """
    visitors = party.visitors(user, kinds, "shared")
    different = []
    for number, asked in enumerate(samples):
        first = number % len(visitors)
        row = {
            index: _visit_shared(party, asked, visitors[index])
            for index in [*range(first, len(visitors)), *range(first)]
        }
        different += _differences(asked, [row[index] for index in range(len(visitors))])
    return different


def _visit_shared(party: Party, asked: Asked, identity: tuple[Credentials, Visitor]) -> tuple[Credentials, Response]:
    credentials, visitor = identity
    number = uuid4().hex
    visitor.ids |= {"unique": f"new-{number}", "number": number}
    if made := asked.made:
        Server(visitor.url, visitor.ids, party.entities.session).make("fresh", "POST", made.path, made.content, *made.pointer)
    answer = visitor.visit(asked)
    for path, undo in UNDO.items():
        if asked.path.endswith(path) and answer.status_code == 200:
            party.administer("POST", asked.path.replace(path, undo), asked.content)
    # All identities have sent the request to the same data.
    reads = asked.method == "GET" or asked.path.endswith(("/search", "/graphql", "/batchGetInfos"))
    return credentials, _of(answer, answer.text if reads and not asked.made and not _is_dated(asked) else "")


def _is_dated(asked: Asked) -> bool:
    """Returns whether the response contains a signature with a time."""
    return "presigned" in asked.path


def _one_per_route(samples: list[Asked]) -> list[Asked]:
    """Returns the first of the requests to each route."""
    return list({route_of(asked): asked for asked in reversed(samples)}.values())[::-1]


def _of_shared_routes(samples: list[Asked]) -> list[Asked]:
    own = {route_of(asked) for asked in OWN}
    return [asked for asked in samples if route_of(asked) not in own]


def test_each_route_is_among_the_requests() -> None:
    assert len(routes()) > 250
    assert {route_of(asked) for asked in [*OWN, *SHARED]} == set(routes())
    assert set(EXEMPTIONS) <= set(routes())


def test_responses_do_not_depend_on_the_kind_of_identity(party: Party) -> None:
    """One request to each route, by the user and by the administrator."""
    different = _walk(party, _FEW_KINDS, _one_per_route(_of_shared_routes(SHARED)))
    assert not different, f"{len(different)}:\n" + "\n".join(different)


@pytest.mark.slow
def test_no_request_depends_on_the_kind_of_identity(party: Party) -> None:
    """All requests, with all spellings of entities, by all kinds."""
    different = _walk(party, list(KINDS), SHARED)
    assert not different, f"{len(different)}:\n" + "\n".join(different)


def _walk(party: Party, kinds: Sequence[str], shared: list[Asked]) -> list[str]:
    people = (USER, ADMINISTRATOR)
    for user in people:
        party.known(user, kinds)
    # Each change of a user waits for a lease. The other requests are sent in the meantime.
    with ThreadPoolExecutor(len(people)) as pool:
        own = [pool.submit(_walk_own, party, user, kinds, f"own-{len(kinds)}") for user in people]
        different = [found for user in people for found in _walk_shared(party, user, kinds, shared)]
        return different + [found for walked in own for found in walked.result()]


def test_the_walk_distinguishes_the_user_from_the_administrator(party: Party) -> None:
    """Checks that the grants of the user allow some of the requests and refuse others."""
    statuses = defaultdict(set)
    for user in (USER, ADMINISTRATOR):
        _, visitor = party.visitors(user, ["password"], "both")[0]
        for asked in SHARED:
            if asked.method == "GET" and not asked.made:
                statuses[user].add((asked.path, visitor.visit(asked).status_code))
    refused = {path for path, status in statuses[USER] if status == 403}
    allowed = {path for path, status in statuses[USER] if status == 200}
    assert len(refused) > 20 and len(allowed) > 20, (refused, allowed)
    assert not [path for path, status in statuses[ADMINISTRATOR] if status in (401, 403)]


def _expire(people: People, user: str) -> None:
    people.set_past(user, "U#SESSION#", "ttl")


def _make_overdue(people: People, user: str) -> None:
    people.set_past(user, "U#SESSION#", "renew_by")


def _end_confirmation(people: People, user: str) -> None:
    people.known("session opened at the provider", user)
    people.set_past(user, "U#META", "confirmed_until")


def _disable(people: People, user: str) -> None:
    people.served.command("disable", user)


class Refused(NamedTuple):
    """How identities of a user become invalid, the kinds of these identities, and kinds that remain valid."""

    end: Callable[[People, str], None]
    kinds: list[str]
    remaining: list[str]


_TOKENS = [kind for kind in KINDS if kind.startswith("token") and kind != "token of a machine"]
#: Names of administrators, each of whom becomes invalid in another way. A request that is not refused succeeds.
_REFUSED = {
    "expired": Refused(_expire, ["session opened with the password", "session opened at the provider"], ["password", "token"]),
    "overdue": Refused(_make_overdue, ["session opened at the provider"], ["password", "token"]),
    "unlinked": Refused(People.unlink, ["session opened at the provider"], ["password", "session opened with the password"]),
    "unconfirmed": Refused(_end_confirmation, ["token"], ["password", "token of a machine"]),
    "disabled": Refused(_disable, ["password", "session opened at the provider", "token", "token of a machine"], []),
}
_REFUSED_SLOWLY = {
    "unconfirmed-all": Refused(_end_confirmation, _TOKENS, ["session opened at the provider", "token of a machine"]),
    "disabled-all": Refused(_disable, list(KINDS), []),
}


@pytest.mark.parametrize("user", list(_REFUSED))
def test_every_route_refuses_an_identity_that_is_not_valid(party: Party, user: str) -> None:
    """Sends a request to each route that requires sign-in. Pages redirect to the sign-in page."""
    _check_refusals(party, user, _REFUSED[user])


@pytest.mark.slow
@pytest.mark.parametrize("user", list(_REFUSED_SLOWLY))
def test_every_route_refuses_all_kinds_of_identities(party: Party, user: str) -> None:
    _check_refusals(party, user, _REFUSED_SLOWLY[user])


def _check_refusals(party: Party, user: str, refused: Refused) -> None:
    people = party.people
    known, remaining = party.known(user, refused.kinds), party.known(user, refused.remaining)
    refused.end(people, user)
    process = people.served.server.process
    wait_until(lambda: all(people.current(credentials).status_code == 401 for credentials in known), "refusal", process)
    assert [people.current(credentials).status_code for credentials in remaining] == [200] * len(remaining)
    is_open = routes()
    samples = [asked for asked in _one_per_route([*OWN, *SHARED]) if not is_open[route_of(asked)]]
    assert len(samples) > 240
    accepted = each(lambda credentials: _accepted(party, user, credentials, samples), known)
    assert not any(accepted), "\n".join(sum(accepted, []))


def _accepted(party: Party, user: str, credentials: Credentials, samples: list[Asked]) -> list[str]:
    """Returns the requests that are not refused as they should be."""
    ids = {**party.entities.ids, "caller": user, **dict.fromkeys(("own", "unique", "fresh", "number"), "missing")}
    visitor = Visitor(party.people.url, ids, credentials.session())
    found = []
    for asked in samples:
        answer = visitor.visit(asked)
        if asked.method == "GET" and asked.path in _PAGES:
            is_refused = answer.status_code == 303 and answer.headers["location"].startswith("/signin")
        else:
            is_refused = answer.status_code == 401 and answer.text.startswith("You are not authenticated.")
        renewal = answer.headers.get("mlflow-session")
        if not is_refused or renewal != ("renew" if user == "overdue" else None):
            found.append(f"{credentials.kind}: {asked.method} {asked.path}: {answer.status_code}, renewal {renewal}: {answer.text[:100]}")
    return found
