"""Evaluation datasets and scorers are imported and exported."""

import sqlite3
from pathlib import Path

import pytest

from tests.support.servers import ServerlessMlflow, StockMlflow, stock_database
from tests.transfer import evaluation, schemas
from tests.transfer.commands import contents, run
from tests.transfer.conftest import KINDS
from tests.transfer.schemas import SchemaTemplates


def _path(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


def _import(source: str | Path, data: Path, *options: str, fails: bool = False) -> str:
    source = source if isinstance(source, str) else f"sqlite:///{source}"
    return run("import", "--from", source, "--data", data, *options, fails=fails)


@pytest.mark.parametrize("kind", KINDS)
def test_clients_see_no_difference(request: pytest.FixtureRequest, sqlite: SchemaTemplates, tmp_path: Path, kind: str) -> None:
    templates: SchemaTemplates = request.getfixturevalue(kind)
    source = templates.create(schemas.INSTALLED)
    evaluation.fill(source, tmp_path / "artifacts")
    _import(source, tmp_path / "subject/data")
    subject = ServerlessMlflow(tmp_path / "subject")
    if kind == "sqlite":
        (tmp_path / "reference").mkdir()
        stock_database(tmp_path / "reference").write_bytes(_path(source).read_bytes())
        reference = StockMlflow(tmp_path / "reference")
        expected = evaluation.seen(reference.url)
        reference.stop()
    else:
        expected = evaluation.seen(source)
    found = evaluation.seen(subject.url)
    subject.stop()
    assert found.keys() == expected.keys()
    for what, value in expected.items():
        assert found[what] == value, what


def test_the_newest_schema_is_imported_as_that_before_it(sqlite: SchemaTemplates, tmp_path: Path) -> None:
    source = sqlite.create(schemas.INSTALLED)
    evaluation.fill(source, tmp_path / "artifacts")
    newest = sqlite.copy(source)
    schemas.migrate(newest, "3.18.0")
    exported = []
    for name, database in (("before", source), ("newest", newest)):
        report = _import(database, tmp_path / name)
        assert "evaluation datasets: 4 imported" in report and "scorers: 4 imported" in report, report
        run("export", "--to", tmp_path / f"{name}.db", "--data", tmp_path / name)
        exported.append(contents(tmp_path / f"{name}.db"))
    assert exported[0] == exported[1]


def test_a_second_import_changes_nothing_and_a_changed_source_is_followed(sqlite: SchemaTemplates, tmp_path: Path) -> None:
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    source, data = sqlite.create(schemas.INSTALLED), tmp_path / "data"
    ids = evaluation.fill(source, tmp_path / "artifacts")
    _import(source, data)
    again = _import(source, data)
    assert "evaluation datasets: 0 imported, 0 updated, 4 unchanged" in again
    assert "scorers: 0 imported, 0 updated, 4 unchanged" in again

    store = SqlAlchemyStore(source, str(tmp_path / "artifacts"))
    loaded, _ = store._load_dataset_records(ids["dataset"], max_results=1_200)
    big = [record for record in loaded if record.inputs == {"q": "big"}]
    store.delete_dataset_records(ids["dataset"], [loaded[0].dataset_record_id, big[0].dataset_record_id])
    store.upsert_dataset_records(ids["dataset"], [{"inputs": {"q": "new"}}, {"inputs": {"q": "changed"}, "outputs": {"o": 1}}])
    store.remove_dataset_from_experiments(ids["dataset"], [ids["one"]])
    store.register_scorer(ids["one"], "other", evaluation._scorer("other", "second version"))
    store.delete_scorer(ids["two"], "big")
    store.register_scorer(ids["two"], "big", evaluation._scorer("big", "small now"))
    expected = evaluation.seen(source)
    store.engine.dispose()
    changed = _import(source, data)
    assert "evaluation datasets: 0 imported, 1 updated, 3 unchanged" in changed
    assert "scorers: 0 imported, 2 updated, 2 unchanged" in changed
    subject = ServerlessMlflow(tmp_path)
    found = evaluation.seen(subject.url)
    subject.stop()
    assert found == expected


def test_what_was_changed_here_is_left_alone(sqlite: SchemaTemplates, tmp_path: Path) -> None:
    import mlflow
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    source, data = sqlite.create(schemas.INSTALLED), tmp_path / "data"
    ids = evaluation.fill(source, tmp_path / "artifacts")
    _import(source, data)
    subject = ServerlessMlflow(tmp_path)
    here = mlflow.MlflowClient(subject.url)._tracking_client.store
    here.upsert_dataset_records(ids["dataset"], [{"inputs": {"q": "here"}}, {"inputs": {"number": 5}, "tags": {"t": "u"}}])
    here.register_scorer(ids["one"], "other", evaluation._scorer("other", "registered here"))
    assert here.list_scorer_versions(ids["one"], "other")[-1].scorer_version == 2
    expected = evaluation.seen(subject.url)
    subject.stop()
    there = SqlAlchemyStore(source, str(tmp_path / "artifacts"))
    there.upsert_dataset_records(ids["dataset"], [{"inputs": {"q": "there"}}])
    there.register_scorer(ids["one"], "other", evaluation._scorer("other", "registered there"))
    there.engine.dispose()
    report = _import(source, data)
    assert f"evaluation datasets: 1 left alone, changed here since they were imported: {ids['dataset']}" in report
    assert "scorers: 1 left alone, changed here since they were imported: other" in report
    subject = ServerlessMlflow(tmp_path)
    assert evaluation.seen(subject.url) == expected
    subject.stop()


def test_an_export_is_the_same_for_mlflow_and_when_imported_again(sqlite: SchemaTemplates, tmp_path: Path) -> None:
    source = sqlite.create(schemas.INSTALLED)
    evaluation.fill(source, tmp_path / "artifacts")
    expected = evaluation.seen(source)
    _import(source, tmp_path / "data")
    run("export", "--to", tmp_path / "export.db", "--data", tmp_path / "data")
    again = _import(tmp_path / "export.db", tmp_path / "data")
    assert "evaluation datasets: 0 imported, 0 updated, 4 unchanged" in again
    assert "scorers: 0 imported, 0 updated, 4 unchanged" in again
    _import(tmp_path / "export.db", tmp_path / "other")
    run("export", "--to", tmp_path / "second.db", "--data", tmp_path / "other")
    first, second = contents(tmp_path / "export.db"), contents(tmp_path / "second.db")
    for table in ("evaluation_datasets", "evaluation_dataset_records", "evaluation_dataset_tags", "entity_associations", "scorers"):
        assert first[table] == second[table] and first[table], table
    hashes = sqlite3.connect(_path(source)).execute("SELECT input_hash FROM evaluation_dataset_records").fetchall()
    exported = sqlite3.connect(tmp_path / "export.db").execute("SELECT input_hash FROM evaluation_dataset_records").fetchall()
    assert sorted(exported) == sorted(hashes)
    found = evaluation.seen(f"sqlite:///{tmp_path / 'export.db'}")
    for what, value in expected.items():
        assert found[what] == value, what


def test_what_is_taken_needs_another_id_or_name(tmp_path: Path) -> None:
    import mlflow

    data, export = tmp_path / "data", tmp_path / "export.db"
    subject = ServerlessMlflow(tmp_path)
    here = mlflow.MlflowClient(subject.url)._tracking_client.store
    dataset = here.create_dataset("dataset", tags={"a": "b"}, experiment_ids=["0"])
    here.upsert_dataset_records(dataset.dataset_id, [{"inputs": {"a": 1}}])
    here.register_scorer("0", "scorer", evaluation._scorer("scorer", "here"))
    subject.stop()
    run("export", "--to", export, "--data", data)
    assert "scorer scorer of experiment 0 cannot be imported: its name is taken" in _import(export, data, fails=True)
    with sqlite3.connect(export) as database:
        database.execute("DELETE FROM scorer_versions")
        database.execute("DELETE FROM scorers")
    refused = _import(export, data, fails=True)
    assert f"evaluation dataset {dataset.dataset_id} cannot be imported: its id is taken" in refused
    run("export", "--to", tmp_path / "again.db", "--data", data)
    _import(tmp_path / "again.db", data, "--remap")
    unchanged = _import(tmp_path / "again.db", data, "--remap")
    assert "evaluation datasets: 0 imported, 0 updated, 1 unchanged" in unchanged
    assert "scorers: 0 imported, 0 updated, 1 unchanged" in unchanged
    subject = ServerlessMlflow(tmp_path)
    here = mlflow.MlflowClient(subject.url)._tracking_client.store
    first, second = here.search_datasets(order_by=["created_time ASC"])
    subject_tags = {dataset.dataset_id: dataset.tags for dataset in (first, second)}
    renamed = first if first.dataset_id != dataset.dataset_id else second
    assert subject_tags[dataset.dataset_id] == {"a": "b"}
    assert renamed.tags == {"a": "b", "mlflow-serverless.import.originalId": dataset.dataset_id}
    assert renamed.created_time == dataset.created_time
    records, _ = here._load_dataset_records(renamed.dataset_id)
    assert [record.inputs for record in records] == [{"a": 1}]
    assert sorted(scorer.scorer_name for scorer in here.list_scorers("0")) == ["scorer", "scorer (imported)"]
    subject.stop()


def test_rows_that_are_not_supported_are_counted(sqlite: SchemaTemplates, tmp_path: Path) -> None:
    source = sqlite.create(schemas.INSTALLED)
    job = {"creation_time": 1, "job_name": "scorer", "params": "{}", "status": 0, "retry_count": 0, "last_update_time": 1}
    schemas.fill(source, {"jobs": [job | {"id": "first"}, job | {"id": "second"}]})
    with sqlite3.connect(_path(source)) as database:
        database.execute("CREATE TABLE plugin_rows (id INTEGER)")
        database.execute("INSERT INTO plugin_rows VALUES (1)")
    done = run("import", "--from", source, "--data", tmp_path / "data", fails=True)
    assert "3 entities were not imported, and 0 differ from the source" in done
