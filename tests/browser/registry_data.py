"""The data on the pages of review queues, issues, MCP servers and skills, created by requests to a
server. Ids that a client can choose are the same on both servers.
"""

import gzip
import io
import json
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.support.http import Request, Side

_V2, _V3 = "/api/2.0/mlflow", "/api/3.0/mlflow"
_TRACES = 4
_ISSUES = ("wrong tool", "slow answers", "made-up source")
#: Names of the review queues: one without traces, and one with two.
EMPTY_QUEUE, QUEUE = "accuracy", "style"
SERVER, OTHER_SERVER = "io.example/weather", "io.example/mail"
#: Names of what the tests register on the pages.
NEW_SERVER, NEW_SKILL = "io.example/made-by-hand", "@acme/made-by-hand"
#: Path of the skill in requests, and its name on pages.
SKILL, SKILL_NAME, OTHER_SKILL = "@acme/review", "review", "translate"
_GIT = "https://github.com/acme/skills.git"
_BOUNDARY = "boundary"
_FILES = {
    "SKILL.md": "---\nname: translate\ndescription: Translates text.\n---\n\n# Translate\n\nTranslate **everything**.\n",
    "scripts/run.py": 'print("translated")\n',
}


def send(side: Side, method: str, path: str, body: Any) -> dict:
    """Sends JSON and returns the response. Raises AssertionError if the server refuses it."""
    answer = side.send(Request.of_json(method, path, body))
    assert answer.status in (200, 201), f"{side.name}: {method} {path}: {answer.status} {answer.body}"
    return answer.body


@dataclass(frozen=True)
class Moment:
    """What distinguishes one creation of the data from others."""

    #: Minutes since the epoch at which traces began. The same on both servers, because lists show it.
    minute: int
    #: Number of the creation on this server, starting from 0.
    number: int

    def trace(self, number: int) -> str:
        return f"tr-{self.number * 100 + number + 1:032x}"

    def issue(self, number: int) -> str:
        return f"iss-{self.number * 100 + number}"


def _traces(side: Side, name: str, moment: Moment) -> str:
    """Creates an experiment with traces, and returns its id. An experiment that had this name before
    gets another one.
    """
    former = side.send(Request("GET", f"{_V2}/experiments/get-by-name", {"experiment_name": name}))
    if former.status == 200:
        found = former.body["experiment"]
        if found["lifecycle_stage"] == "deleted":
            send(side, "POST", f"{_V2}/experiments/restore", {"experiment_id": found["experiment_id"]})
        send(side, "POST", f"{_V2}/experiments/update", {"experiment_id": found["experiment_id"], "new_name": f"{name} before {moment.number}"})
    experiment = send(side, "POST", f"{_V2}/experiments/create", {"name": name})["experiment_id"]
    spans = [_span(number, moment) for number in range(_TRACES)]
    headers = {"Content-Type": "application/json", "x-mlflow-experiment-id": experiment}
    answer = side.send(Request.of_json("POST", "/v1/traces", {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}, headers))
    assert answer.status == 200, answer
    return experiment


def _span(number: int, moment: Moment) -> dict:
    begin = (moment.minute * 60 + number) * 10**9
    attributes = {
        "mlflow.spanInputs": {"question": f"What is in flower {number}?"},
        "mlflow.spanOutputs": {"answer": f"Carpel {number}."},
        "mlflow.spanType": "AGENT",
    }
    return {
        "traceId": moment.trace(number)[3:],
        "spanId": f"{number + 1:016x}",
        "name": "agent",
        "startTimeUnixNano": str(begin),
        "endTimeUnixNano": str(begin + 500_000_000),
        "attributes": [{"key": key, "value": {"stringValue": json.dumps(value)}} for key, value in attributes.items()],
        "status": {"code": 1},
    }


def reviews(side: Side, moment: Moment) -> dict[str, str]:
    """Creates label schemas of every type, and two queues: one without traces, and one with two."""
    experiment = _traces(side, "reviewed", moment)
    inputs: dict[str, dict] = {
        "Correct?": {"pass_fail": {"positive_label": "Yes", "negative_label": "No"}},
        "Tone": {"categorical": {"options": ["formal", "casual"]}},
        "Topics": {"categorical": {"options": ["botany", "chemistry"], "multi_select": True}},
        "Stars": {"numeric": {"min_value": 1, "max_value": 5}},
        "Ideal answer": {"text": {"max_length": 100}},
    }
    schemas = {}
    for name, value in inputs.items():
        kind = "EXPECTATION" if name == "Ideal answer" else "FEEDBACK"
        body = {"experiment_id": experiment, "name": name, "type": kind, "input": value, "instruction": f"About: {name}"}
        body["enable_comment"] = name == "Correct?"
        schemas[name] = send(side, "POST", f"{_V3}/label-schemas/create", body)["label_schema"]["schema_id"]
    ids = {"experiment": experiment, "item": moment.trace(3), "other item": moment.trace(2)}
    for queue, names in ((EMPTY_QUEUE, list(inputs)), (QUEUE, ["Tone"])):
        body = {"experiment_id": experiment, "name": queue, "queue_type": "CUSTOM", "users": ["default"]}
        body["schema_ids"] = [schemas[name] for name in names]
        ids[queue] = send(side, "POST", f"{_V3}/review-queues/create", body)["review_queue"]["queue_id"]
    send(side, "POST", f"{_V3}/review-queues/items/add", {"queue_id": ids[QUEUE], "item_ids": [moment.trace(2), moment.trace(3)]})
    return ids


def issues(side: Side, moment: Moment) -> dict[str, str]:
    """Creates an issue of each severity. The first one is linked to two traces."""
    experiment = _traces(side, "with issues", moment)
    for number, (name, severity) in enumerate(zip(_ISSUES, ("high", "medium", "low"), strict=True)):
        body = {
            "experiment_id": experiment,
            "issue_id": moment.issue(number),
            "name": name,
            "description": f"The agent has a problem: **{name}**.",
            "severity": severity,
            "status": "pending",
            "categories": ["correctness", "latency"][number % 2 :],
            "root_causes": [f"Cause of {name}"],
            "created_by": "tester",
            "last_seen_timestamp": str((moment.minute - number) * 60_000),
        }
        send(side, "POST", f"{_V3}/issues", body)
    for trace in (moment.trace(0), moment.trace(1)):
        assessment = {
            "assessment_name": moment.issue(0),
            "trace_id": trace,
            "source": {"source_type": "LLM_JUDGE", "source_id": "judge"},
            "rationale": f"The tool of {trace} was the wrong one.",
            "issue": {"issue_name": _ISSUES[0]},
        }
        send(side, "POST", f"{_V3}/traces/{trace}/assessments", {"assessment": assessment})
    return {"experiment": experiment}


def servers(side: Side, moment: Moment) -> dict[str, str]:
    """Creates an MCP server with two versions and an access endpoint, and one with a single
    version. Deletes what a previous call and the tests created.
    """
    path = f"{_V3}/mcp-servers"
    for name in (SERVER, OTHER_SERVER, NEW_SERVER):
        _delete_server(side, f"{path}/{name}")
    for name, versions in ((SERVER, ("1.0.0", "1.1.0")), (OTHER_SERVER, ("0.1.0",))):
        send(side, "POST", path, {"name": name, "description": f"Registered for {name}."})
        for version in versions:
            body = {"server_json": _server_json(name, version), "status": "active", "tools": _tools(version)}
            send(side, "POST", f"{path}/{name}/versions", body)
    send(side, "POST", f"{path}/{SERVER}/tags", {"key": "team", "value": "red"})
    send(side, "POST", f"{path}/{SERVER}/aliases", {"alias": "stable", "version": "1.0.0"})
    send(side, "POST", f"{path}/{SERVER}/endpoints", {"url": "https://mcp.example.com/weather", "server_alias": "stable"})
    return {}


def _server_json(name: str, version: str) -> dict:
    """Returns the description of a server. Its keys are in the order in which MLflow returns them."""
    package = {
        "registryType": "npm",
        "identifier": "@example/server",
        "transport": {"type": "stdio"},
        "version": version,
        "environmentVariables": [{"name": "API_KEY", "description": "The key.", "isRequired": True, "isSecret": True}],
    }
    return {
        "name": name,
        "version": version,
        "title": name.rpartition("/")[2].title(),
        "description": f"Version {version}.",
        "packages": [package],
        "remotes": [{"type": "streamable-http", "url": f"https://mcp.example.com/{version}"}],
        "repository": {"url": "https://github.com/example/server", "source": "github"},
        "websiteUrl": "https://example.com",
    }


def _tools(version: str) -> list[dict]:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    names = ["forecast", "history"] if version == "1.1.0" else ["forecast"]
    return [{"name": name, "description": f"The {name}.", "inputSchema": schema, "annotations": {"readOnlyHint": True}} for name in names]


def skills(side: Side, moment: Moment) -> dict[str, str]:
    """Creates a skill with two versions in a Git repository, and one whose files are uploaded.
    Deletes what a previous call and the tests created.
    """
    path = f"{_V3}/skills"
    for name in (SKILL, OTHER_SKILL, NEW_SKILL):
        _delete(side, f"{path}/{name}")
    send(side, "POST", path, {"name": SKILL_NAME, "organization": "acme", "description": "Reviews code."})
    for number, ref in enumerate(("v1", "v2")):
        body = {"source_type": "git", "source": _GIT, "ref": ref, "subpath": "review", "digest": f"{number}" * 64}
        send(side, "POST", f"{path}/{SKILL}/versions", body)
    send(side, "POST", f"{path}/{SKILL}/tags", {"key": "team", "value": "red"})
    send(side, "POST", f"{path}/{SKILL}/aliases", {"alias": "stable", "version": 1})
    send(side, "POST", path, {"name": OTHER_SKILL, "description": "Translates text."})
    answer = side.send(_upload(f"{path}/{OTHER_SKILL}/versions"))
    assert answer.status in (200, 201), answer
    return {}


def archive() -> bytes:
    """Returns the files of a skill as a compressed archive."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, text in _FILES.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    return gzip.compress(packed.getvalue(), mtime=0)


def _upload(path: str) -> Request:
    parts = [("metadata", b"{}", ""), ("content", archive(), '; filename="content.tar.gz"')]
    body = b"".join(
        f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n'.encode() + content + b"\r\n" for name, content, more in parts
    )
    return Request("POST", path, {}, body + f"--{_BOUNDARY}--\r\n".encode(), {"Content-Type": f"multipart/form-data; boundary={_BOUNDARY}"})


def _delete(side: Side, path: str) -> None:
    answer = side.send(Request("DELETE", path))
    assert answer.status in (200, 204, 404), answer


def _delete_server(side: Side, path: str) -> None:
    """Deletes an MCP server and its versions. Active versions cannot be deleted."""
    found = side.send(Request("GET", f"{path}/versions"))
    for version in found.body["mcp_server_versions"] if found.status == 200 else []:
        if version["status"] == "active":
            send(side, "PATCH", f"{path}/versions/{version['version']}", {"status": "deprecated"})
    _delete(side, path)


#: The functions by the name of the page. Each call starts from the same state, in a new experiment
#: if the page shows one.
FILL: dict[str, Callable[[Side, Moment], dict[str, str]]] = {
    "reviews": reviews,
    "issues": issues,
    "mcp servers": servers,
    "skills": skills,
}
