"""Checks of request bodies: large, empty, compressed, and in a DELETE."""

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
    # Stock clients send an empty file with chunked encoding, without any chunk and without a
    # length.
    nothing = hashlib.sha256(b"").hexdigest()
    chunked = world.call("PUT", world.file("empty-chunked.txt"), auth=_Chunked(world.signer), headers=_TYPE | {"X-Amz-Content-SHA256": nothing})
    listed = [name for name in world.names() if name.startswith("empty")]
    return {"with a length of 0": with_length, "in chunks": chunked.status_code, "listed": listed}


class _Chunked:
    """Signs a request, and sends it with an empty chunked body."""

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
        "Is a body of 4.4 MB accepted, and are bodies of 4.8 MB (6 MB in base64) and 11 MB answered with 413?",
        {
            "413": Outcome(EXPECTED, "Yes, as documented in docs/guide/operate.md under Limits."),
            "more is taken": Outcome(DIFFERS, "Longer bodies are accepted: the limits in the guide and the client can be raised."),
            "less is taken": Outcome(DIFFERS, "4.4 MB are refused: clients have to switch to multipart uploads at a smaller size (clients/python)."),
            "refused otherwise": Outcome(DIFFERS, "Longer bodies are refused with another status: check whether clients retry them in vain."),
        },
        _lengths,
        judge_lengths,
    ),
    Check(
        "empty files",
        "Is an empty file accepted with a length of 0, as sent by clients/python, and with chunked encoding, as sent by stock clients?",
        {
            "both are taken": Outcome(EXPECTED, "Yes. Stock clients can log models with empty files without the package."),
            "no chunks": Outcome(DIFFERS, "Stock clients before 3.18 cannot log empty files without clients/python. The advice of make deploy has to mention it."),
            "lost": Outcome(DIFFERS, "The chunked request succeeded, but its file is missing."),
            "none is taken": Outcome(DIFFERS, "No empty file is accepted: the function artifacts receives such requests in a different form than in the tests."),
        },
        _empty,
        judge_empty,
    ),
    Check(
        "gzip of JSON",
        "Do spans sent as JSON with gzip arrive intact? The gateway decides by the content type alone whether a body is text.",
        {
            "arrives whole": Outcome(EXPECTED, "Yes. Exporters can send JSON with gzip."),
            "broken, and refused": Outcome(OPEN, "The body arrives corrupted, and is refused as a whole: exporters have to use protobuf, or no gzip. The guide has to mention it."),
            "lost": Outcome(DIFFERS, "The request succeeded, but the trace is missing: spans are lost silently."),
        },
        _gzip,
        judge_gzip,
    ),
    Check(
        "DELETE with a body",
        "Does the body of a DELETE request arrive? Clients use such requests to delete registered models.",
        {
            "deleted": Outcome(EXPECTED, "Yes."),
            "body lost": Outcome(DIFFERS, "The gateway drops it: clients cannot delete registered models, versions, tags and aliases."),
            "signature refused": Outcome(DIFFERS, "The gateway verifies the signature against a different body than the one sent."),
        },
        _delete,
        judge_delete,
    ),
]
