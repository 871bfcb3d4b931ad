"""An experiment's artifact location cannot refer to artifacts of others, regardless of how it is
written.

The tests use `serve`, which stores artifacts in a directory, and the functions, which store them in
a bucket.
"""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import requests

from tests.clients.test_users import Deployed
from tests.clients.test_users import deployed as deployed  # noqa: PLC0414
from tests.support.servers import ServerlessMlflow
from tests.users.test_clients import Site
from tests.users.world import ADMIN, PASSWORD, V2, V3

#: All tests run in one process, so that the functions start only once.
pytestmark = pytest.mark.xdist_group("clients of users behind gateways")


@dataclass
class Place:
    """A server with an experiment of the administrator that has a run, a user without any grant,
    and a user who may change the experiment.
    """

    url: str
    #: The server's artifact storage, as a local path or as a URI of the bucket.
    root: str
    experiment: str = ""
    run: str = ""
    stranger: str = ""
    editor: str = ""

    def ask(self, user: str, path: str, body: dict) -> requests.Response:
        return requests.post(f"{self.url}{path}", json=body, auth=(user, PASSWORD), timeout=300)

    def change(self, path: str, body: dict) -> dict:
        answer = self.ask(ADMIN, path, body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def user(self) -> str:
        name = f"u-{uuid.uuid4().hex[:8]}"
        self.change(f"{V2}/users/create", {"username": name, "password": PASSWORD})
        return name

    def furnish(self) -> None:
        self.experiment = self.change(f"{V2}/experiments/create", {"name": uuid.uuid4().hex})["experiment_id"]
        self.run = self.change(f"{V2}/runs/create", {"experiment_id": self.experiment})["run"]["info"]["run_id"]
        self.stranger, self.editor = self.user(), self.user()
        grant = {"username": self.editor, "resource_type": "experiment", "resource_id": self.experiment, "permission": "EDIT"}
        self.change(f"{V3}/users/permissions/grant", grant)

    def create(self, user: str, location: str) -> requests.Response:
        return self.ask(user, f"{V2}/experiments/create", {"name": uuid.uuid4().hex, "artifact_location": location})

    def own(self, kind: str) -> list[str]:
        """Returns locations of this kind in the directory of the experiment. Its id is also
        percent-encoded in places where it is decoded.
        """
        number = self.experiment
        encoded = "".join(f"%{ord(digit):02x}" for digit in number)
        twice = encoded.replace("%", "%25")
        if kind == "proxied":
            paths = (number, encoded, twice, f"./{number}", f"%2e/{number}", f"{number}/{self.run}/artifacts", f"{encoded}/traces", f"{number}?x=y")
            return [f"mlflow-artifacts:/{path}" for path in paths] + [f"mlflow-artifacts:///{number}"]
        if self.root.startswith("s3://"):
            return [f"{self.root}/{number}", f"{self.root}/{number}/{self.run}/artifacts", f"{self.root}/{number}/"]
        return [
            f"{self.root}/{number}",
            f"{self.root}//{number}",
            f"{self.root}/./{number}",
            f"/{self.root}/{number}",
            f"file://{self.root}/{number}",
            f"file:{self.root}/{number}",
            f"file://{self.root}/{encoded}",
            f"file://{self.root}/%2e/{number}",
        ]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp("locations")
    site = Site("", directory / "server/data")
    site.command("admin", "create", ADMIN)
    options = ("--auth", "basic", "--no-ui", "--default-permission", "NO_PERMISSIONS")
    server = ServerlessMlflow(directory / "server", options=options, artifact_root="mlflow-artifacts:/")
    try:
        yield Place(server.url, str(directory / "server/data/artifacts"))
    finally:
        server.stop()


@pytest.fixture(scope="module")
def behind_functions(deployed: Deployed) -> Place:
    return Place(deployed.users, deployed.settings["ARTIFACTS_DESTINATION"])


@pytest.fixture(scope="module", params=["served", "behind_functions"])
def place(request: pytest.FixtureRequest) -> Place:
    place = request.getfixturevalue(request.param)
    place.furnish()
    return place


@pytest.mark.parametrize("kind", ["proxied", "direct"])
def test_a_location_in_an_experiment_is_for_those_who_may_change_it(kind: str, place: Place) -> None:
    for location in place.own(kind):
        refused = place.create(place.stranger, location)
        assert (refused.status_code, "artifact_location is in the server's artifact storage" in refused.text) == (403, True), (location, refused.text)
        assert place.create(place.editor, location).status_code == 200, location
    grant = {"username": place.editor, "resource_type": "trace", "resource_id": "*", "permission": "DENY"}
    place.change(f"{V3}/users/permissions/grant", grant)
    try:
        for location in place.own(kind):
            assert place.create(place.editor, location).status_code == 403, location
    finally:
        place.change(f"{V3}/users/permissions/revoke", {name: value for name, value in grant.items() if name != "permission"})


@pytest.mark.parametrize("path", ["name", "", "007", "team/1", "workspaces", "model-versions-2"])
def test_a_location_in_no_experiment_is_for_administrators(path: str, place: Place) -> None:
    # The owner of the experiment would not be able to write files there.
    for root in ("mlflow-artifacts:", place.root):
        for user in (place.stranger, place.editor):
            refused = place.create(user, f"{root}/{path}")
            assert (refused.status_code, "Omit artifact_location" in refused.text) == (403, True), (root, refused.text)
        assert place.create(ADMIN, f"{root}/{path}").status_code == 200, root


@pytest.mark.parametrize(
    "location",
    [
        "mlflow-artifacts:/../1",
        "mlflow-artifacts:/1/%2e%2e/2",
        "mlflow-artifacts:/1/%252e%252e/2",
        "mlflow-artifacts:/a\\b",
        "mlflow-artifacts:/model-versions/bQ/1",
        "MLFLOW-ARTIFACTS:/1",
        "mlflow-artifacts://another.host/1",
        "mlflow-artifacts:/1#x",
    ],
)
def test_a_location_that_the_server_could_not_resolve_is_refused(location: str, place: Place) -> None:
    for user in (place.stranger, ADMIN):
        assert place.create(user, location).status_code == 400, user


def test_locations_elsewhere_are_taken(place: Place) -> None:
    elsewhere = ["s3://another-bucket/x", "gs://bucket/x", "/somewhere/else", f"{place.root}-2/1", f"{place.root}/../x", ""]
    for location in elsewhere:
        assert place.create(place.stranger, location).status_code == 200, location
