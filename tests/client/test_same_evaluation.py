"""Compares the results of `mlflow.genai.evaluate` with stock MLflow."""

import time
from typing import Any

import mlflow
import mlflow.genai
import pytest
from mlflow import MlflowClient
from mlflow.entities import Feedback, SpanType
from mlflow.genai import datasets
from mlflow.genai.scorers import scorer

from tests.client.both import Both, rows

_ANSWERS = {"What is MLflow?": "a platform", "And Rust?": "a metal", "And S3?": "a store"}
_RECORDS = [
    {"inputs": {"question": "What is MLflow?"}, "expectations": {"answer": "a platform"}, "tags": {"topic": "tracking"}},
    {"inputs": {"question": "And Rust?"}, "expectations": {"answer": "a language", "words": ["a", "language"]}},
    {"inputs": {"question": "And S3?"}, "expectations": {"answer": "a store"}},
]


@mlflow.trace(span_type=SpanType.AGENT)
def _agent(question: str) -> str:
    with mlflow.start_span("chat", span_type=SpanType.CHAT_MODEL) as span:
        span.set_outputs(_ANSWERS[question])
    return _ANSWERS[question]


@scorer
def correct(outputs: str, expectations: dict) -> bool:
    return outputs == expectations["answer"]


@scorer(aggregations=["mean", "max", "p90"])
def length(outputs: str) -> Feedback:
    if outputs == "a store":
        raise ValueError("cannot be measured")
    return Feedback(value=len(outputs), rationale="its length", metadata={"unit": "characters"})


def _run(run_id: str) -> dict[str, Any]:
    """Returns a run without its own times."""
    run = MlflowClient().get_run(run_id).to_dictionary()
    del run["info"]["start_time"], run["info"]["end_time"]
    return run


def test_an_evaluation_over_a_dataset_and_one_over_traces(both: Both, monkeypatch: pytest.MonkeyPatch):
    # One worker, so that the clock is read in the same order on both sides.
    monkeypatch.setenv("MLFLOW_GENAI_EVAL_MAX_WORKERS", "1")
    monkeypatch.setenv("MLFLOW_GENAI_EVAL_MAX_SCORER_WORKERS", "1")

    def program(experiment: str) -> Any:
        dataset = datasets.create_dataset(name="questions", experiment_id=experiment, tags={"team": "search"})
        for record in _RECORDS:
            # Avoids records with equal times, which stock MLflow sorts by generated ids.
            time.sleep(0.003)
            dataset.merge_records([record])
        with mlflow.start_run(run_name="of a dataset"):
            first = mlflow.genai.evaluate(data=dataset, predict_fn=_agent, scorers=[correct, length])
        traces = mlflow.search_traces(locations=[experiment], run_id=first.run_id, return_type="list")
        with mlflow.start_run(run_name="of traces"):
            second = mlflow.genai.evaluate(data=traces, scorers=[length])
        found = []
        for result in (first, second):
            frame = result.result_df
            of_run = mlflow.search_traces(locations=[experiment], run_id=result.run_id, return_type="list")
            found.append([result.metrics, list(frame.columns), rows(frame), _run(result.run_id), [trace.info.trace_id for trace in of_run]])
        return found, datasets.get_dataset(dataset_id=dataset.dataset_id).to_df().to_dict("records")

    both.compare("evaluation", program)
