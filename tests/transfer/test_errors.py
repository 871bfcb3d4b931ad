"""An import that cannot begin, or cannot go on, ends with one sentence and imports nothing by halves."""

import sqlite3
import subprocess
from pathlib import Path

import pytest

from tests.support.servers import binary
from tests.transfer import rows, schemas
from tests.transfer.commands import contents, run
from tests.transfer.conftest import KINDS
from tests.transfer.schemas import SchemaTemplates


def _fails(source: str, data: Path) -> str:
    """Runs an import that fails, and returns the sentence."""
    message = run("import", "--from", source, "--data", data, fails=True)
    lines = message.strip().splitlines()
    assert len(lines) == 1 and "panicked" not in message, message
    return message


@pytest.mark.parametrize("kind", KINDS)
def test_a_source_that_cannot_be_read_creates_nothing(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> None:
    templates = request.getfixturevalue(kind)
    good = templates.create(schemas.INSTALLED)
    if kind == "sqlite":
        (tmp_path / "text.db").write_text("no database" * 1_000)
        damaged = tmp_path / "damaged.db"
        damaged.write_bytes(Path(good.removeprefix("sqlite:///")).read_bytes()[:5_000])
        empty = tmp_path / "empty.db"
        sqlite3.connect(empty).execute("CREATE TABLE t (x)").connection.close()
        bad = [f"sqlite:///{tmp_path}/missing.db", f"sqlite:///{tmp_path}/text.db", f"sqlite:///{damaged}", f"sqlite:///{empty}"]
    else:
        user, server = good.split("@")
        name = server.rpartition("/")[2]
        bad = [
            f"{user.rpartition(':')[0]}:wrong@{server}",
            good.replace(f"/{name}", "/no_such_database"),
            f"{user}@127.0.0.1:1/{name}",
            f"{user}@no-such-host.invalid/{name}",
        ]
    for source in bad:
        message = _fails(source, tmp_path / "data")
        assert "s3cret" not in message, message
        assert not (tmp_path / "data").exists(), source


def test_a_schema_that_is_too_new_is_refused(sqlite: SchemaTemplates, tmp_path: Path) -> None:
    source = sqlite.create(schemas.INSTALLED)
    with sqlite3.connect(source.removeprefix("sqlite:///")) as database:
        database.execute("UPDATE alembic_version SET version_num = 'fedcba987654'")
    assert "fedcba987654" in _fails(source, tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_a_full_disk_ends_the_import_which_is_resumed_later(sqlite: SchemaTemplates, tmp_path: Path) -> None:
    source = sqlite.create(schemas.INSTALLED)
    schemas.fill(source, rows.tracking(with_long_ids=True))
    # A file may not grow beyond this size, as if the disk was full.
    command = f'ulimit -f 700; trap "" XFSZ; exec {binary()} import --from {source} --data {tmp_path}/data'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "panicked" not in done.stderr, done
    run("import", "--from", source, "--data", tmp_path / "data")
    run("export", "--to", tmp_path / "export.db", "--data", tmp_path / "data")
    exported = contents(tmp_path / "export.db")
    assert len(exported["metrics"]) == len(rows.tracking(with_long_ids=True)["metrics"])
