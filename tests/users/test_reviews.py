"""Who owns review queues, who reviews their items, and who sees them, on both servers."""

from collections.abc import Iterator

import pytest

from tests.users.world import ADMIN, PASSWORD, V2, V3, Server, both, furnish

QUEUES = f"{V3}/review-queues"


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server]]:
    with both(tmp_path_factory.mktemp("reviews"), "NO_PERMISSIONS") as pair:
        for server in pair:
            furnish(server)
            for name, level in (("ann", "EDIT"), ("bob", "READ"), ("carol", "EDIT"), ("max", "MANAGE")):
                _administer(server, f"{V2}/users/create", {"username": name, "password": PASSWORD})
                granted = {"username": name, "resource_type": "experiment", "resource_id": "$experiment1", "permission": level}
                _administer(server, f"{V3}/users/permissions/grant", granted)
        yield pair


def _administer(server: Server, path: str, content: dict) -> None:
    answer = server.ask(ADMIN, "POST", path, content)
    assert answer.status_code == 200, f"{path}: {answer.text}"


def _queue(server: Server, user: str, name: str, **more) -> dict:
    new = {"experiment_id": "$experiment1", "name": name, "queue_type": "CUSTOM", **more}
    answer = server.ask(user, "POST", f"{QUEUES}/create", new)
    assert answer.status_code == 200, answer.text
    queue = answer.json()["review_queue"]
    server.ids[name] = queue["queue_id"]
    return queue


def test_attribution_is_the_callers(servers: tuple[Server, Server]) -> None:
    for server in servers:
        queue = _queue(server, "ann", "attributed", created_by="max", users=["ann"])
        assert queue["created_by"] == "ann"
        _administer(server, f"{QUEUES}/items/add", {"queue_id": "$attributed", "item_ids": ["$trace1"]})
        status = {"queue_id": "$attributed", "item_id": "$trace1", "status": "COMPLETE", "completed_by": "max"}
        answer = server.ask("ann", "POST", f"{QUEUES}/items/set-status", status)
        assert answer.json()["item"]["completed_by"] == "ann", answer.text
    # In MLflow, this holds from 3.18 on.
    issue = {"experiment_id": "$experiment1", "name": "n", "description": "d", "created_by": "max"}
    assert servers[1].ask("ann", "POST", f"{V3}/issues", issue).json()["issue"]["created_by"] == "ann"


def test_rights_follow_owners_and_members(servers: tuple[Server, Server]) -> None:
    requests = [
        ("GET", "get", {}),
        ("GET", "items/list", {}),
        ("POST", "update", {"update_users": True, "users": ["bob", "carol"]}),
        ("POST", "update", {"new_owner": "ann"}),
        ("POST", "items/add", {"item_ids": ["$trace1"]}),
        ("POST", "items/set-status", {"item_id": "$trace1", "status": "DECLINED"}),
        ("POST", "items/remove", {"item_ids": ["$trace1"]}),
    ]
    decisions = []
    for server in servers:
        _queue(server, "ann", "shared queue", users=["bob", "carol"])
        server.ids["shared"] = server.ids["shared queue"]
        _administer(server, f"{QUEUES}/items/add", {"queue_id": "$shared", "item_ids": ["$trace1"]})
        decided = {}
        for user in ("ann", "bob", "carol", "max", ADMIN):
            for index, (method, path, content) in enumerate(requests):
                answer = server.ask(user, method, f"{QUEUES}/{path}", {"queue_id": "$shared", **content})
                decided[user, index, path] = answer.status_code
        decisions.append(decided)
    assert decisions[0] == decisions[1]
    assert {200, 403} <= set(decisions[0].values())


def test_readers_list_the_queues_that_are_assigned_to_them(servers: tuple[Server, Server]) -> None:
    for server in servers:
        _queue(server, "max", "of bob", users=["bob"])
        _queue(server, "max", "of carol", users=["carol"])

        def listed(user: str, server: Server = server) -> set[str]:
            answer = server.ask(user, "GET", f"{QUEUES}/list", {"experiment_id": "$experiment1"})
            return {queue["name"] for queue in answer.json().get("review_queues", [])}

        assert {"of bob"} <= listed("bob") and "of carol" not in listed("bob")
        assert {"of bob", "of carol"} <= listed("ann") and {"of bob", "of carol"} <= listed("max")


def test_names_of_users_are_reserved(servers: tuple[Server, Server]) -> None:
    for server in servers:
        new = {"experiment_id": "$experiment1", "queue_type": "CUSTOM"}
        for user in ("ann", ADMIN):
            for name in ("carol", " Carol "):
                answer = server.ask(user, "POST", f"{QUEUES}/create", {**new, "name": name})
                assert answer.status_code == 400, answer.text
                assert answer.json()["message"].startswith("'carol' is a registered user."), answer.text
        _queue(server, "ann", "to be renamed")
        server.ids["renamed"] = server.ids["to be renamed"]
        answer = server.ask("ann", "POST", f"{QUEUES}/update", {"queue_id": "$renamed", "name": "BOB"})
        assert answer.json()["message"].startswith("'bob' is a registered user."), answer.text
