"""Tests `mlflow.genai.evaluate` on a dataset, with scorers that run in the client."""

import mlflow
import mlflow.genai
import pytest
from mlflow import MlflowClient
from mlflow.entities import Feedback, SpanType
from mlflow.genai import datasets
from mlflow.genai.scorers import scorer

#: test_same_evaluation.py evaluates such a dataset, and compares the results with stock MLflow.
pytestmark = pytest.mark.slow

_ANSWERS = {"What is MLflow?": "a platform", "And Rust?": "a metal"}


@mlflow.trace(span_type=SpanType.AGENT)
def _agent(question: str) -> str:
    return _ANSWERS[question]


@scorer
def correct(outputs: str, expectations: dict) -> bool:
    return outputs == expectations["answer"]


@scorer
def short(outputs: str) -> Feedback:
    return Feedback(value=len(outputs), rationale="its length")


@pytest.fixture(autouse=True)
def _synchronous(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_ENABLE_ASYNC_TRACE_LOGGING", "false")


def test_results_are_in_the_run_and_in_the_traces(client: MlflowClient, experiment: str):
    mlflow.set_experiment(experiment_id=experiment)
    dataset = datasets.create_dataset(name="questions", experiment_id=experiment)
    dataset.merge_records([
        {"inputs": {"question": "What is MLflow?"}, "expectations": {"answer": "a platform"}},
        {"inputs": {"question": "And Rust?"}, "expectations": {"answer": "a language"}},
    ])

    result = mlflow.genai.evaluate(data=dataset, predict_fn=_agent, scorers=[correct, short])

    run = client.get_run(result.run_id)
    assert run.info.status == "FINISHED"
    assert run.data.metrics == {"correct/mean": 0.5, "short/mean": (len("a platform") + len("a metal")) / 2}
    assert [used.dataset.name for used in run.inputs.dataset_inputs] == ["questions"]
    traces = mlflow.search_traces(locations=[experiment], run_id=result.run_id, return_type="list")
    judged = {
        trace.data.spans[0].inputs["question"]: {
            assessment.name: assessment.value for assessment in trace.info.assessments
        }
        for trace in traces
    }
    assert judged == {
        "What is MLflow?": {"answer": "a platform", "correct": True, "short": 10},
        "And Rust?": {"answer": "a language", "correct": False, "short": 7},
    }
    wrong = mlflow.search_traces(locations=[experiment], filter_string="feedback.correct = 'false'", return_type="list")
    assert [trace.data.spans[0].outputs for trace in wrong] == ["a metal"]
