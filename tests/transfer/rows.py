"""Rows of an MLflow database with entities of every kind, for any schema: those that a schema does
not have are left out when it is filled.
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
