"""An import that is interrupted while it replaces entities is completed by the next one."""

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.engine import Engine
from tests.support.engine_proxy import Answer, EngineProxy, Headers
from tests.support.servers import binary
from tests.transfer import evaluation, rows, schemas
from tests.transfer.commands import contents, run
from tests.transfer.schemas import SchemaTemplates

_REFUSAL = b'{"__type": "com.amazonaws.dynamodb.v20120810#AccessDeniedException", "message": "No more writes."}'
#: Numbers of writes after which an import is interrupted. The last import is completed.
_WRITES = (1, 2, 3, 5, 8, 13, 21, 34)
_FEW_WRITES = (5, 34)


class StoppingEngine(EngineProxy):
    """Forwards a number of writes, and refuses all others."""

    def __init__(self, engine: Engine):
        self.left: int | None = None
        super().__init__(engine)

    def answer(self, headers: Headers, body: bytes) -> Answer:
        operation = next(value for name, value in headers if name.lower() == "x-amz-target").rpartition(".")[2]
        if self.left is not None and operation in ("PutItem", "UpdateItem", "BatchWriteItem", "TransactWriteItems"):
            if self.left == 0:
                return 400, "application/x-amz-json-1.0", _REFUSAL
            self.left -= 1
        return self.forward(headers, body)


@pytest.fixture
def table(tmp_path: Path) -> Iterator[StoppingEngine]:
    with StoppingEngine.over_new_engine(tmp_path / "engine") as table:
        yield table


def _evaluation() -> dict[str, list[dict]]:
    """Returns rows of a scorer, and of an evaluation dataset with two records."""
    dataset = {"dataset_id": f"d-{'7' * 32}", "created_time": rows.T, "last_update_time": rows.T}
    record = {**dataset, "outputs": None, "expectations": None, "tags": None, "source": None}
    inputs = ({"q": "one"}, {"q": "two"})
    records = [
        {**record, "dataset_record_id": f"dr-{number}{'8' * 31}", "inputs": value, "input_hash": f"{number}" * 64} for number, value in enumerate(inputs)
    ]
    return {
        "evaluation_datasets": [{**dataset, "name": "questions", "digest": "12345678", "workspace": "default"}],
        "evaluation_dataset_records": records,
        "scorers": [{"experiment_id": 1, "scorer_name": "other", "scorer_id": "9" * 32}],
        "scorer_versions": [
            {"scorer_id": "9" * 32, "scorer_version": number, "serialized_scorer": evaluation._scorer("other", "first"), "creation_time": rows.T}
            for number in (1, 2)
        ],
    }


def _change(file: str, turn: int) -> None:
    """Changes an entity of each kind in the source."""
    time = rows.T + 1_000 * turn
    with sqlite3.connect(file) as database:
        database.execute("UPDATE runs SET name = ? WHERE run_uuid IN (?, ?)", (f"turn {turn}", rows.FINISHED, rows.LONG))
        database.execute("UPDATE params SET value = ? WHERE run_uuid = ?", (f"turn {turn}", rows.FINISHED))
        database.execute("UPDATE metrics SET value = value + 1 WHERE run_uuid = ? AND key = 'long'", (rows.LONG,))
        database.execute("UPDATE logged_models SET last_updated_timestamp_ms = ? WHERE model_id = ?", (time, rows.LOGGED_MODELS[0]))
        database.execute("UPDATE logged_model_metrics SET metric_value = metric_value + 1 WHERE model_id = ?", (rows.LOGGED_MODELS[0],))
        database.execute("UPDATE model_versions SET description = ? WHERE name = 'churn'", (f"turn {turn}",))
        database.execute("UPDATE evaluation_dataset_records SET last_update_time = ?", (time,))
        database.execute("UPDATE scorer_versions SET serialized_scorer = ?", (evaluation._scorer("other", f"turn {turn}"),))


def _import(table: StoppingEngine, source: str) -> tuple[int, str]:
    command = [binary(), "import", "--from", source, *table.options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | table.environment)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("writes_before", [pytest.param(_FEW_WRITES, id="sample"), pytest.param(_WRITES, id="all", marks=pytest.mark.slow)])
def test_what_was_being_replaced_is_no_change_by_a_client(
    sqlite: SchemaTemplates, table: StoppingEngine, tmp_path: Path, writes_before: tuple[int, ...]
) -> None:
    source = sqlite.create(schemas.INSTALLED)
    file = source.removeprefix("sqlite:///")
    schemas.fill(source, rows.everything(with_long_ids=False) | _evaluation())
    status, report = _import(table, source)
    assert status == 0, report
    for turn, writes in enumerate(writes_before):
        _change(file, turn)
        table.left = writes
        status, report = _import(table, source)
        is_last = status == 0
        table.left = None
        status, report = _import(table, source)
        assert status == 0 and "left alone" not in report, (writes, report)
        if is_last:
            break
    else:
        pytest.fail("no import was completed")
    exported = []
    for name, options in (("resumed", table.options), ("fresh", ["--data", str(tmp_path / "fresh")])):
        if name == "fresh":
            run("import", "--from", source, *options)
        target = tmp_path / f"{name}.db"
        done = subprocess.run([binary(), "export", "--to", target, *options], capture_output=True, text=True, check=False, env=os.environ | table.environment)
        assert done.returncode == 0, done.stderr
        exported.append(contents(target))
    assert exported[0] == exported[1]
