"""Import and export over HTTP, into the DynamoDB of the emulator that the tests of deployments use."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.deployed.emulator import start_emulator
from tests.support.servers import binary
from tests.transfer import rows, schemas
from tests.transfer.commands import contents, run
from tests.transfer.schemas import SchemaTemplates


def _with(environment: dict[str, str], *arguments: str | Path) -> str:
    done = subprocess.run([binary(), *map(str, arguments)], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("entities", [pytest.param("tracking", id="sample"), pytest.param("everything", marks=pytest.mark.slow)])
def test_a_table_of_the_emulator_holds_what_a_directory_does(sqlite: SchemaTemplates, tmp_path: Path, entities: str) -> None:
    source = sqlite.create(schemas.INSTALLED)
    if entities == "tracking":
        sample = rows.tracking(with_long_ids=True)
        schemas.fill(source, {name: [row for row in table if row.get("run_uuid") != rows.LONG] for name, table in sample.items()})
    else:
        schemas.fill(source, rows.everything(with_long_ids=True))
    run("import", "--from", source, "--data", tmp_path / "data")
    run("export", "--to", tmp_path / "directory.db", "--data", tmp_path / "data")
    emulator = start_emulator(tmp_path / "emulator", {})
    try:
        options = ("--dynamodb-endpoint", emulator.url, "--table", "moved")
        # The variable of the emulator would also apply to other services.
        environment = {name: value for name, value in (os.environ | emulator.operator).items() if name != "AWS_ENDPOINT_URL"}
        report = _with(environment, "import", "--from", source, *options, "--write-units", "5000")
        assert "differ" not in report and "not imported" not in report, report
        again = _with(environment, "import", "--from", source, *options)
        assert " 0 imported" in again and "left alone" not in again.replace("exist here already", ""), again
        _with(environment, "export", "--to", tmp_path / "table.db", *options)
    finally:
        emulator.process.stop()
    assert contents(tmp_path / "table.db") == contents(tmp_path / "directory.db")
