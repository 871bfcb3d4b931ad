"""Evaluation datasets and scorers that MLflow's own store writes, and what clients see of them."""

import json
from pathlib import Path
from typing import Any

import sqlalchemy

UNICODE = "ünïcode 漢字 🙂"


def _scorer(name: str, description: str) -> str:
    fields = {
        "name": name,
        "aggregations": [],
        "description": description,
        "is_session_level_scorer": False,
        "mlflow_version": "3.17.2",
        "serialization_version": 1,
        "builtin_scorer_class": "Correctness",
        "builtin_scorer_pydantic_data": {"name": name, "model": "openai:/gpt-4"},
    }
    return json.dumps(fields)


def fill(url: str, directory: Path) -> dict[str, str]:
    """Fills a database of the installed release, and returns the ids of some entities by name."""
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    store = SqlAlchemyStore(url, str(directory))
    one, two, gone = (store.create_experiment(name) for name in ("one", UNICODE, "gone"))
    is_sqlite = url.startswith("sqlite")
    # Repetitive texts would be compressed to less than an item.
    big = " ".join(str(number * number * 7919 % 1_000_003) for number in range(150_000))
    tags = {"mlflow.user": "ann", "key": UNICODE, "empty": "", "long": big[:4_900]}
    dataset = store.create_dataset("dataset", tags=tags, experiment_ids=[one, two])
    numbers = {"n": 1.5, "big": 123456789012345678901234567890, "text": UNICODE}
    if is_sqlite:
        # Other databases check JSON.
        numbers["nan"] = float("nan")
    records: list[dict[str, Any]] = [
        {"inputs": numbers, "outputs": {"k": "v"}, "expectations": {"e": None}, "tags": {"mlflow.user": "bob", "t": 1}},
        {"inputs": {"b": 1, "a": [1, {"z": 1, "y": 2}]}, "outputs": None},
        {"inputs": {"source": 1}, "source": {"source_type": "TRACE", "source_data": {"trace_id": "tr-1"}}},
        {"inputs": {"source": 2}, "source": {"source_type": "human", "source_data": {"source_id": "me"}}},
        {"inputs": {"q": "changed"}},
        {"inputs": {"q": "big"}, "outputs": {"big": big}},
    ]
    store.upsert_dataset_records(dataset.dataset_id, records + [{"inputs": {"number": number}} for number in range(1_100)])
    later = [{"inputs": {"q": "changed"}, "expectations": {"x": 1}, "tags": {"mlflow.user": "eve"}}, {"inputs": {"later": True}}]
    store.upsert_dataset_records(dataset.dataset_id, later)
    store.create_dataset("empty")
    emptied = store.create_dataset("emptied", experiment_ids=[gone])
    store.upsert_dataset_records(emptied.dataset_id, [{"inputs": {"x": 1}}])
    loaded, _ = store._load_dataset_records(emptied.dataset_id)
    store.delete_dataset_records(emptied.dataset_id, [record.dataset_record_id for record in loaded])
    texts = store.create_dataset("texts")
    store.upsert_dataset_records(texts.dataset_id, [{"inputs": {"x": 1}, "outputs": "text"}, {"inputs": {"x": 2}, "outputs": [5]}])

    for version in range(3):
        store.register_scorer(one, UNICODE, _scorer("scorer", f"version {version}"))
    store.register_scorer(one, "other", _scorer("other", "a scorer"))
    store.register_scorer(two, "big", _scorer("big", big if is_sqlite else big[:50_000]))
    store.register_scorer(gone, "in a deleted experiment", _scorer("gone", ""))
    store.delete_scorer(one, UNICODE, 2)
    store.delete_experiment(gone)
    # Online configurations need an endpoint of the gateway.
    config = sqlalchemy.text(
        "INSERT INTO online_scoring_configs (online_scoring_config_id, scorer_id, sample_rate, experiment_id, filter_string) "
        "SELECT '0123456789abcdef0123456789abcdef', scorer_id, 0.1, experiment_id, 'tag.a = ''b''' FROM scorers "
        "WHERE scorer_name = 'other'"
    )
    with store.engine.begin() as connection:
        connection.execute(config)
    store.engine.dispose()
    return {"dataset": dataset.dataset_id, "empty": "empty", "one": one, "two": two, "gone": gone}


def seen(url: str) -> dict[str, str]:
    """Returns what clients of a server, or users of a database, see of datasets and scorers, without
    the ids of records and scorers.
    """
    import mlflow

    store = mlflow.MlflowClient(url)._tracking_client.store
    result: dict[str, Any] = {}
    for order in (["created_time ASC"], ["created_time DESC"], ["name DESC"], ["last_update_time ASC"]):
        result[f"datasets {order}"] = [dataset.dataset_id for dataset in store.search_datasets(order_by=order)]
    experiments = store.search_experiments(view_type=mlflow.entities.ViewType.ALL, max_results=100)
    ids = sorted(experiment.experiment_id for experiment in experiments)
    for id_ in ids:
        found = store.search_datasets(experiment_ids=[id_], order_by=["created_time ASC"])
        result[f"datasets of {id_}"] = [dataset.dataset_id for dataset in found]
    for dataset in store.search_datasets():
        entity = store.get_dataset(dataset.dataset_id)
        # Otherwise, the client would read them from the server that the process uses by default.
        entity._experiment_ids, entity._records = [], []
        result[dataset.name] = {**entity.to_dict(), "records": None, "experiment_ids": None}
        result[f"experiments of {dataset.name}"] = store.get_dataset_experiment_ids(dataset.dataset_id)
        records, token = [], None
        while True:
            page, token = store._load_dataset_records(dataset.dataset_id, max_results=500, page_token=token)
            records += [{**record.to_dict(), "dataset_record_id": None} for record in page]
            if not token:
                break
        result[f"records of {dataset.name}"] = records
    active = [experiment.experiment_id for experiment in experiments if experiment.lifecycle_stage == "active"]
    for id_ in sorted(active):
        for scorer in store.list_scorers(id_):
            versions = store.list_scorer_versions(id_, scorer.scorer_name)
            result[f"scorer {scorer.scorer_name} of {id_}"] = [{**vars(version), "_scorer_id": None} for version in versions]
            configs = store.get_online_scoring_configs([scorer.scorer_id])
            result[f"configurations of {scorer.scorer_name} of {id_}"] = [{**vars(config), "scorer_id": None} for config in configs]
    # As texts, because NaN is not equal to itself.
    return {what: json.dumps(value, sort_keys=True, default=str) for what, value in result.items()}
