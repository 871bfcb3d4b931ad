"""Users of MLflow's basic authentication are imported with their roles and grants."""

import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.support.servers import ServerlessMlflow, binary
from tests.transfer import rows, schemas
from tests.transfer.commands import run
from tests.transfer.conftest import KINDS
from tests.transfer.schemas import SchemaTemplates

_PASSWORD = "correct horse battery"
_ADMINISTRATOR = "root"


@pytest.fixture
def database(tmp_path: Path) -> str:
    """Returns the URL of a SQLite database with users, as MLflow writes it."""
    return _fill(f"sqlite:///{tmp_path / 'basic_auth.db'}")


def _fill(url: str) -> str:
    """Creates users in an empty database, and returns its URL."""
    from mlflow.server.auth.sqlalchemy_store import SqlAlchemyStore

    store = SqlAlchemyStore()
    store.init_db(url)
    for name, is_admin in (("chief", True), ("ann", False), ("bob", False), ("bad:name", False)):
        store.create_user(name, _PASSWORD, is_admin=is_admin)
    store.grant_user_permission("ann", "experiment", "1", "EDIT")
    store.grant_user_permission("ann", "registered_model", "*", "READ")
    store.grant_user_permission("ann", "experiment", "987654", "MANAGE")
    store.set_workspace_permission("default", "bob", "USE")
    role = store.create_role("readers", "default", "Read everything")
    store.add_role_permission(role.id, "experiment", "*", "READ")
    store.add_role_permission(role.id, "prompt", "greeting", "USE")
    elsewhere = store.create_role("missing", "nowhere")
    for name in ("ann", "bob"):
        store.assign_role_to_user(store.get_user(name).id, role.id)
    store.assign_role_to_user(store.get_user("bob").id, elsewhere.id)
    store.engine.dispose()
    return url


@contextmanager
def _served(directory: Path) -> Iterator[ServerlessMlflow]:
    """Yields a server for users with an administrator."""
    create = [str(binary()), "admin", "create", _ADMINISTRATOR, "--data", str(directory / "data")]
    subprocess.run(create, input=f"{_PASSWORD}\n", text=True, check=True, capture_output=True)
    options = ["--auth", "basic", "--default-permission", "NO_PERMISSIONS", "--no-ui", "--artifacts-past-users"]
    server = ServerlessMlflow(directory, options=options)
    try:
        yield server
    finally:
        server.stop()


def _get(server: ServerlessMlflow, path: str, **query: str) -> Any:
    answer = requests.get(f"{server.url}/api/{path}", query, auth=(_ADMINISTRATOR, _PASSWORD), timeout=30)
    assert answer.status_code == 200, (path, answer.text)
    return answer.json()


def _grants(server: ServerlessMlflow, name: str) -> set[tuple[str, str, str]]:
    permissions = _get(server, "3.0/mlflow/users/permissions/list", username=name)["permissions"]
    return {(grant["resource_type"], grant["resource_pattern"], grant["permission"]) for grant in permissions}


# MLflow itself cannot create the tables of users in MariaDB.
@pytest.mark.parametrize("kind", KINDS[:2])
def test_users_have_their_roles_and_grants_and_no_password(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> None:
    templates: SchemaTemplates = request.getfixturevalue(kind)
    source, database = templates.create(schemas.INSTALLED), _fill(templates.create_empty())
    schemas.fill(source, rows.tracking(with_long_ids=False))
    command = ["import", "--from", source, "--users-from", database, "--data", tmp_path / "data"]
    first = subprocess.run([binary(), *map(str, command)], capture_output=True, text=True, check=False)
    # The workspace `nowhere` does not exist, and a colon separates names from passwords.
    assert "2 entities were not imported, and 0 differ" in first.stderr
    assert "users: 3 imported" in first.stdout
    assert "users: 1 not imported" in first.stdout and "bad:name" in first.stdout
    assert "roles: 1 imported" in first.stdout and "missing in workspace nowhere" in first.stdout
    with _served(tmp_path) as server:
        users = {user["username"]: user["is_admin"] for user in _get(server, "2.0/mlflow/users/list")["users"]}
        assert users == {"chief": True, "ann": False, "bob": False, _ADMINISTRATOR: True}
        shared = {("experiment", "*", "READ"), ("prompt", "greeting", "USE")}
        own = {("experiment", "1", "EDIT"), ("registered_model", "*", "READ"), ("experiment", "987654", "MANAGE")}
        assert _grants(server, "ann") == own | shared
        assert _grants(server, "bob") == {("workspace", "*", "USE")} | shared
        refused = requests.get(f"{server.url}/api/2.0/mlflow/experiments/get?experiment_id=1", auth=("ann", _PASSWORD), timeout=30)
        assert refused.status_code == 401
        changed = requests.patch(
            f"{server.url}/api/2.0/mlflow/users/update-password",
            json={"username": "ann", "password": _PASSWORD},
            auth=(_ADMINISTRATOR, _PASSWORD),
            timeout=30,
        )
        assert changed.status_code == 200, changed.text
        tagged = requests.post(
            f"{server.url}/api/2.0/mlflow/experiments/set-experiment-tag",
            json={"experiment_id": "1", "key": "k", "value": "v"},
            auth=("ann", _PASSWORD),
            timeout=30,
        )
        assert tagged.status_code == 200, tagged.text
        before = _get(server, "3.0/mlflow/roles/list")
    again = subprocess.run([binary(), *map(str, command)], capture_output=True, text=True, check=False)
    assert "users: 3 left alone, exist here already: chief, ann, bob" in again.stdout
    assert "roles: 1 left alone, exist here already: readers in workspace default" in again.stdout
    server = ServerlessMlflow(tmp_path, options=["--auth", "basic", "--no-ui", "--artifacts-past-users"])
    assert _get(server, "3.0/mlflow/roles/list") == before
    server.stop()


def test_users_alone_can_be_imported(database: str, tmp_path: Path) -> None:
    dry = run("import", "--users-from", database, "--data", tmp_path / "data", "--dry-run")
    assert "users: 4 to import" in dry
    done = run("import", "--users-from", database, "--data", tmp_path / "data", fails=True)
    assert "2 entities were not imported" in done
    with _served(tmp_path) as server:
        assert len(_get(server, "2.0/mlflow/users/list")["users"]) == 4


def test_other_layouts_are_refused(database: str, tmp_path: Path) -> None:
    file = database.removeprefix("sqlite:///")

    def refused(version: str) -> str:
        with sqlite3.connect(file) as connection:
            connection.execute("UPDATE alembic_version_auth SET version_num = ?", (version,))
        return run("import", "--users-from", database, "--data", tmp_path / "data", fails=True)

    assert "python -m mlflow.server.auth db upgrade" in refused("2ed73881770d")
    assert "Use a later version of mlflow-serverless" in refused("ffffffffffff")
    with sqlite3.connect(file) as connection:
        connection.execute("DROP TABLE alembic_version_auth")
    done = run("import", "--users-from", database, "--data", tmp_path / "data", fails=True)
    assert "has no tables of MLflow's basic authentication" in done
    assert not (tmp_path / "data").exists()
