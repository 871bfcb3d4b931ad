"""Runs, with everything that was logged to them."""

from collections.abc import Iterator

import sqlalchemy
from mlflow.entities import Experiment, Metric, Run, ViewType
from mlflow.store.tracking.dbmodels.models import SqlDataset, SqlInput

from mlflow_serverless_dump.context import Context
from mlflow_serverless_dump.database import fingerprint, metric_value
from mlflow_serverless_dump.ids import ORIGINAL_ID_TAG, derived, experiment_number, run_id
from mlflow_serverless_dump.requests import in_parallel, pages

#: Tags whose value is the id of a run.
_RUN_ID_TAGS = ("mlflow.parentRunId", "mlflow.rootRunId")
_PAGE_SIZE = 200
_UNFINISHED = ("RUNNING", "SCHEDULED")


def dump(context: Context, experiment: Experiment) -> None:
    """Dumps the runs of an experiment, one transaction per run. The row of a run is written last."""
    search = context.client.search_runs
    for page in pages(search, experiment_ids=[experiment.experiment_id], run_view_type=ViewType.ALL, max_results=_PAGE_SIZE):
        _dump_page(context, page)


def _dump_page(context: Context, page: list[Run]) -> None:
    failed = None
    started = None

    def read(item: tuple[Run, str | None]) -> list[Metric]:
        run, key = item
        return context.client.get_metric_history(run.info.run_id, key) if key is not None else []

    for (run, key), history in in_parallel(context.pool, context.window, read, _requests(context, page)):
        id_ = run.info.run_id
        if id_ == failed:
            continue
        try:
            if isinstance(history, Exception):
                raise history
            if started != id_:
                started = id_
                _write_start(context, run)
            if key is None:
                _write_end(context, run)
            else:
                context.database.insert("metrics", [_metric_row(id_, metric) for metric in history])
        except Exception as error:
            context.database.rollback()
            failed = id_
            context.report.failed("run", id_, error)


def _requests(context: Context, page: list[Run]) -> Iterator[tuple[Run, str | None]]:
    """Yields the metrics to read. For each run that is not complete, these are all names, followed
    by `None`.
    """
    for run in page:
        if context.database.is_complete("run", run.info.run_id, _fingerprint(run)):
            context.report.unchanged["runs"] += 1
            continue
        for key in run.data.metrics:
            yield run, key
        yield run, None


def _fingerprint(run: Run) -> str:
    """Returns a hash of what a search returns for a run. A run that has not ended never counts as
    complete, because points may be added before the latest one.
    """
    if run.info.status in _UNFINISHED and run.info.lifecycle_stage == "active":
        return ""
    latest = sorted((metric.key, metric.step, metric.timestamp, repr(metric.value)) for metric in run.data._metric_objs)
    inputs = run.inputs.to_dictionary() if run.inputs else None
    outputs = run.outputs.to_dictionary() if run.outputs else None
    return fingerprint([dict(run.info), run.data.tags, run.data.params, latest, inputs, outputs])


def _metric_row(id_: str, metric: Metric) -> dict:
    value, is_nan = metric_value(metric.value)
    return {"run_uuid": run_id(id_), "key": metric.key, "value": value, "timestamp": metric.timestamp, "step": metric.step, "is_nan": is_nan}


def _write_start(context: Context, run: Run) -> None:
    """Deletes the rows that an unfinished or older dump has written for a run, and writes
    everything that needs no further requests, except the run's own row.
    """
    database = context.database
    id_ = run_id(run.info.run_id)
    number = experiment_number(run.info.experiment_id)
    for table in ("metrics", "latest_metrics", "params", "tags", "runs"):
        database.delete(table, run_uuid=id_)
    database.delete_in("input_tags", "input_uuid", sqlalchemy.select(SqlInput.input_uuid).where(SqlInput.destination_type == "RUN", SqlInput.destination_id == id_))
    database.delete("inputs", destination_type="RUN", destination_id=id_)
    for kind in ("RUN_INPUT", "RUN_OUTPUT"):
        database.delete("inputs", source_type=kind, source_id=id_)
    tags = {key: run_id(value) if key in _RUN_ID_TAGS and value else value for key, value in run.data.tags.items()}
    if id_ != run.info.run_id:
        tags[ORIGINAL_ID_TAG] = run.info.run_id
    database.insert("tags", [{"run_uuid": id_, "key": key, "value": value} for key, value in tags.items()])
    database.insert("params", [{"run_uuid": id_, "key": key, "value": value} for key, value in run.data.params.items()])
    database.insert("latest_metrics", [_metric_row(run.info.run_id, metric) for metric in run.data._metric_objs])
    for input_ in run.inputs.dataset_inputs if run.inputs else []:
        dataset = input_.dataset
        query = sqlalchemy.select(SqlDataset.dataset_uuid).where(
            SqlDataset.experiment_id == number, SqlDataset.name == dataset.name, SqlDataset.digest == dataset.digest
        )
        uuid = database.value(query)
        if uuid is None:
            uuid = derived("dataset", str(number), dataset.name, dataset.digest)
            row = {"dataset_uuid": uuid, "experiment_id": number, "name": dataset.name, "digest": dataset.digest}
            row |= {"dataset_source_type": dataset.source_type, "dataset_source": dataset.source}
            row |= {"dataset_schema": dataset.schema or None, "dataset_profile": dataset.profile or None}
            database.insert("datasets", [row])
        edge = derived("input", uuid, id_)
        database.insert("inputs", [_edge(edge, "DATASET", uuid, "RUN", id_)])
        database.insert("input_tags", [{"input_uuid": edge, "name": tag.key, "value": tag.value} for tag in input_.tags])
    for model in (run.inputs.model_inputs or []) if run.inputs else []:
        database.insert("inputs", [_edge(derived("model input", id_, model.model_id), "RUN_INPUT", id_, "MODEL_INPUT", model.model_id)])
    for model in (run.outputs.model_outputs or []) if run.outputs else []:
        edge = _edge(derived("model output", id_, model.model_id), "RUN_OUTPUT", id_, "MODEL_OUTPUT", model.model_id)
        database.insert("inputs", [edge | {"step": model.step or 0}])


def _edge(uuid: str, source_type: str, source: str, destination_type: str, destination: str) -> dict:
    return {"input_uuid": uuid, "source_type": source_type, "source_id": source, "destination_type": destination_type, "destination_id": destination, "step": 0}


def _write_end(context: Context, run: Run) -> None:
    info = run.info
    if info.lifecycle_stage == "deleted":
        context.report.note("the time at which a run was deleted is not returned by the API")
    row = {
        "run_uuid": run_id(info.run_id),
        "name": info.run_name or "",
        # The API only returns the source of a run in tags.
        "source_type": "UNKNOWN",
        "source_name": "",
        "entry_point_name": "",
        "source_version": "",
        "user_id": info.user_id or "",
        "status": info.status,
        "start_time": info.start_time,
        "end_time": info.end_time,
        "deleted_time": None,
        "lifecycle_stage": info.lifecycle_stage,
        "artifact_uri": info.artifact_uri,
        "experiment_id": experiment_number(info.experiment_id),
    }
    context.database.insert("runs", [row])
    context.database.complete("run", info.run_id, _fingerprint(run) or "unfinished")
    context.report.written["runs"] += 1
