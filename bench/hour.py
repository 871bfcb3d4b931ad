"""Simulates a busy hour of the smallest team in cost.md with `serve`, and bills its request lines.

Takes about twenty minutes. The team is described in docs/reference/cost.md.

  .venv/bin/python -m bench.hour                               # prints both bills
  .venv/bin/python -m bench.hour --output tools/cost/hour.tsv  # stores the lines for `make docs`
  .venv/bin/python -m bench.hour --share 0.1                   # a tenth of the calls

Each run takes its usual five minutes, with a batch per second, so that leases expire and runs are
indexed as in a real hour. All runs of the hour are in progress at the same time, each in its own
experiment. Users look at an experiment without runs in progress.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import requests

from tests.support.servers import ServerlessMlflow, binary
from tools.cost.hour import Hour, busy_hour, parts, said
from tools.cost.lines import Line, bill, read, write
from tools.cost.write import read as read_model

_PASSWORD = "correct horse battery"
_V2, _V3 = "/api/2.0/mlflow", "/api/3.0/mlflow"
_UI = "/ajax-api/2.0/mlflow"
_PEOPLE = 10
#: Number of runs in the experiment that users look at. Searches cost the same with ten times as
#: many.
_RUNS = 1_000
#: Number of runs in the experiment with a chart, and points per run, as on the capacity page of
#: GraphQL.
_CHARTED, _POINTS = 50, 500
#: Number of existing traces, which fill several blocks when packed.
_TRACES = 320
_BATCHES = 300
#: Words of the texts of spans, as on the capacity page.
_WORDS = ("what", "is", "the", "answer", "of", "model", "when", "context", "says", "nothing", "about", "it")
_RUN = "query Q($i: MlflowGetRunInput!) { mlflowGetRun(input: $i) { run { info { runName } data { metrics { key value } params { key } } %s } } }"
_OF_RUN = "experiment { name } modelVersions { name }"
_HISTORY = """query Q($i: MlflowGetMetricHistoryBulkIntervalInput!) {
  mlflowGetMetricHistoryBulkInterval(input: $i) { metrics { runId step value } } }"""
#: Number of seconds without indexing or packing after which all work is considered done. Longer
#: than the delay of postponed work.
_REST = 270


class Caller:
    """A program or user, with its own connection."""

    def __init__(self, url: str, **headers: str):
        self._url, self._session = url, requests.Session()
        self._session.headers.update(headers)

    def ask(self, method: str, path: str, **content: Any) -> Any:
        answer = self._session.request(method, self._url + path, timeout=300, allow_redirects=False, **content)
        assert answer.status_code < 400, f"{method} {path}: {answer.status_code} {answer.text[:300]}"
        return answer.json() if "json" in answer.headers.get("content-type", "") else answer

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return self.ask("POST", path, json=body)


def _spread(number: int, salt: int) -> int:
    return random.Random(f"{number} {salt}").randrange(1 << 30)


def _entries(**values: str) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in values.items()]


def _metrics(number: int, time_: int, step: int) -> list[dict[str, Any]]:
    return [{"key": f"metric_{at}", "value": _spread(number, at + 100 * step) % 100_000 / 100, "timestamp": time_, "step": step} for at in range(10)]


# ---- data that exists before the hour


def _experiment(url: str, name: str) -> str:
    return Caller(url).post(f"{_V2}/experiments/create", {"name": name})["experiment_id"]


def _run(caller: Caller, experiment: str, number: int, **of_run: Any) -> str:
    new = {"experiment_id": experiment, "run_name": f"run {number}", "start_time": 1_700_000_000_000 + number} | of_run
    return caller.post(f"{_V2}/runs/create", new)["run"]["info"]["run_id"]


def _finish(caller: Caller, run: str) -> None:
    caller.post(f"{_V2}/runs/update", {"run_id": run, "status": "FINISHED", "end_time": 1_700_000_100_000})


def _old_run(url: str, experiment: str, number: int) -> None:
    """Creates a run with 10 metrics, 5 params and 3 tags, as on the capacity page."""
    caller = Caller(url)
    run = _run(caller, experiment, number)
    params = {name: f"{name} {_spread(number, salt) % count}" for salt, (name, count) in enumerate({"model": 5, "rate": 100, "layers": 12, "optimizer": 3}.items())}
    tags = _entries(team=f"team {_spread(number, 23) % 3}", owner=f"owner {_spread(number, 29) % 40}", note=f"note of {number}")
    caller.post(f"{_V2}/runs/log-batch", {"run_id": run, "metrics": _metrics(number, 1, 1), "params": _entries(**params, seed=str(number)), "tags": tags})
    _finish(caller, run)


def _charted_run(url: str, experiment: str, number: int) -> str:
    caller = Caller(url)
    run = _run(caller, experiment, number)
    points = [{"key": "loss", "value": step, "timestamp": step, "step": step} for step in range(_POINTS)]
    caller.post(f"{_V2}/runs/log-batch", {"run_id": run, "metrics": points, "params": _entries(rate="0.1")})
    _finish(caller, run)
    return run


def _trace(caller: Caller, experiment: str, number: int) -> None:
    """Exports a trace with ten spans and 5 KB, and sends its info, in two calls."""
    noise = random.Random(number)
    trace, now = f"{noise.getrandbits(128):032x}", time.time_ns()
    spans = []
    for at in range(10):
        said_ = [{"key": "input", "value": {"stringValue": " ".join(f"{noise.choice(_WORDS)}{noise.randrange(97)}" for _ in range(50))}}]
        span = {"traceId": trace, "spanId": f"{at + 1:016x}", "name": f"step {at}", "startTimeUnixNano": str(now), "endTimeUnixNano": str(now + 1000), "attributes": said_}
        spans.append(span | ({"parentSpanId": f"{1:016x}"} if at else {}))
    body = {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}
    caller.ask("POST", "/v1/traces", json=body, headers={"x-mlflow-experiment-id": experiment})
    info = {
        "trace_id": f"tr-{trace}",
        "trace_location": {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": experiment}},
        "request_time": f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now // 10**9))}.{now // 10**6 % 1000:03d}Z",
        "execution_duration": "0.1s",
        "state": "OK",
        "request_preview": "x" * 150,
        "response_preview": "x" * 200,
        "trace_metadata": {"mlflow.trace_schema.version": "3", "mlflow.user": "somebody", "mlflow.source.name": "/home/somebody/agent.py", "mlflow.trace.sizeBytes": "5000"},
        "tags": {"mlflow.traceName": "agent"},
    }
    caller.post(f"{_V3}/traces", {"trace": {"trace_info": info}})


class World:
    """Two servers with the same data: one for programs, like the API of signed requests, and one
    for users who have signed in.
    """

    def __init__(self, directory: Path):
        data = ["--data", str(directory / "data")]
        made = subprocess.run([str(binary()), "admin", "create", "admin", *data], input=f"{_PASSWORD}\n", capture_output=True, text=True, timeout=300)
        assert made.returncode == 0, made.stderr
        told = {"RUST_LOG": "warn,request=info"}
        # The delay is the stack's batching window.
        self.jobs = ServerlessMlflow(directory, options=["--indexer-delay", "5000"], environment=told, artifact_root="mlflow-artifacts:/")
        users = ["--auth", "basic", "--default-permission", "READ", "--no-indexer"]
        self.users = ServerlessMlflow(directory, options=users, environment=told, artifact_root="mlflow-artifacts:/")

    def stop(self) -> None:
        self.users.stop()
        self.jobs.stop()

    def log(self) -> str:
        return self.jobs.process.log_text() + self.users.process.log_text()

    def rest(self) -> None:
        """Waits until all changes are indexed and packed."""
        since, seen = time.monotonic(), 0
        while time.monotonic() - since < _REST:
            worked = sum(line.writes > 0 for line in read(self.jobs.process.log_text()) if not line.is_call)
            if worked != seen:
                since, seen = time.monotonic(), worked
            time.sleep(5)


def _person(url: str, number: int, experiments: list[str]) -> Caller:
    """Signs in a user with ten grants and three roles."""
    name = f"person{number}"
    admin = requests.Session()
    admin.auth = ("admin", _PASSWORD)

    def ask(path: str, body: dict[str, Any]) -> Any:
        answer = admin.post(url + path, json=body, timeout=300)
        assert answer.status_code == 200, answer.text
        return answer.json()

    ask(f"{_V2}/users/create", {"username": name, "password": _PASSWORD})
    for experiment in experiments[:10]:
        ask(f"{_V3}/users/permissions/grant", {"username": name, "resource_type": "experiment", "resource_id": experiment, "permission": "EDIT"})
    for role in range(3):
        made = ask(f"{_V3}/roles/create", {"name": f"role {role} of {name}", "workspace": "default"})["role"]["id"]
        ask(f"{_V3}/roles/assign", {"username": name, "role_id": made})
    form = {"username": name, "password": _PASSWORD}
    signed_in = requests.post(f"{url}/signin", data=form, headers={"origin": url}, timeout=300, allow_redirects=False)
    assert signed_in.status_code == 303, signed_in.text
    cookie = "; ".join(f"{key}={value}" for key, value in signed_in.cookies.items())
    return Caller(url, cookie=cookie, **{"sec-fetch-site": "same-origin"})


# ---- the hour


def _job(url: str, experiment: str, number: int, batches: int) -> None:
    caller = Caller(url)
    caller.ask("GET", f"{_V2}/experiments/get-by-name", params={"experiment_name": f"job {number}"})
    tags = _entries(**{"mlflow.user": "somebody", "mlflow.source.name": "train.py", "mlflow.source.type": "LOCAL"})
    begin = time.time()
    run = _run(caller, experiment, number, start_time=int(begin * 1000), tags=tags)
    for at in range(5):
        caller.post(f"{_V2}/runs/log-parameter", {"run_id": run, "key": f"param_{at}", "value": f"value {at}"})
    for step in range(batches):
        time.sleep(max(0.0, begin + step + 1 - time.time()))
        caller.post(f"{_V2}/runs/log-batch", {"run_id": run, "metrics": _metrics(number, int(time.time() * 1000), step)})
        if step in (batches // 4, batches // 2, batches - 1):
            caller.ask("GET", f"{_V2}/runs/get", params={"run_id": run})
    for at in range(5):
        time.sleep(1)
        caller.ask("PUT", f"/api/2.0/mlflow-artifacts/artifacts/{experiment}/{run}/artifacts/file{at}", data=b"x" * 100_000)
    caller.post(f"{_V2}/runs/update", {"run_id": run, "status": "FINISHED", "end_time": int(time.time() * 1000)})


def _exporter(url: str, experiment: str, count: int) -> None:
    callers, begin = [Caller(url), Caller(url)], time.time()
    for number in range(count):
        time.sleep(max(0.0, begin + number * 150 / count - time.time()))
        _trace(callers[number % 2], experiment, 1_000_000 + number)


def _pages(people: list[Caller], count: int, seconds: float, place: dict[str, Any]) -> None:
    """Requests pages in the proportions of tools/cost/teams.json, in random order."""
    search = f"{_UI}/runs/search"
    latest = {"experiment_ids": [place["archive"]], "max_results": 100}
    asked = {
        "latest": lambda caller: caller.post(search, latest),
        "top": lambda caller: caller.post(search, latest | {"order_by": ["metrics.metric_3 DESC"]}),
        "filter": lambda caller: caller.post(search, latest | {"filter": "params.optimizer = 'optimizer 2' AND tags.team = 'team 1'"}),
        "experiments": lambda caller: caller.post(f"{_UI}/experiments/search", {"max_results": 25}),
        "run": lambda caller: caller.post("/graphql", {"query": _RUN % _OF_RUN, "variables": {"i": {"runId": place["charted"][7]}}}),
        "chart": lambda caller: caller.post("/graphql", {"query": _HISTORY, "variables": {"i": {"runIds": place["charted"][:10], "metricKey": "loss", "maxResults": 320}}}),
        "traces": lambda caller: caller.post("/ajax-api/3.0/mlflow/traces/search", {"locations": [{"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": place["traces"]}}], "max_results": 100}),
    }
    shares = {"latest": 0.3, "top": 0.1, "filter": 0.05, "experiments": 0.1, "run": 0.2, "chart": 0.15, "traces": 0.1}
    order = [name for name, share in shares.items() for _ in range(round(share * count))]
    random.Random(7).shuffle(order)
    begin = time.time()
    for at, name in enumerate(order):
        time.sleep(max(0.0, begin + at * seconds / count - time.time()))
        asked[name](people[at % len(people)])


def lines_of(hour: Hour, batches: int = _BATCHES) -> list[Line]:
    with tempfile.TemporaryDirectory(prefix="hour-") as made:
        directory = Path(made) / "server"
        directory.mkdir()
        world = World(directory)
        try:
            return _lines_of(world, hour, batches)
        finally:
            world.stop()


def _lines_of(world: World, hour: Hour, batches: int) -> list[Line]:
    url = world.jobs.url
    names = [*(f"job {number}" for number in range(hour.runs)), *(f"other {number}" for number in range(80)), "traces of then", "traces of now", "charts", "archive"]
    made = {name: _experiment(url, name) for name in names}
    old, now = made["traces of then"], made["traces of now"]
    with ThreadPoolExecutor(8) as pool:
        exporters = [pool.submit(_trace, Caller(url), old, number) for number in range(_TRACES)]
        list(pool.map(lambda number: _old_run(url, made["archive"], number), range(_RUNS)))
        Caller(url).post(f"{_V2}/registered-models/create", {"name": "charted"})
        charted = list(pool.map(lambda number: _charted_run(url, made["charts"], number), range(_CHARTED)))
        # Sequential, because all calls write the same model.
        for run in charted:
            Caller(url).post(f"{_V2}/model-versions/create", {"name": "charted", "source": "s3://bucket/model", "run_id": run})
        for exporter in exporters:
            exporter.result()
        # The first trace of a day creates rows that later ones find.
        _trace(Caller(url), now, 999_999)
        people = list(pool.map(lambda number: _person(world.users.url, number, list(made.values())), range(_PEOPLE)))
    world.rest()
    before = [len(server.process.log_text()) for server in (world.jobs, world.users)]
    place = {"archive": made["archive"], "charted": charted, "traces": old}
    with ThreadPoolExecutor(hour.runs + 2) as pool:
        work = [pool.submit(_job, url, made[f"job {number}"], number, batches) for number in range(hour.runs)]
        work += [pool.submit(_exporter, url, now, hour.traces), pool.submit(_pages, people, hour.pages, batches, place)]
        for one in work:
            one.result()
    world.rest()
    told = [server.process.log_text()[at:] for server, at in zip((world.jobs, world.users), before, strict=True)]
    return [line for text in told for line in read(text)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, help="path for storing the lines")
    parser.add_argument("--share", type=float, default=1.0, help="fraction of the calls")
    options = parser.parse_args()
    model, rows = read_model()
    whole = busy_hour(model)
    hour = replace(whole, **{name: max(1, round(getattr(whole, name) * options.share)) for name in ("runs", "traces", "pages")})
    found = lines_of(hour)
    if options.output:
        write(options.output, found)
    counted = {line: found.count(line) for line in set(found)}
    ours, theirs = parts(bill(model, counted)), parts(said(model, rows, hour))
    for name in ours:
        sys.stdout.write(f"{name}: by lines ${ours[name]:.6f}, by the page ${theirs[name]:.6f}: {ours[name] / theirs[name] - 1:+.1%}\n")
    sys.stdout.write(f"all: {sum(ours.values()) / sum(theirs.values()) - 1:+.1%}\n")


if __name__ == "__main__":
    main()
