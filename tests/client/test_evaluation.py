"""Tests of evaluation datasets and scorers, as used through `mlflow.genai`."""

import math
import time

import mlflow
import pandas as pd
import pytest
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from mlflow.genai import datasets
from mlflow.genai.judges import make_judge
from mlflow.genai.scorers import Guidelines, RetrievalGroundedness, delete_scorer, get_scorer, list_scorers, scorer

from tests.support.http import Request, Side
from tests.support.servers import subject_is_stock_mlflow


@pytest.fixture(autouse=True)
def _as_ann(monkeypatch: pytest.MonkeyPatch, client: MlflowClient) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "ann")


def test_a_dataset_from_its_creation_to_its_end(client: MlflowClient, experiment: str):
    other = client.create_experiment(f"{experiment} other")
    created = datasets.create_dataset(name="questions", experiment_id=[experiment], tags={"team": "search"})
    assert created.experiment_ids == [experiment]
    found = datasets.get_dataset(dataset_id=created.dataset_id)
    assert (found.name, found.tags["team"], found.schema, found.profile) == ("questions", "search", None, None)
    assert found.created_by == found.tags["mlflow.user"]

    datasets.set_dataset_tags(dataset_id=created.dataset_id, tags={"team": "chat", "size": 7})
    datasets.delete_dataset_tag(dataset_id=created.dataset_id, key="size")
    assert datasets.get_dataset(dataset_id=created.dataset_id).tags["team"] == "chat"
    assert "size" not in datasets.get_dataset(dataset_id=created.dataset_id).tags

    datasets.add_dataset_to_experiments(dataset_id=created.dataset_id, experiment_ids=[other])
    assert set(datasets.get_dataset(dataset_id=created.dataset_id).experiment_ids) == {experiment, other}
    assert [found.name for found in datasets.search_datasets(experiment_ids=[other])] == ["questions"]
    datasets.remove_dataset_from_experiments(dataset_id=created.dataset_id, experiment_ids=[experiment])
    assert datasets.get_dataset(dataset_id=created.dataset_id).experiment_ids == [other]
    assert not datasets.search_datasets(experiment_ids=[experiment])

    datasets.delete_dataset(dataset_id=created.dataset_id)
    with pytest.raises(MlflowException, match="not found"):
        datasets.get_dataset(dataset_id=created.dataset_id)
    assert not datasets.search_datasets(experiment_ids=[other])


def test_records_are_merged_and_deleted(experiment: str):
    dataset = datasets.create_dataset(name="records", experiment_id=experiment)
    dataset.merge_records([
        {"inputs": {"question": "What is MLflow?"}, "expectations": {"answer": "a platform"}},
        {"inputs": {"question": "And Rust?"}, "tags": {"topic": "languages"}},
    ])
    dataset.merge_records([{"inputs": {"question": "And Rust?"}, "expectations": {"answer": "a language"}}])
    frame = dataset.to_df()
    assert list(frame["inputs"]) == [{"question": "What is MLflow?"}, {"question": "And Rust?"}]
    assert frame["expectations"][1] == {"answer": "a language"}
    assert frame["tags"][1]["topic"] == "languages"
    assert list(frame["source_type"]) == ["HUMAN", "CODE"]
    again = datasets.get_dataset(dataset_id=dataset.dataset_id)
    assert again.profile == '{"num_records": 2}'
    assert again.digest != dataset.digest

    assert dataset.delete_records([frame["dataset_record_id"][0]]) == 1
    assert list(dataset.to_df()["inputs"]) == [{"question": "And Rust?"}]


def test_what_python_calls_json_comes_back(experiment: str):
    dataset = datasets.create_dataset(name="json", experiment_id=experiment)
    inputs = {"nan": math.nan, "inf": math.inf, "big": 2**80, "é": "日本 😀", "deep": [{"a": [1, 2.0, None, True]}]}
    dataset.merge_records(pd.DataFrame([{"inputs": inputs, "expectations": {"x": -0.0}}]))
    found = datasets.get_dataset(dataset_id=dataset.dataset_id).to_df()
    returned = found["inputs"][0]
    assert math.isnan(returned.pop("nan")) and math.isnan(inputs.pop("nan"))
    assert returned == inputs and list(returned) == list(inputs)
    assert math.copysign(1, found["expectations"][0]["x"]) == -1


def test_a_search_finds_what_was_asked_for(client: MlflowClient, experiment: str):
    for number in range(12):
        datasets.create_dataset(name=f"set {number % 3}", experiment_id=experiment, tags={"n": str(number)})
        time.sleep(0.002)
    def found(**search):
        return [found.tags["n"] for found in client.search_datasets(experiment_ids=[experiment], **search)]
    assert found() == [str(number) for number in reversed(range(12))]
    assert found(filter_string="name = 'set 1'", order_by=["created_time ASC"]) == ["1", "4", "7", "10"]
    assert found(filter_string="tags.n = '5'") == ["5"]
    assert found(filter_string="name LIKE 'set%' AND created_by = 'nobody'") == []
    page = client.search_datasets(experiment_ids=[experiment], max_results=5)
    rest = client.search_datasets(experiment_ids=[experiment], max_results=50, page_token=page.token)
    assert len(page) == 5 and len(rest) == 7


def test_scorers_are_registered_listed_and_deleted(experiment: str):
    politeness = Guidelines(name="politeness", guidelines=["Be polite."])
    assert politeness.register(experiment_id=experiment).name == "politeness"
    Guidelines(name="politeness", guidelines=["Be very polite."]).register(experiment_id=experiment)
    RetrievalGroundedness().register(experiment_id=experiment)
    judge = make_judge(name="brevity", instructions="Is {{ outputs }} short?", model="openai:/gpt-4o")
    judge.register(experiment_id=experiment)

    assert [found.name for found in list_scorers(experiment_id=experiment)] == [
        "brevity", "politeness", "retrieval_groundedness",
    ]
    assert get_scorer(name="politeness", experiment_id=experiment).guidelines == ["Be very polite."]
    assert get_scorer(name="politeness", experiment_id=experiment, version=1).guidelines == ["Be polite."]
    assert "short" in get_scorer(name="brevity", experiment_id=experiment).instructions

    delete_scorer(name="politeness", experiment_id=experiment, version=2)
    assert get_scorer(name="politeness", experiment_id=experiment).guidelines == ["Be polite."]
    delete_scorer(name="politeness", experiment_id=experiment, version="all")
    with pytest.raises(MlflowException, match="not found"):
        get_scorer(name="politeness", experiment_id=experiment)
    assert len(list_scorers(experiment_id=experiment)) == 2


def test_a_scorer_with_code_is_refused(experiment: str):
    @scorer
    def is_short(outputs):
        return len(outputs) < 5

    with pytest.raises(MlflowException, match="Custom scorer registration"):
        is_short.register(experiment_id=experiment)


@pytest.mark.big
@pytest.mark.slow
def test_a_hundred_thousand_records(experiment: str, side: Side):
    if subject_is_stock_mlflow():
        pytest.skip("takes hours on stock MLflow")
    count, batch = 100_000, 5_000
    dataset = datasets.create_dataset(name="large", experiment_id=experiment)
    filler = "a few words that stand for the context of a question, " * 8
    begin = time.monotonic()
    for start in range(0, count, batch):
        dataset.merge_records([
            {"inputs": {"question": f"question {number}", "context": filler}, "expectations": {"answer": number}}
            for number in range(start, start + batch)
        ])
    merged = time.monotonic()
    found = dataset.to_df()
    read = time.monotonic()
    print(f"merged in {merged - begin:.0f} s, read in {read - merged:.0f} s")
    assert [expected["answer"] for expected in found["expectations"]] == list(range(count))
    assert datasets.get_dataset(dataset_id=dataset.dataset_id).profile == f'{{"num_records": {count}}}'
    # Merges the last record again, which must not add a record.
    body = '{"records": "[{\\"inputs\\": {\\"question\\": \\"question 99999\\", \\"context\\": \\"' + filler + '\\"}}]"}'
    path = f"/api/3.0/mlflow/datasets/{dataset.dataset_id}/records"
    answer = side.send(Request("POST", path, body=body.encode(), headers={"Content-Type": "application/json"}))
    assert answer.body == {"inserted_count": 0, "updated_count": 1}
    datasets.delete_dataset(dataset_id=dataset.dataset_id)
    assert side.send(Request("GET", path)).body == {"records": "[]"}
