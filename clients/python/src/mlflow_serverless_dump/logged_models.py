"""Logged models."""

import sqlalchemy
from mlflow.entities import Experiment, LoggedModel
from mlflow.store.tracking.dbmodels.models import SqlDataset

from mlflow_serverless_dump.context import Context
from mlflow_serverless_dump.database import metric_value
from mlflow_serverless_dump.ids import experiment_number, optional_run_id
from mlflow_serverless_dump.requests import pages

_TABLES = ("logged_model_metrics", "logged_model_params", "logged_model_tags", "logged_models")


def dump(context: Context, experiment: Experiment) -> None:
    """Dumps the logged models of an experiment. They replace what an earlier dump has written."""
    for page in pages(context.client.search_logged_models, experiment_ids=[experiment.experiment_id], max_results=50):
        for model in page:
            _write(context, model)


def _write(context: Context, model: LoggedModel) -> None:
    database = context.database
    number = experiment_number(model.experiment_id)
    owner = {"model_id": model.model_id, "experiment_id": number}
    for table in _TABLES:
        database.delete(table, model_id=model.model_id)
    database.insert("logged_model_params", [owner | {"param_key": key, "param_value": value} for key, value in model.params.items()])
    database.insert("logged_model_tags", [owner | {"tag_key": key, "tag_value": value} for key, value in model.tags.items()])
    for metric in model.metrics or []:
        value, is_nan = metric_value(metric.value)
        row = owner | {"metric_name": metric.key, "metric_timestamp_ms": metric.timestamp, "metric_step": metric.step}
        # The column of models has no flag for NaN.
        row |= {"metric_value": None if is_nan else value, "run_id": optional_run_id(metric.run_id) or ""}
        row |= {"dataset_name": metric.dataset_name or None, "dataset_digest": metric.dataset_digest or None, "dataset_uuid": None}
        if metric.dataset_name:
            row["dataset_uuid"] = database.value(
                sqlalchemy.select(SqlDataset.dataset_uuid).where(
                    SqlDataset.experiment_id == number, SqlDataset.name == metric.dataset_name, SqlDataset.digest == metric.dataset_digest
                )
            )
        database.insert("logged_model_metrics", [row])
    row = owner | {
        "name": model.name,
        "artifact_location": model.artifact_location,
        "creation_timestamp_ms": model.creation_timestamp,
        "last_updated_timestamp_ms": model.last_updated_timestamp,
        "status": model.status.to_int(),
        "lifecycle_stage": "active",
        "model_type": model.model_type or None,
        "source_run_id": optional_run_id(model.source_run_id),
        "status_message": model.status_message or None,
    }
    database.insert("logged_models", [row])
    database.commit()
    context.report.written["logged models"] += 1
