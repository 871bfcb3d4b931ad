"""Creates the data that the pages show with the stock client, identical on every server.

`python -m tests.browser.data URL FILE MINUTE PART...` creates it, and writes the ids that the
server has generated to the file. It runs as a separate process, so that two servers can be filled
concurrently.
"""

import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

# Set before mlflow is imported anywhere, so that no telemetry is sent.
os.environ.update(MLFLOW_DISABLE_TELEMETRY="true", DO_NOT_TRACK="true", GIT_PYTHON_REFRESH="quiet", MPLBACKEND="Agg")
# Synchronous, so that all traces have been sent when the program ends.
os.environ.update(MLFLOW_ENABLE_ASYNC_TRACE_LOGGING="false")
os.environ.setdefault("USER", "tester")

import matplotlib.pyplot
import mlflow
import mlflow.genai
import mlflow.genai.datasets
import mlflow.models
import mlflow.sklearn
import numpy
import pandas
from mlflow import MlflowClient
from mlflow.entities import AssessmentSource, Metric, Param, RunTag, SpanType
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from tests.browser.names import HARD, MANY_RUNS, MODEL, PARTS, QUESTIONS, SESSION, SOME_RUNS, STEPS


def make(url: str, minute: int, parts: list[str]) -> dict[str, str]:
    """Creates these parts on an empty server, with traces in this minute since 1970. Returns the
    ids that the server has generated, by name.
    """
    mlflow.set_tracking_uri(url)
    client = MlflowClient(url)
    return {name: made for part, make in _PARTS.items() if part in parts for name, made in make(client, minute).items()}


def _training(client: MlflowClient, _minute: int) -> dict[str, str]:
    """Creates a run with autologging and two without: three logged models, which are three versions
    of a registered model.
    """
    data, labels = load_iris(return_X_y=True, as_frame=True)
    experiment = mlflow.set_experiment("training").experiment_id
    mlflow.sklearn.autolog(silent=True, registered_model_name=MODEL)
    with mlflow.start_run(run_name="autologged") as run:
        LogisticRegression(C=0.5, max_iter=300).fit(data, labels)
        mlflow.log_input(mlflow.data.from_pandas(data, name="iris", source="https://example.com/iris"), "training")
    mlflow.sklearn.autolog(disable=True, silent=True)
    for c in (1.0, 2.0):
        model = LogisticRegression(C=c, max_iter=300).fit(data, labels)
        with mlflow.start_run(run_name=f"by hand {c}"):
            mlflow.log_params({"C": c, "max_iter": 300})
            mlflow.sklearn.log_model(
                model,
                name="model",
                params={"C": c},
                registered_model_name=MODEL,
                input_example=data.head(2),
                pip_requirements=["scikit-learn"],
            )
            mlflow.log_metric("accuracy", round(model.score(data, labels), 3))
    client.update_registered_model(MODEL, "Tells irises apart.")
    client.set_registered_model_tag(MODEL, "team", "botany")
    client.set_model_version_tag(MODEL, "2", "reviewed", "yes")
    client.update_model_version(MODEL, "2", "The **second** one.")
    client.set_registered_model_alias(MODEL, "champion", "2")
    client.set_registered_model_alias(MODEL, "challenger", "3")
    return {"training": experiment, "autologged": run.info.run_id, "logged model": mlflow.last_logged_model().model_id}


def _artifacts(_client: MlflowClient, _minute: int) -> dict[str, str]:
    """Creates a run with an artifact of every kind that the run's page can show."""
    experiment = mlflow.set_experiment("artifacts").experiment_id
    picture = numpy.zeros((32, 48, 3), dtype=numpy.uint8)
    picture[:, 16:32] = (255, 128, 0)
    figure, axes = matplotlib.pyplot.subplots(figsize=(2, 2))
    axes.plot([1, 2, 4])
    with mlflow.start_run(run_name="with artifacts") as run, tempfile.TemporaryDirectory() as directory:
        mlflow.log_image(picture, "picture.png")
        for step in range(3):
            mlflow.log_image(picture + step, key="steps", step=step)
        mlflow.log_figure(figure, "plots/figure.png")
        mlflow.log_table({"question": ["one?", "two?"], "answer": ["eins", "zwei"]}, "table.json")
        mlflow.log_text("A line of text.\nAnother line.\n", "notes/text.txt")
        mlflow.log_text("# A heading\n\nand *words*\n", "notes/readme.md")
        mlflow.log_text("<h1>A page</h1>", "page.html")
        mlflow.log_dict({"colour": "orange", "sizes": [1, 2]}, "settings.json")
        Path(directory, "numbers.csv").write_text("name,value\nfirst,1\nsecond,2\n")
        Path(directory, "unknown.bin").write_bytes(bytes(range(256)))
        mlflow.log_artifacts(directory, "files")
        _save_model(run.info.run_id)
    matplotlib.pyplot.close(figure)
    return {"artifacts": experiment, "with artifacts": run.info.run_id}


def _save_model(run: str) -> None:
    """Saves a model in the artifacts of a run, like MLflow 2."""
    data, labels = load_iris(return_X_y=True, as_frame=True)
    model = LogisticRegression(max_iter=300).fit(data, labels)
    with tempfile.TemporaryDirectory() as directory:
        signature = mlflow.models.infer_signature(data, labels)
        mlflow.sklearn.save_model(model, f"{directory}/model", signature=signature, pip_requirements=["scikit-learn"])
        mlflow.log_artifacts(f"{directory}/model", "model")
        saved = mlflow.models.Model.load(f"{directory}/model")
    saved.run_id, saved.artifact_path = run, "model"
    MlflowClient()._record_logged_model(run, saved)


def _nested(_client: MlflowClient, _minute: int) -> dict[str, str]:
    experiment = mlflow.set_experiment("nested").experiment_id
    with mlflow.start_run(run_name="parent") as parent:
        mlflow.set_tag("mlflow.note.content", "The parent of **two**.")
        for number in range(2):
            with mlflow.start_run(run_name=f"child {number}", nested=True):
                mlflow.log_param("number", number)
                mlflow.log_metric("score", number / 4)
                if number == 0:
                    with mlflow.start_run(run_name="grandchild", nested=True):
                        mlflow.log_metric("score", 1.5)
    with mlflow.start_run(run_name="alone") as alone:
        mlflow.log_metric("score", 2)
    return {"nested": experiment, "parent": parent.info.run_id, "alone": alone.info.run_id}


def _curves(client: MlflowClient, _minute: int) -> dict[str, str]:
    """Creates three runs with 1,000 steps of two metrics."""
    experiment = client.create_experiment("curves")
    ids = {}
    for number in range(3):
        run = client.create_run(experiment, run_name=f"curve {number}").info
        for key, scale in (("accuracy", -1.0), ("loss", 1.0)):
            values = [round(scale * (number + 1) / (step + 1), 6) for step in range(STEPS)]
            points = [Metric(key, value, run.start_time + step, step) for step, value in enumerate(values)]
            client.log_batch(run.run_id, points)
        client.log_batch(run.run_id, params=[Param("rate", str(0.1 * (number + 1))), Param("same", "everywhere")])
        client.set_terminated(run.run_id)
        ids[f"curve {number}"] = run.run_id
    return {"curves": experiment} | ids


def _some(client: MlflowClient, _minute: int) -> dict[str, str]:
    """Creates runs for filtering, sorting and grouping."""
    experiment = client.create_experiment("some")
    for number in range(SOME_RUNS):
        _plain_run(client, experiment, number, (number * 7) % SOME_RUNS)
    return {"some": experiment}


def _many(client: MlflowClient, _minute: int) -> dict[str, str]:
    """Creates more runs than fit on a page."""
    experiment = client.create_experiment("many", tags={"team": "botany"})
    mlflow.set_experiment(experiment_id=experiment)
    dataset = mlflow.data.from_pandas(pandas.DataFrame({"x": [1, 2]}), name="small", source="https://example.com/small")
    for number in range(MANY_RUNS):
        run = _plain_run(client, experiment, number, (number * 37) % MANY_RUNS)
        if number >= MANY_RUNS - 2:
            with mlflow.start_run(run_id=run):
                mlflow.log_input(dataset, "testing")
            client.set_terminated(run)
    return {"many": experiment}


def _plain_run(client: MlflowClient, experiment: str, number: int, score: int) -> str:
    run = client.create_run(experiment, run_name=f"run {number:03}").info
    client.log_batch(
        run.run_id,
        metrics=[Metric("score", score, run.start_time, 0)],
        params=[Param("layers", str(number % 3)), Param("rate", "0.1")],
        tags=[RunTag("kind", "even" if number % 2 == 0 else "odd")],
    )
    client.set_terminated(run.run_id, "FAILED" if number % 50 == 0 else "FINISHED")
    return run.run_id


def _prompts(_client: MlflowClient, _minute: int) -> dict[str, str]:
    mlflow.genai.register_prompt("greeting", "Hello {{name}}!", "The first words", tags={"tone": "warm"})
    mlflow.genai.register_prompt("greeting", "Good day, {{name}}.", "More formal", tags={"tone": "cool"})
    mlflow.genai.set_prompt_alias("greeting", "production", 1)
    mlflow.genai.register_prompt(
        "chat", [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "{{question}}"}], "A chat"
    )
    return {}


def _evaluation(_client: MlflowClient, _minute: int) -> dict[str, str]:
    experiment = mlflow.set_experiment("evaluation").experiment_id
    dataset = mlflow.genai.datasets.create_dataset("questions", experiment_id=experiment, tags={"team": "botany"})
    # One record per call, because the order of records in the same call is undefined.
    for number in range(3):
        record = {"inputs": {"question": f"What is {number}?"}, "expectations": {"answer": str(number)}}
        dataset.merge_records([record | {"tags": {"number": str(number)}}])
    mlflow.genai.datasets.create_dataset("nothing yet", experiment_id=experiment)
    return {"evaluation": experiment, "questions": dataset.dataset_id}


def _traces(_client: MlflowClient, minute: int) -> dict[str, str]:
    """Creates traces of an agent in a run: questions in two conversations, one of which fails, and
    some of which are assessed.
    """
    experiment = mlflow.set_experiment("agent").experiment_id
    ids = {}
    with mlflow.start_run(run_name="asked") as run:
        for number, question in enumerate(QUESTIONS):
            ids[f"trace {number}"] = _ask(minute, number, question)
    source = AssessmentSource("HUMAN", "tester")
    mlflow.log_feedback(trace_id=ids["trace 0"], name="helpful", value=True, source=source, rationale="Short and right.")
    mlflow.log_feedback(trace_id=ids["trace 1"], name="helpful", value=False, source=source)
    mlflow.log_expectation(trace_id=ids["trace 0"], name="answer", value="Carpels.", source=source)
    return {"agent": experiment, "asked": run.info.run_id} | ids


def _ask(minute: int, number: int, question: str) -> str:
    """Creates a trace with a retriever, a model and a tool that may fail, with fixed times, because
    they determine the axes of charts. Returns its id.
    """
    # All traces are in the same minute on both sides, because charts sum up values per interval.
    begin = (minute * 60 + number) * 10**9
    agent = mlflow.start_span_no_context(
        "agent",
        SpanType.AGENT,
        inputs={"question": question},
        tags={"topic": "botany" if number % 2 == 0 else "chemistry"},
        metadata={"mlflow.trace.session": SESSION if number < 3 else "another session", "mlflow.trace.user": "tester"},
        start_time_ns=begin,
    )

    def child(name: str, kind: str, milliseconds: tuple[int, int], inputs: object) -> Callable[..., None]:
        start, end = (begin + 10**6 * at for at in milliseconds)
        span = mlflow.start_span_no_context(name, kind, parent_span=agent, inputs=inputs, start_time_ns=start)
        return lambda outputs, **more: span.end(outputs, end_time_ns=end, **more)

    child("search", SpanType.RETRIEVER, (5, 105), {"query": question})(
        [{"page_content": "Petals surround the carpels.", "metadata": {"source": "flora"}}]
    )
    usage = {"input_tokens": 10 + number, "output_tokens": 5, "total_tokens": 15 + number}
    child("answer", SpanType.CHAT_MODEL, (110, 410 + 100 * number), {"messages": [{"role": "user", "content": question}]})(
        {"choices": [{"message": {"role": "assistant", "content": f"Answer {number}."}}]},
        attributes={"mlflow.chat.tokenUsage": usage},
    )
    state = "ERROR" if number == HARD else "OK"
    child("calculator", SpanType.TOOL, (420 + 100 * number, 520 + 100 * number), {"number": number})(
        {"result": number}, status=state
    )
    agent.end({"answer": f"Answer {number}."}, status=state, end_time_ns=begin + 10**6 * (600 + 100 * number))
    return agent.trace_id


#: The functions by name (`tests.browser.names.PARTS`), in the order of creation.
_PARTS = dict(zip(PARTS, (_training, _artifacts, _nested, _curves, _some, _many, _prompts, _evaluation, _traces), strict=True))


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(make(sys.argv[1], int(sys.argv[3]), sys.argv[4:])))
