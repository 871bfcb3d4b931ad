"""Rows of an MLflow database with entities of many kinds, for any version of its schema.
`schemas.fill` leaves out tables and columns that a version does not have.
"""

import json

#: Time at which everything was created, in ms.
T = 1_700_000_000_000
UNICODE = "ünïcode 漢字 🙂"
RUNS = [f"{number:08x}{'0123456789ab'}4{'c' * 11}" for number in range(1, 7)]
UNFINISHED, FINISHED, DELETED, LONG, EMPTY, IN_DELETED = RUNS
#: Experiment ids of file stores have 18 digits. Only SQLite can hold them.
LONG_EXPERIMENT = 123_456_789_012_345_678
LONG_EXPERIMENT_RUN = "00000099" + "0123456789ab" + "4" + "d" * 11


def _run(run: str, experiment: int, **others) -> dict:
    row = {
        "run_uuid": run,
        "name": f"run {run[:8]}",
        "source_type": "LOCAL",
        "source_name": "train.py",
        "entry_point_name": "",
        "user_id": "ann",
        "status": "FINISHED",
        "start_time": T,
        "end_time": T + 60_000,
        "deleted_time": None,
        "source_version": "",
        "lifecycle_stage": "active",
        "artifact_uri": f"s3://old/mlflow/{experiment}/{run}/artifacts",
        "experiment_id": experiment,
    }
    return row | others


def _points(run: str, key: str, values: list[float | None], step: int = 1) -> list[dict]:
    """Returns points of a metric. None stands for NaN."""
    return [
        {"run_uuid": run, "key": key, "value": value or 0.0, "timestamp": T + position, "step": position * step, "is_nan": value is None}
        for position, value in enumerate(values)
    ]


def tracking(with_long_ids: bool) -> dict[str, list[dict]]:
    """Returns rows of experiments, runs and what belongs to them."""
    experiments = [
        {"experiment_id": 0, "name": "Default", "lifecycle_stage": "active"},
        {"experiment_id": 1, "name": UNICODE, "lifecycle_stage": "active"},
        {"experiment_id": 7, "name": "deleted one", "lifecycle_stage": "deleted"},
    ]
    runs = [
        _run(UNFINISHED, 1, status="RUNNING", end_time=None, user_id=""),
        _run(FINISHED, 1),
        _run(DELETED, 1, lifecycle_stage="deleted", deleted_time=T + 90_000, status="FAILED"),
        _run(LONG, 1, status="KILLED", name=UNICODE),
        _run(EMPTY, 0, name="", start_time=T + 5, status="SCHEDULED", end_time=None),
        _run(IN_DELETED, 7, lifecycle_stage="deleted", deleted_time=T + 70_000),
    ]
    if with_long_ids:
        experiments.append({"experiment_id": LONG_EXPERIMENT, "name": "from files", "lifecycle_stage": "active"})
        runs.append(_run(LONG_EXPERIMENT_RUN, LONG_EXPERIMENT))
    for number, experiment in enumerate(experiments):
        experiment.update(
            artifact_location=f"s3://old/mlflow/{experiment['experiment_id']}",
            creation_time=T + number,
            last_update_time=T + 10 * number,
            workspace="default",
        )
    metrics = [
        *_points(FINISHED, "loss", [2.5, 1.25, None, 1.7976931348623157e308, -1.7976931348623157e308]),
        *_points(FINISHED, UNICODE.split()[0], [0.1 + 0.2]),
        *_points(UNFINISHED, "loss", [5e-324, -0.5]),
        *_points(LONG, "long", [number / 7 for number in range(2_345)]),
        *_points(LONG, "backwards", [float(number) for number in range(30)], step=-1),
        *_points(DELETED, "loss", [1.0] * 12),
    ]
    latest: dict[tuple[str, str], dict] = {}
    for point in metrics:
        key = (point["run_uuid"], point["key"])
        if key not in latest or (point["step"], point["timestamp"], point["value"]) > tuple(latest[key][name] for name in ("step", "timestamp", "value")):
            latest[key] = point
    source = json.dumps({"uri": "s3://bucket/data"})
    return {
        "experiments": experiments,
        "experiment_tags": [
            {"experiment_id": 1, "key": "mlflow.note.content", "value": UNICODE * 100},
            {"experiment_id": 1, "key": "empty", "value": ""},
            {"experiment_id": 7, "key": "owner", "value": "bob"},
        ],
        "runs": runs,
        "params": [
            {"run_uuid": FINISHED, "key": "lr", "value": "0.1"},
            {"run_uuid": FINISHED, "key": "long", "value": "x" * 500},
            {"run_uuid": FINISHED, "key": "empty", "value": ""},
            {"run_uuid": DELETED, "key": "lr", "value": UNICODE},
        ],
        "tags": [
            {"run_uuid": FINISHED, "key": "mlflow.runName", "value": f"run {FINISHED[:8]}"},
            {"run_uuid": FINISHED, "key": "mlflow.source.name", "value": "train.py"},
            {"run_uuid": FINISHED, "key": "big", "value": UNICODE * 200},
            {"run_uuid": EMPTY, "key": "none", "value": ""},
        ],
        "metrics": metrics,
        "latest_metrics": list(latest.values()),
        "datasets": [
            {
                "dataset_uuid": "a" * 32,
                "experiment_id": 1,
                "name": "iris",
                "digest": "d1",
                "dataset_source_type": "s3",
                "dataset_source": source,
                "dataset_schema": json.dumps({"columns": [UNICODE]}),
                "dataset_profile": json.dumps({"rows": 150}),
            },
            {"dataset_uuid": "b" * 32, "experiment_id": 1, "name": "big", "digest": "d2", "dataset_source_type": "local", "dataset_source": source * 900},
        ],
        "inputs": [
            {"input_uuid": "1" * 32, "source_type": "DATASET", "source_id": "a" * 32, "destination_type": "RUN", "destination_id": FINISHED, "step": 0},
            {"input_uuid": "2" * 32, "source_type": "DATASET", "source_id": "b" * 32, "destination_type": "RUN", "destination_id": FINISHED, "step": 0},
            {"input_uuid": "3" * 32, "source_type": "DATASET", "source_id": "a" * 32, "destination_type": "RUN", "destination_id": LONG, "step": 0},
        ],
        "input_tags": [
            {"input_uuid": "1" * 32, "name": "mlflow.data.context", "value": "train"},
            {"input_uuid": "3" * 32, "name": "mlflow.data.context", "value": "eval"},
            {"input_uuid": "3" * 32, "name": "other", "value": UNICODE},
        ],
    }


LOGGED_MODELS = [f"m-{number:08x}{'0123456789ab'}4{'e' * 11}" for number in range(1, 4)]


def models() -> dict[str, list[dict]]:
    """Returns rows of logged models and of the model registry."""
    first, deleted, many = LOGGED_MODELS

    def logged(model: str, **others) -> dict:
        row = {
            "model_id": model,
            "experiment_id": 1,
            "name": f"model {model[2:10]}",
            "artifact_location": f"s3://old/mlflow/1/models/{model}/artifacts",
            "creation_timestamp_ms": T,
            "last_updated_timestamp_ms": T + 7,
            "status": 2,
            "lifecycle_stage": "active",
            "model_type": "agent",
            "source_run_id": FINISHED,
            "status_message": None,
        }
        return row | others

    def point(model: str, step: int, value: float, **others) -> dict:
        row = {
            "model_id": model,
            "metric_name": "accuracy",
            "metric_timestamp_ms": T + step,
            "metric_step": step,
            "metric_value": value,
            "experiment_id": 1,
            "run_id": FINISHED,
            "dataset_uuid": None,
            "dataset_name": None,
            "dataset_digest": None,
        }
        return row | others

    def registered(name: str, **others) -> dict:
        row = {"workspace": "default", "name": name, "creation_time": T, "last_updated_time": T + 9, "description": ""}
        return row | others

    def version(name: str, number: int, **others) -> dict:
        row = {
            "workspace": "default",
            "name": name,
            "version": number,
            "creation_time": T + number,
            "last_updated_time": T + number,
            "description": None,
            "user_id": None,
            "current_stage": "None",
            "source": f"s3://old/mlflow/1/{FINISHED}/artifacts/model",
            "storage_location": None,
            "run_id": FINISHED,
            "run_link": None,
            "status": "READY",
            "status_message": None,
        }
        return row | others

    default = {"workspace": "default"}
    return {
        "logged_models": [
            logged(first),
            logged(deleted, lifecycle_stage="deleted", status=3),
            logged(many, name=UNICODE, status=1, model_type="", source_run_id=""),
        ],
        "logged_model_params": [{"model_id": first, "experiment_id": 1, "param_key": "k", "param_value": UNICODE * 100}],
        "logged_model_tags": [{"model_id": first, "experiment_id": 1, "tag_key": "empty", "tag_value": ""}],
        "logged_model_metrics": [
            point(first, 0, 0.5),
            point(first, 1, 0.75, dataset_uuid="a" * 32, dataset_name="iris", dataset_digest="d1"),
            *(point(many, step, step / 3) for step in range(700)),
        ],
        "registered_models": [
            registered("churn", description=UNICODE),
            registered("empty"),
            registered("greeting"),
            registered("gone"),
        ],
        "registered_model_tags": [
            {**default, "name": "churn", "key": "team", "value": UNICODE},
            {**default, "name": "greeting", "key": "mlflow.prompt.is_prompt", "value": "true"},
        ],
        "model_versions": [
            version("churn", 1, current_stage="Archived", description="first"),
            version("churn", 2, current_stage="Deleted_Internal", source="REDACTED-SOURCE-PATH", run_id="REDACTED-RUN-ID"),
            version("churn", 3, current_stage="Production", last_updated_time=T + 500, run_link="https://example.com/run"),
            version("churn", 4, run_id=None, storage_location="s3://elsewhere/model"),
            version("greeting", 1, source="prompt-template", run_id=None),
            version("gone", 1, current_stage="Deleted_Internal"),
        ],
        "model_version_tags": [
            {**default, "name": "churn", "version": 3, "key": "validated", "value": "yes"},
            {**default, "name": "greeting", "version": 1, "key": "mlflow.prompt.is_prompt", "value": "true"},
            {**default, "name": "greeting", "version": 1, "key": "mlflow.prompt.text", "value": f"Hello {UNICODE} {{{{name}}}}" * 50},
        ],
        "registered_model_aliases": [
            {**default, "name": "churn", "alias": "champion", "version": 3},
            {**default, "name": "churn", "alias": "first", "version": 1},
        ],
    }


def everything(with_long_ids: bool) -> dict[str, list[dict]]:
    """Returns rows of every kind."""
    from tests.transfer import registries

    return tracking(with_long_ids) | models() | registries.skills() | registries.webhooks() | registries.issues()
