"""Checks of bodies: lengths, empty ones, compressed ones, and one of a DELETE."""

import gzip
import hashlib
import io
import json
import secrets

from .check import DIFFERS, EXPECTED, OPEN, Check, Facts, Outcome
from .world import API, World

_TYPE = {"Content-Type": "application/octet-stream"}
_SIZES = {"4.4 MB": 4_400_000, "4.8 MB": 4_800_000, "11 MB": 11_000_000}


def _lengths(world: World) -> Facts:
    return {name: world.call("PUT", world.file(f"{size}.bin"), data=bytes(size), headers=_TYPE).status_code for name, size in _SIZES.items()}


def judge_lengths(facts: Facts) -> str:
    found = tuple(facts[name] for name in _SIZES)
    if found == (200, 413, 413):
        return "413"
    if found[0] != 200:
        return "less is taken"
    return "more is taken" if 200 in found[1:] else "refused otherwise"


def _empty(world: World) -> Facts:
    with_length = world.call("PUT", world.file("empty-length.txt"), data=b"", headers=_TYPE).status_code
    # As stock clients send a file of 0 bytes: in chunks, of which there is none, and without a length.
    nothing = hashlib.sha256(b"").hexdigest()
    chunked = world.call("PUT", world.file("empty-chunked.txt"), auth=_Chunked(world.signer), headers=_TYPE | {"X-Amz-Content-SHA256": nothing})
    listed = [name for name in world.names() if name.startswith("empty")]
    return {"with a length of 0": with_length, "in chunks": chunked.status_code, "listed": listed}


class _Chunked:
    """Signs a request, and sends it without a body in chunks."""

    def __init__(self, signer):
        self._signer = signer

    def __call__(self, request):
        signed = self._signer(request)
        signed.headers.pop("Content-Length", None)
        signed.headers["Transfer-Encoding"] = "chunked"
        signed.body = io.BytesIO()
        return signed


def judge_empty(facts: Facts) -> str:
    with_length, chunked = facts["with a length of 0"], facts["in chunks"]
    if with_length != 200 or "empty-length.txt" not in facts["listed"]:
        return "none is taken"
    if chunked == 200:
        return "both are taken" if "empty-chunked.txt" in facts["listed"] else "lost"
    return "no chunks"


def _gzip(world: World) -> Facts:
    trace = secrets.token_hex(16)
    span = {"traceId": trace, "spanId": secrets.token_hex(8), "name": world.label, "kind": 1, "startTimeUnixNano": "1", "endTimeUnixNano": "2"}
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip", "x-mlflow-experiment-id": world.experiment}
    zipped = gzip.compress(body, mtime=0)
    answer = world.call("POST", "/v1/traces", data=zipped, headers=headers)
    there = world.call("GET", f"/api/3.0/mlflow/traces/tr-{trace}").status_code
    return {"status": answer.status_code, "the trace is there": there == 200}


def judge_gzip(facts: Facts) -> str:
    if facts["status"] == 200:
        return "arrives whole" if facts["the trace is there"] else "lost"
    return "broken, and refused" if 400 <= facts["status"] < 500 else "something else"


def _delete(world: World) -> Facts:
    path = f"{API}/registered-models"
    world.done("POST", f"{path}/create", json={"name": world.label})
    status = world.call("DELETE", f"{path}/delete", json={"name": world.label}).status_code
    there = world.call("GET", f"{path}/get", params={"name": world.label}).status_code
    return {"deleting": status, "afterwards": there}


def judge_delete(facts: Facts) -> str:
    found = (facts["deleting"], facts["afterwards"])
    if found == (200, 404):
        return "deleted"
    if found[0] == 403:
        return "signature refused"
    return "body lost" if found == (400, 200) else "something else"


CHECKS = [
    Check(
        "lengths",
        "Is a body of 4.4 MB taken, and are 4.8 MB (6 MB in base64) and 11 MB answered 413?",
        {
            "413": Outcome(EXPECTED, "Yes, as the operator guide says under Limits."),
            "more is taken": Outcome(DIFFERS, "Longer bodies are taken: the limits of the guide and of the client can be raised."),
            "less is taken": Outcome(DIFFERS, "4.4 MB are refused: clients have to send files in parts from a smaller size on (clients/python)."),
            "refused otherwise": Outcome(DIFFERS, "Longer bodies are refused with another status: look whether clients repeat them in vain."),
        },
        _lengths,
        judge_lengths,
    ),
    Check(
        "empty files",
        "Is a file of 0 bytes taken with a length of 0, as clients/python sends it, and in chunks without a length, as stock clients do?",
        {
            "both are taken": Outcome(EXPECTED, "Yes. Stock clients log models with empty files without the package."),
            "no chunks": Outcome(DIFFERS, "Stock clients before 3.18 log no empty file without clients/python. The advice of make deploy has to say so."),
            "lost": Outcome(DIFFERS, "The chunked one was answered as done, and is not there."),
            "none is taken": Outcome(DIFFERS, "No empty file is taken: the function artifacts gets such a request in another form than the tests send."),
        },
        _empty,
        judge_empty,
    ),
    Check(
        "gzip of JSON",
        "What arrives of spans that are sent as JSON under gzip? The gateway takes a body for text by its type alone.",
        {
            "arrives whole": Outcome(EXPECTED, "All of it. Exporters may send JSON under gzip."),
            "broken, and refused": Outcome(OPEN, "It arrives broken, and is refused as a whole: exporters have to send protobuf, or no gzip. The guide has to say so."),
            "lost": Outcome(DIFFERS, "It was answered as done, and the trace is not there: spans are lost without a word."),
        },
        _gzip,
        judge_gzip,
    ),
    Check(
        "DELETE with a body",
        "Does the body of a DELETE arrive, which clients delete registered models by?",
        {
            "deleted": Outcome(EXPECTED, "Yes."),
            "body lost": Outcome(DIFFERS, "The gateway drops it: no client can delete registered models, versions, tags and aliases."),
            "signature refused": Outcome(DIFFERS, "The gateway verifies the signature against another body than was sent."),
        },
        _delete,
        judge_delete,
    ),
]
