"""Runs `mlflow demo` of MLflow 3.18: `demo_program.py URL TIME`. The demo's scores are hashes of the
contents of traces, which contain ids. So that they are the same whenever the program runs, the traces
start at times relative to TIME, in seconds, and ids are derived from the same seed.
"""

import random
import sys
from datetime import datetime, tzinfo
from types import SimpleNamespace
from uuid import UUID

from mlflow.cli import cli
from mlflow.demo.generators import traces
from mlflow.tracing import attachments
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator


class _Clock(datetime):
    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:
        return datetime.fromtimestamp(float(sys.argv[2]), tz)


# Other threads use the global generator, so there is one for each kind of id.
_traces, _attachments = random.Random(1), random.Random(2)

traces.datetime = _Clock
RandomIdGenerator.generate_trace_id = lambda _: _traces.getrandbits(128)
attachments.uuid = SimpleNamespace(uuid4=lambda: UUID(int=_attachments.getrandbits(128), version=4))
cli(["demo", "--no-browser", "--tracking-uri", sys.argv[1]])
