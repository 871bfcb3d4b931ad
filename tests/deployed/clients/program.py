"""Logs a model with files, or loads it: `program.py log DIRECTORY` and `program.py load URI`, with
any MLflow since 2.22.

The last line of the output is JSON: the URI of the model and the digests of the files in DIRECTORY,
or the digests of the loaded files.
"""

import hashlib
import json
import sys
from pathlib import Path

import mlflow
import pandas
from mlflow.pyfunc import PythonModel


class Digests(PythonModel):
    """A model that predicts the SHA-256 of each of its files."""

    def predict(self, context, model_input, params=None):
        return [f"{name} {hashlib.sha256(Path(path).read_bytes()).hexdigest()}" for name, path in sorted(context.artifacts.items())]


def log(directory: str) -> None:
    files = {path.name.partition(".")[0]: path for path in sorted(Path(directory).iterdir())}
    named = "name" if int(mlflow.__version__.partition(".")[0]) >= 3 else "artifact_path"
    mlflow.set_experiment("models of stock clients")
    with mlflow.start_run():
        model = mlflow.pyfunc.log_model(
            **{named: "model"},
            python_model=Digests(),
            artifacts={name: str(path) for name, path in files.items()},
            # Empty, so that MLflow does not inspect the environment.
            pip_requirements=[],
        )
    digests = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    print(json.dumps({"version": mlflow.__version__, "uri": model.model_uri, "digests": digests}))


def load(uri: str) -> None:
    model = mlflow.pyfunc.load_model(uri)
    predicted = model.predict(pandas.DataFrame({"nothing": [0]}))
    print(json.dumps({"digests": dict(line.split(" ") for line in predicted)}))


if __name__ == "__main__":
    {"log": log, "load": load}[sys.argv[1]](sys.argv[2])
