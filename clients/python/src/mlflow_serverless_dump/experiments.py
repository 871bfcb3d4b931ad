"""Experiments and their tags."""

from mlflow import MlflowClient
from mlflow.entities import Experiment, ViewType

from mlflow_serverless_dump.context import Context
from mlflow_serverless_dump.ids import ORIGINAL_ID_TAG, experiment_number
from mlflow_serverless_dump.requests import pages


def select(client: MlflowClient, ids: list[str] | None) -> list[Experiment]:
    """Returns the experiments to dump, deleted ones included."""
    if ids:
        return [client.get_experiment(id_) for id_ in ids]
    return [experiment for page in pages(client.search_experiments, view_type=ViewType.ALL, max_results=1000) for experiment in page]


def write(context: Context, experiment: Experiment) -> None:
    """Writes an experiment. It replaces what an earlier dump has written."""
    number = experiment_number(experiment.experiment_id)
    row = {
        "experiment_id": number,
        "name": experiment.name,
        "workspace": "default",
        "artifact_location": experiment.artifact_location,
        "lifecycle_stage": experiment.lifecycle_stage,
        "creation_time": experiment.creation_time,
        "last_update_time": experiment.last_update_time,
    }
    tags = dict(experiment.tags)
    if str(number) != experiment.experiment_id:
        tags[ORIGINAL_ID_TAG] = experiment.experiment_id
    context.database.delete("experiment_tags", experiment_id=number)
    context.database.replace("experiments", [row])
    context.database.insert("experiment_tags", [{"experiment_id": number, "key": key, "value": value} for key, value in tags.items()])
    context.database.commit()
    context.report.written["experiments"] += 1
