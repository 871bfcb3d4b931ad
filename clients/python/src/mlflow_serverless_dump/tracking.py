"""Dumps a tracking server through its REST API."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from mlflow import MlflowClient

from mlflow_serverless_dump import experiments, logged_models, registered_models, runs, traces
from mlflow_serverless_dump.context import Context
from mlflow_serverless_dump.database import Database
from mlflow_serverless_dump.report import Report, UsageError
from mlflow_serverless_dump.requests import is_unsupported

_NOT_EXPOSED = (
    "permanently deleted entities, and deleted logged models, are not returned by the API",
    "evaluation datasets, scorers, webhooks, users and permissions are not dumped",
    "artifacts are not copied: they stay where they are",
)


@dataclass(frozen=True)
class Options:
    """Options of `mlflow-serverless-dump tracking`."""

    source: str
    registry: str | None
    to: str
    experiments: list[str] | None
    skip: frozenset[str]
    parallel: int


def dump(options: Options, report: Report) -> None:
    """Dumps a tracking server into a file."""
    client = MlflowClient(options.source, options.registry or options.source)
    try:
        selected = experiments.select(client, options.experiments)
    except Exception as error:
        raise UsageError(f"cannot read experiments from {options.source}: {error}") from error
    with Database(options.to, options.source) as database, ThreadPoolExecutor(options.parallel) as pool:
        context = Context(client, database, report, pool, 2 * options.parallel)
        for number, experiment in enumerate(selected, 1):
            report.progress(f"experiment {number} of {len(selected)}: {experiment.experiment_id} {experiment.name}")
            parts = {"runs": runs.dump, "logged-models": logged_models.dump, "traces": traces.dump}
            for name, part in parts.items():
                if name not in options.skip:
                    _part(context, name, experiment.experiment_id, lambda part=part: part(context, experiment))
            experiments.write(context, experiment)
        if "registry" not in options.skip:
            report.progress("model registry")
            _part(context, "registry", options.registry or options.source, lambda: registered_models.dump(context))
    for text in _NOT_EXPOSED:
        report.note(text)


def _part(context: Context, name: str, id_: str, dump_part: Callable[[], None]) -> None:
    """Dumps one kind of entity."""
    try:
        dump_part()
    except Exception as error:
        context.database.rollback()
        if is_unsupported(error):
            context.report.note(f"the source does not support {name}")
        else:
            context.report.failed(name, f"of {id_}", error)
