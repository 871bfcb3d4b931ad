"""Uses of a deployment. Each step fails if a part of it does not work."""

import random
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import mlflow
import requests
from mlflow import MlflowClient
from mlflow_serverless_auth import SigV4
from playwright.sync_api import expect, sync_playwright

from tests.browser.visit import CHROMIUM, OPTIONS
from tests.client.kinds import kinds
from tests.support import warm
from tests.support.http import Side
from tests.support.http_server import Received, serving
from tests.support.processes import child_environment
from tests.support.servers import binary

from .emulator import REGION, REPOSITORY
from .stock_clients import models_come_back, printed_settings

PASSWORD = "correct horse battery"
_SECONDS = 300
_API = "/api/2.0/mlflow"
#: Size of a file that exceeds Lambda's limit for requests.
_LONG = 12 * 1024 * 1024


def wait_for(condition: Callable[[], Any], what: str, patience: float = 300) -> Any:
    deadline = time.monotonic() + patience
    while not (value := condition()):
        assert time.monotonic() < deadline, f"no {what} within {patience} s"
        time.sleep(0.2)
    return value


def quickstart(world, directory: Path) -> None:
    """Runs README's example with the stock client and signatures, in an environment that has only
    the URL and credentials.
    """
    environment = child_environment(
        **world.caller.environment,
        MLFLOW_TRACKING_URI=world.signed,
        MLFLOW_TRACKING_AUTH="mlflow-serverless",
        # Suppresses the lines with links, which contain this test's port.
        MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT="true",
    )
    process = warm.run([str(REPOSITORY / "examples/quickstart.py")], environment, directory, _SECONDS)
    assert process.returncode == 0, process.stderr
    assert process.stdout == (REPOSITORY / "examples/quickstart.expected").read_text()


def unsigned_requests_are_refused(world, directory: Path) -> None:
    for url in (world.signed, f"{world.signed}/version", f"{world.signed}{_API}/experiments/get?experiment_id=0"):
        assert requests.get(url, timeout=_SECONDS).status_code == 403
    wrong = requests.get(f"{world.signed}/version", auth=_other_signature, timeout=_SECONDS)
    assert wrong.status_code == 403
    assert requests.get(f"{world.signed}/version", auth=SigV4(), timeout=_SECONDS).text == mlflow.__version__


def too_long_requests_are_refused(world, directory: Path) -> None:
    def put(size: int) -> int:
        url = f"{world.signed}/api/2.0/mlflow-artifacts/artifacts/sizes/{size}"
        headers = {"Content-Type": "application/octet-stream"}
        return requests.put(url, bytes(size), headers=headers, auth=SigV4(), timeout=_SECONDS).status_code

    assert (put(4_400_000), put(4_800_000), put(11_000_000)) == (200, 413, 413)
    headers = {"X-Long": "x" * 10_300}
    assert requests.get(f"{world.signed}/version", headers=headers, auth=SigV4(), timeout=_SECONDS).status_code == 431


def every_kind_of_write(world, directory: Path) -> None:
    """Checks that each kind of write is visible as soon as the response arrives, regardless of the
    function.
    """
    with _signing_proxy(world.signed) as url:
        side = Side("deployed", url)
        for kind in kinds(side):
            made = kind.write(side, 1)
            assert kind.is_there(side, 1, made), kind.name


def files(world, directory: Path) -> None:
    """Transfers files that are long or empty, in Latin-1, or have unusual names. Long files bypass
    the API, and single files are downloaded from presigned URLs.
    """
    written = {
        "long.bin": bytes(_LONG),
        "empty/__init__.py": b"",
        "latin.txt": "déjà vu".encode("latin-1"),
        "a b=c@é.txt": b"strange",
    }
    for name, content in written.items():
        path = directory / "sent" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    client = MlflowClient(world.signed)
    run = client.create_run(client.create_experiment("files")).info.run_id
    client.log_artifacts(run, str(directory / "sent"), "of run")
    fetched = Path(client.download_artifacts(run, "of run", str(directory)))
    assert {str(path.relative_to(fetched)): path.read_bytes() for path in fetched.rglob("*") if path.is_file()} == written
    # An upload that the client aborts, and a file that a client deletes.
    place = f"{world.signed}/api/2.0/mlflow-artifacts"
    below = f"{client.get_run(run).info.experiment_id}/{run}/artifacts"
    begun = requests.post(f"{place}/mpu/create/{below}", json={"path": "given-up", "num_parts": 2}, auth=SigV4(), timeout=_SECONDS)
    assert begun.status_code == 200, begun.text
    given_up = {"path": "given-up", "upload_id": begun.json()["upload_id"]}
    assert requests.post(f"{place}/mpu/abort/{below}", json=given_up, auth=SigV4(), timeout=_SECONDS).status_code == 200
    # A presigned URL leads to the bucket. For a missing file, the response is 404.
    for name, status in [("latin.txt", 200), ("none.txt", 404)]:
        asked = requests.get(f"{place}/presigned/{below}/{quote(f'of run/{name}')}", auth=SigV4(), timeout=_SECONDS)
        assert asked.status_code == status, asked.text
        if status == 200:
            assert requests.get(asked.json()["url"], timeout=_SECONDS).content == written[name]
    deleted = requests.delete(f"{place}/artifacts/{below}/{quote('of run/latin.txt')}", auth=SigV4(), timeout=_SECONDS)
    assert deleted.status_code == 200, deleted.text
    assert "of run/latin.txt" not in {file.path for file in client.list_artifacts(run, "of run")}


def traces(world, directory: Path) -> None:
    """Reads a short trace from the response, and a long one from the bucket."""
    mlflow.set_tracking_uri(world.signed)
    experiment = MlflowClient().create_experiment("traces")
    mlflow.set_experiment(experiment_id=experiment)
    with mlflow.start_span("short") as span:
        span.set_inputs({"question": "why"})
    mlflow.flush_trace_async_logging()
    [found] = mlflow.search_traces(locations=[experiment], return_type="list")
    assert [one.name for one in found.data.spans] == ["short"]
    long = "f" * 31 + "1"
    words = {f"{number:016x}": bytes(range(256)).hex() * 3 for number in range(1, 9)}
    for span_id, word in words.items():
        _export(world.signed, experiment, long, span_id, noise(word, 1_250_000))
    spans = MlflowClient().get_trace(f"tr-{long}").data.spans
    assert {one.span_id: len(one.get_attribute("payload")) for one in spans} == dict.fromkeys(words, 2_500_000)


def search_while_the_stream_is_late(world, directory: Path) -> None:
    """Checks that searches are exact before runs are indexed, and afterwards."""
    functions = world.account.emulator.functions
    mapping = world.stack.resources("AWS::Lambda::EventSourceMapping")["IndexerMapping"]

    def state() -> str:
        return functions.get_event_source_mapping(UUID=mapping)["State"]

    functions.update_event_source_mapping(UUID=mapping, Enabled=False)
    wait_for(lambda: state() == "Disabled", "disabled mapping")
    client = MlflowClient(world.signed)
    experiment = client.create_experiment("late")
    for number in range(6):
        run = client.create_run(experiment, tags={"kind": f"k{number % 2}"}, run_name=f"run {number}").info.run_id
        client.log_metric(run, "loss", number / 10)
        client.log_param(run, "depth", number)
        client.set_terminated(run)

    def found() -> list[list[str]]:
        searches = [("metrics.loss < 0.35", "metrics.loss DESC"), ("tags.kind = 'k1'", "metrics.loss ASC"), ("params.depth = '4'", "start_time DESC")]
        return [[run.info.run_name for run in client.search_runs([experiment], filter, order_by=[order])] for filter, order in searches]

    expected = [[f"run {number}" for number in numbers] for numbers in ([3, 2, 1, 0], [1, 3, 5], [4])]
    assert marked(world.stack, experiment) > 0
    assert found() == expected
    functions.update_event_source_mapping(UUID=mapping, Enabled=True)
    wait_for(lambda: marked(world.stack, experiment) == 0, "index of what came late")
    assert found() == expected


def marked(stack, experiment: str) -> int:
    """Returns the number of marked runs of an experiment, which are changed and not indexed yet."""
    return stack.emulator.dynamodb.query(
        TableName=stack.outputs["TableName"],
        IndexName="LSI5",
        KeyConditionExpression="PK = :partition",
        ExpressionAttributeValues={":partition": {"S": f"EXP#{experiment}"}},
    )["Count"]


def users_sign_in(world, directory: Path) -> None:
    """Checks that users sign in by password, token and signature, and that others are refused. The
    challenge has the name that API Gateway gives it.
    """
    administrator_by_signature(world, "admin")
    stranger = requests.get(f"{world.users}{_API}/experiments/get?experiment_id=0", timeout=_SECONDS)
    assert stranger.status_code == 401
    assert "www-authenticate" not in stranger.headers
    assert stranger.headers["x-amzn-Remapped-WWW-Authenticate"].startswith("Basic")

    def admin(path: str, body: dict) -> dict:
        answer = requests.post(f"{world.users}{path}", json=body, auth=("admin", PASSWORD), timeout=_SECONDS)
        assert answer.status_code == 200, answer.text
        return answer.json()

    admin(f"{_API}/users/create", {"username": "ann", "password": PASSWORD})
    shown = admin(f"{_API}/experiments/create", {"name": "shown"})["experiment_id"]
    hidden = admin(f"{_API}/experiments/create", {"name": "hidden"})["experiment_id"]
    grant = {"username": "ann", "resource_type": "experiment", "resource_id": shown, "permission": "EDIT"}
    admin("/api/3.0/mlflow/users/permissions/grant", grant)
    token = token_of(world, "ann")

    def status(experiment: str, **by: Any) -> int:
        url = f"{world.users}{_API}/experiments/get?experiment_id={experiment}"
        return requests.get(url, timeout=_SECONDS, **by).status_code

    bearer = {"Authorization": f"Bearer {token}"}
    for by in ({"auth": ("ann", PASSWORD)}, {"headers": bearer}):
        assert (status(shown, **by), status(hidden, **by)) == (200, 403), by
    assert status(shown, auth=("ann", "wrong")) == 401
    # The stock client with a token.
    environment = child_environment(MLFLOW_TRACKING_URI=world.users, MLFLOW_TRACKING_TOKEN=token)
    script = f"import mlflow; run = mlflow.MlflowClient().create_run('{shown}'); print(run.info.run_name)"
    process = warm.run(["-c", script], environment, directory, _SECONDS)
    assert process.returncode == 0, process.stderr
    # A principal that signs has full access until it is mapped to a user, and then the user's
    # permissions.
    signed = f"{world.signed}{_API}/experiments/get?experiment_id={hidden}"
    assert requests.get(signed, auth=SigV4(), timeout=_SECONDS).status_code == 200
    arn = world.caller.authorizer["iam"]["userArn"]
    command(world, "admin", "map", arn, "ann")
    wait_for(lambda: requests.get(signed, auth=SigV4(), timeout=_SECONDS).status_code == 403, "refusal of the mapped principal", 30)
    command(world, "admin", "unmap", "--forget", arn)
    wait_for(lambda: requests.get(signed, auth=SigV4(), timeout=_SECONDS).status_code == 200, "principal who is not mapped", 30)


def a_stock_client_without_the_package(world, directory: Path) -> None:
    """Logs and loads a model with files that exceed the API's limit, with the settings that `make
    deploy` prints for this client.
    """
    settings = {"MLFLOW_TRACKING_URI": world.users, "MLFLOW_TRACKING_TOKEN": token_of(world, "admin")}
    models_come_back(Path(sys.executable), mlflow.__version__, settings | printed_settings(world.said, mlflow.__version__), 6_000_000, directory)


def a_browser_signs_in(world, directory: Path) -> None:
    """Opens the page at the users' API in Chromium, signs in, and checks that the example's run is
    shown.

    Files are not opened, because the page would load them from the bucket's hostname in AWS.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        page = browser.new_context(viewport={"width": 1440, "height": 1000}, locale="en-US").new_page()
        page.set_default_timeout(120_000)
        expect.set_options(timeout=120_000)
        experiment = MlflowClient(world.signed).get_experiment_by_name("quickstart").experiment_id
        try:
            page.goto(f"{world.users}/#/experiments/{experiment}/runs")
            expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
            page.get_by_label("Username").fill("admin")
            page.get_by_label("Password").fill(PASSWORD)
            page.get_by_role("button", name="Sign in").click()
            [run] = MlflowClient(world.signed).search_runs([experiment])
            page.get_by_text(run.info.run_name).first.click()
            expect(page.get_by_text("optimizer").first).to_be_visible()
        finally:
            page.screenshot(path=str(directory / "page.png"))
            browser.close()


def graphql(world, directory: Path) -> None:
    query = '{ mlflowSearchRuns(input: { experimentIds: ["0"] }) { runs { info { runId } } } }'
    answer = requests.post(f"{world.users}/graphql", json={"query": query}, auth=("admin", PASSWORD), timeout=_SECONDS)
    assert answer.status_code == 200, answer.text
    assert answer.json()["errors"] is None, answer.text


#: The steps in their order. Later steps use data that earlier ones have created.
STEPS = [
    quickstart,
    unsigned_requests_are_refused,
    too_long_requests_are_refused,
    every_kind_of_write,
    files,
    traces,
    search_while_the_stream_is_late,
    users_sign_in,
    a_stock_client_without_the_package,
    a_browser_signs_in,
    graphql,
]


def administrator(world, name: str) -> None:
    """Creates an administrator with the program, which accesses the tables."""
    command(world, "admin", "create", name, sent=f"{PASSWORD}\n")


def administrator_by_signature(world, name: str) -> None:
    """Creates an administrator like `make admin`, which `test_archive.py` runs as a whole: through the
    API for signed requests.
    """
    code = "import sys; from administrator import Api, make_administrator; print(make_administrator(Api(*sys.argv[1:3]), sys.argv[3]))"
    environment = child_environment(**world.caller.environment, PYTHONPATH=str(REPOSITORY / "tools/deploy"))
    command = [sys.executable, "-c", code, world.signed, REGION, name]
    process = subprocess.run(command, input=f"{PASSWORD}\n", env=environment, capture_output=True, text=True, timeout=_SECONDS)
    assert process.returncode == 0, process.stderr
    assert process.stdout == f"Created the administrator {name}.\n"


def token_of(world, name: str) -> str:
    """Creates a token for the user, and returns it."""
    return command(world, "token", "create", name, "laptop").stdout.split()[-1]


def command(world, *arguments: str, sent: str = "") -> subprocess.CompletedProcess:
    """Runs the program on the stack's tables. Fails if the program does."""
    process = run_command(world, *arguments, sent=sent)
    assert process.returncode == 0, process.stderr
    return process


def run_command(world, *arguments: str, sent: str = "") -> subprocess.CompletedProcess:
    """Runs the program on the stack's tables."""
    outputs = world.stack.outputs
    place = ["--dynamodb-endpoint", world.account.emulator.url, "--table", outputs["TableName"], "--access-table", outputs["AccessTableName"]]
    command = [str(binary()), *arguments, *place]
    return subprocess.run(command, input=sent, env=world.account.emulator.operator, capture_output=True, text=True, timeout=_SECONDS)


@contextmanager
def _signing_proxy(url: str):
    """A proxy that signs requests, for programs that do not sign."""
    auth = SigV4()

    def answer(request: Received):
        sent = {name: value for name, value in request.headers if name.lower() in ("content-type", "x-mlflow-experiment-id")}
        got = requests.request(
            request.method, url + request.target, data=request.body, headers=sent, auth=auth, timeout=_SECONDS, allow_redirects=False
        )
        return got.status_code, [(name, got.headers[name]) for name in got.headers if name.lower() == "content-type"], got.content

    with serving(answer) as proxy:
        yield proxy


def _other_signature(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Signs the request, and makes the signature invalid."""
    signed = SigV4()(request)
    signed.headers["Authorization"] = signed.headers["Authorization"][:-1] + ("0" if signed.headers["Authorization"][-1] != "0" else "1")
    return signed


def _export(url: str, experiment: str, trace: str, span: str, payload: str) -> None:
    said = {
        "traceId": trace,
        "spanId": span,
        "name": "long",
        "startTimeUnixNano": "1700000000000000000",
        "endTimeUnixNano": "1700000001000000000",
        "attributes": [{"key": "payload", "value": {"stringValue": payload}}],
    } | ({} if span.endswith("1") else {"parentSpanId": f"{1:016x}"})
    headers = {"x-mlflow-experiment-id": experiment}
    body = {"resourceSpans": [{"scopeSpans": [{"spans": [said]}]}]}
    answer = requests.post(f"{url}/v1/traces", json=body, headers=headers, auth=SigV4(), timeout=_SECONDS)
    assert answer.status_code == 200, answer.text


def noise(seed: str, count: int) -> str:
    """Returns `count` bytes in hexadecimal that are not compressible."""
    return random.Random(seed).randbytes(count).hex()
