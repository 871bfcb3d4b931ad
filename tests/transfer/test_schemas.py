"""Databases of every supported schema and server are imported as if MLflow had upgraded them."""

from pathlib import Path

import pytest

from tests.transfer import rows, schemas
from tests.transfer.commands import contents, run
from tests.transfer.conftest import KINDS

def _exported(database: str, directory: Path) -> dict[str, list[tuple]]:
    """Imports a database, and returns the rows of the export."""
    report = run("import", "--from", database, "--data", directory / "data")
    assert "differ" not in report and "not imported" not in report, report
    run("export", "--to", directory / "export.db", "--data", directory / "data")
    return contents(directory / "export.db")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("release", schemas.HEADS)
def test_an_import_equals_that_of_an_upgraded_copy(request: pytest.FixtureRequest, tmp_path: Path, kind: str, release: str) -> None:
    templates = request.getfixturevalue(kind)
    entities = rows.everything(with_long_ids=kind == "sqlite")
    original = templates.create(release)
    schemas.fill(original, entities)
    copy = templates.copy(original)
    schemas.migrate(copy, "3.18.0" if release == "3.18.0" else schemas.INSTALLED)
    exported = []
    for name, database in (("original", original), ("copy", copy)):
        (tmp_path / name).mkdir()
        exported.append(_exported(database, tmp_path / name))
    assert exported[0] == exported[1]
    assert len(exported[0]["metrics"]) == len(entities["metrics"])
