"""Tests the import and export of skills, webhooks, and the fields of issues that only MLflow 3.18 has."""

import json
import os
import sqlite3
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import requests
from cryptography.fernet import Fernet

from tests.support.next_release import next_release
from tests.support.servers import NextStockMlflow, ServerlessMlflow, binary, stock_database
from tests.transfer import registries, rows, schemas
from tests.transfer.commands import run
from tests.transfer.schemas import SchemaTemplates
from tests.webhooks.options import subject_options
from tests.webhooks.receiver import receiving

#: In the process that has migrated SQLite files already.
pytestmark = pytest.mark.xdist_group("transfer-sqlite")

_SKILL_TABLES = ("skills", "skill_versions", "skill_tags", "skill_version_tags", "skill_aliases")
_KEY = "MLFLOW_WEBHOOK_SECRET_ENCRYPTION_KEY"
_REVIEW = "skills/@acme/review"


@pytest.fixture
def source(sqlite: SchemaTemplates) -> str:
    """Returns a database of MLflow 3.18 with experiments, models, skills, webhooks and an issue."""
    entities = rows.everything(with_long_ids=False)
    kept = ("experiments", "registered_models", "webhooks", "webhook_events", "issues", "issue_categories", *_SKILL_TABLES)
    source = sqlite.create("3.18.0")
    schemas.fill(source, {table: entities[table] for table in kept})
    return source


def _path(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


def _rows(file: Path, tables: tuple[str, ...]) -> dict[str, list[tuple]]:
    """Returns the rows of tables, with parsed JSON. SQLAlchemy stores a missing value as JSON's null."""
    database = sqlite3.connect(file)
    found = {table: sorted(database.execute(f"SELECT * FROM {table}").fetchall(), key=repr) for table in tables}
    database.close()
    parse = lambda value: json.loads(value) if isinstance(value, str) and (value == "null" or value[:1] in ("[", "{")) else value
    return {table: [tuple(map(parse, row)) for row in entries] for table, entries in found.items()}


def _columns(file: Path) -> dict[str, Any]:
    """Returns the columns and indexes of all tables, and the version of the schema."""
    database = sqlite3.connect(file)
    names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")]
    found: dict[str, Any] = {name: {row[1:4] for row in database.execute(f'PRAGMA table_info("{name}")')} for name in names}
    found["indexes"] = {row for row in database.execute("SELECT tbl_name, name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL")}
    found["version"] = database.execute("SELECT version_num FROM alembic_version").fetchall()
    database.close()
    return found


def _import(source: str | Path, data: Path, *options: str | Path, environment: Mapping[str, str] = {}) -> tuple[int, str]:
    source = source if isinstance(source, str) else f"sqlite:///{source}"
    command = [binary(), "import", "--from", source, "--data", data, *options]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, env=os.environ | environment)
    return done.returncode, done.stdout + done.stderr


def _reads(url: str) -> dict[str, Any]:
    """Returns the responses to reads of skills and of the issue."""
    api, found = f"{url}/api/3.0/mlflow", {}
    versions = [f"{_REVIEW}/versions/{number}" for number in (1, 2, 3, 4)]
    for path in ("skills", "skills/empty", _REVIEW, f"{_REVIEW}/versions", f"{_REVIEW}/aliases/stable", *versions):
        answer = requests.get(f"{api}/{path}", timeout=60)
        found[path] = answer.status_code, answer.json()
    found["search"] = requests.get(f"{api}/skills", params={"filter_string": f"search_text LIKE '%{rows.UNICODE.split()[0]}%'"}, timeout=60).json()
    searched = {"experiment_id": "1", "categories": ["COST"]}
    found["issues"] = requests.post(f"{api}/issues/search", json=searched, timeout=60).json()
    files = requests.get(f"{url}/api/2.0/mlflow-artifacts/artifacts", params={"path": registries.CONTENT}, timeout=60)
    found["files"] = sorted(file["path"] for file in files.json()["files"])
    content = requests.get(f"{url}/api/2.0/mlflow-artifacts/artifacts/{registries.CONTENT}/SKILL.md", timeout=60)
    found["content"] = content.content.decode()
    return found


def test_rows_are_the_same_after_import_and_export(source: str, tmp_path: Path) -> None:
    status, report = _import(source, tmp_path / "data", "--check-artifacts", "--artifacts", "s3://old/mlflow=mlflow-artifacts:")
    assert status != 0 and "artifacts of skill versions: 1 missing: @acme/review version 1" in report, report
    registries.write_content(tmp_path / "data/artifacts")
    report = run("import", "--from", source, "--data", tmp_path / "data")
    assert "skills: 0 imported, 0 updated, 2 unchanged" in report and "webhooks: 0 imported, 0 updated, 2 unchanged" in report, report
    notices = run("export", "--to", tmp_path / "export.db", "--data", tmp_path / "data")
    assert "The file requires MLflow 3.18, because earlier versions have no skills, and issues have metadata" in notices, notices
    assert _columns(tmp_path / "export.db") == _columns(_path(source))
    tables = (*_SKILL_TABLES, "issues", "issue_categories")
    assert _rows(tmp_path / "export.db", tables) == _rows(_path(source), tables)
    report = run("import", "--from", f"sqlite:///{tmp_path}/export.db", "--data", tmp_path / "data")
    assert " imported" not in report.replace(" 0 imported", ""), report

    server = ServerlessMlflow(tmp_path)
    found = _reads(server.url)
    # Version 4 is deleted, and its number is not used again.
    new = {"source_type": "git", "source": "https://example.com/skills.git"}
    created = requests.post(f"{server.url}/api/3.0/mlflow/{_REVIEW}/versions", json=new, timeout=60)
    server.stop()
    assert created.json()["version"] == 5, created.text
    assert found["content"] == rows.UNICODE and len(found["files"]) == 2
    assert found[f"{_REVIEW}/versions/4"][0] == 404 and found[_REVIEW][1]["latest_version"] == 1


@pytest.mark.slow
def test_mlflow_3_18_serves_an_export_like_this_server(source: str, tmp_path: Path) -> None:
    run("import", "--from", source, "--data", tmp_path / "data")
    (tmp_path / "stock").mkdir()
    run("export", "--to", stock_database(tmp_path / "stock"), "--data", tmp_path / "data")
    for directory in ("data", "stock"):
        registries.write_content(tmp_path / directory / "artifacts")
    stock, subject = NextStockMlflow(tmp_path / "stock", next_release()), ServerlessMlflow(tmp_path)
    expected, found = _reads(stock.url), _reads(subject.url)
    stock.stop()
    subject.stop()
    for path, answer in expected.items():
        assert found[path] == answer, path


def test_an_export_without_newer_data_has_the_earlier_schema(sqlite: SchemaTemplates, tmp_path: Path) -> None:
    source = sqlite.create("3.17.2")
    schemas.fill(source, rows.tracking(with_long_ids=False) | registries.webhooks() | registries.issues())
    run("import", "--from", source, "--data", tmp_path / "data")
    assert run("export", "--to", tmp_path / "export.db", "--data", tmp_path / "data") == ""
    assert _columns(tmp_path / "export.db") == _columns(_path(source))


def test_changed_skills_are_followed_and_taken_names_are_extended(source: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    run("import", "--from", source, "--data", data)
    with sqlite3.connect(_path(source)) as database:
        database.execute("UPDATE skill_versions SET status = 'deleted' WHERE version = 1")
        database.execute("DELETE FROM skill_tags WHERE key = 'none'")
    database.close()
    assert "skills: 0 imported, 1 updated, 1 unchanged" in run("import", "--from", source, "--data", data)
    run("export", "--to", tmp_path / "export.db", "--data", data)
    assert _rows(tmp_path / "export.db", _SKILL_TABLES) == _rows(_path(source), _SKILL_TABLES)

    server = ServerlessMlflow(tmp_path / "other")
    answer = requests.post(f"{server.url}/api/3.0/mlflow/skills", json={"name": "review", "organization": "acme"}, timeout=60)
    server.stop()
    assert answer.status_code == 200, answer.text
    status, report = _import(source, tmp_path / "other/data")
    assert status != 0 and "skill @acme/review cannot be imported: its name is taken" in report, report
    for form in ("1 imported, 0 updated, 1 unchanged", "0 imported, 0 updated, 2 unchanged"):
        status, report = _import(source, tmp_path / "other/data", "--remap")
        assert status == 0 and f"skills: {form}" in report, report
    registries.write_content(tmp_path / "written")
    (tmp_path / "other/data/artifacts/skills/@acme").mkdir(parents=True)
    (tmp_path / "written/skills/@acme/review").rename(tmp_path / "other/data/artifacts/skills/@acme/review-imported")
    server = ServerlessMlflow(tmp_path / "other")
    moved = registries.CONTENT.replace("review", "review-imported")
    content = requests.get(f"{server.url}/api/2.0/mlflow-artifacts/artifacts/{moved}/SKILL.md", timeout=60)
    server.stop()
    assert content.status_code == 200 and content.content.decode() == rows.UNICODE


def _with_secret(source: str, url: str, key: bytes) -> None:
    """Adds a webhook with a secret for new registered models."""
    hook = registries.webhooks()["webhooks"][0] | {"webhook_id": "9" * 36, "name": "signed", "url": url}
    events = [{"webhook_id": "9" * 36, "entity": "registered_model", "action": "created"}]
    schemas.fill(source, {"webhooks": [hook | {"secret": Fernet(key).encrypt(b"s3cret").decode()}], "webhook_events": events})


def _statuses(data: Path, file: Path) -> dict[str, str]:
    """Exports a table, and returns the status of each webhook by name."""
    run("export", "--to", file, "--data", data)
    database = sqlite3.connect(file)
    found = dict(database.execute("SELECT name, status FROM webhooks WHERE secret IS NULL").fetchall())
    database.close()
    return found


def test_a_webhook_without_a_readable_secret_is_disabled(source: str, tmp_path: Path) -> None:
    _with_secret(source, "https://example.com/hook", Fernet.generate_key())
    data, sealed = tmp_path / "data", ("--secrets-key", tmp_path / "secrets.key")
    for environment, options, reason in (
        ({}, (), f"because {_KEY} is not set"),
        ({_KEY: Fernet.generate_key().decode()}, sealed, f"because {_KEY} does not decrypt them"),
    ):
        status, report = _import(source, data, *options, environment=environment)
        assert status != 0 and f"secrets of webhooks: 1 not imported, {reason}; these webhooks are disabled: signed" in report, report
    assert _statuses(data, tmp_path / "export.db") == {"first": "ACTIVE", "disabled": "DISABLED", "signed": "DISABLED"}
    for value, options, sentence in (
        ("x", sealed, f"{_KEY} is not a key of MLflow"),
        (Fernet.generate_key().decode(), (), "there is no key to encrypt it with: give --secrets-key"),
    ):
        status, report = _import(source, tmp_path / "other", *options, environment={_KEY: value})
        assert status != 0 and sentence in report, report


def test_an_imported_webhook_signs_new_events_only(source: str, tmp_path: Path) -> None:
    key = Fernet.generate_key()
    data, options = tmp_path / "data", subject_options(tmp_path)
    keys = {"environment": {_KEY: key.decode()}}
    with receiving() as receiver:
        _with_secret(source, f"{receiver.url}/hook", key)
        status, report = _import(source, data)
        assert status != 0 and "webhooks: 3 imported" in report, report
        # A later import with the keys adds the secret.
        status, report = _import(source, data, *options[-2:], **keys)
        assert status == 0 and "webhooks: 0 imported, 1 updated, 2 unchanged" in report, report
        assert _statuses(data, tmp_path / "export.db") == {"first": "ACTIVE", "disabled": "DISABLED", "signed": "DISABLED"}
        # Neither a copy without the secret nor a missing key removes it.
        for again in (f"sqlite:///{tmp_path}/export.db", source):
            status, report = _import(again, data)
            assert status == 0 and "webhooks: 0 imported, 0 updated, 3 unchanged" in report, report
        server = ServerlessMlflow(tmp_path, options=options)
        answer = requests.post(f"{server.url}/api/2.0/mlflow/registered-models/create", json={"name": "new"}, timeout=60)
        assert answer.status_code == 200, answer.text
        (delivery,) = receiver.wait_for(1)
        time.sleep(0.5)
        server.stop()
    assert delivery.is_signed_with("s3cret") and delivery.message["data"]["name"] == "new"
    assert receiver.deliveries() == [delivery]
