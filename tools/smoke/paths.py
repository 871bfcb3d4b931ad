"""Checks how paths arrive, and how they are signed."""

from urllib.parse import quote

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.session import Session

from .check import DIFFERS, EXPECTED, Check, Facts, Outcome
from .world import API, World

_NAMES = ["a b.txt", "a=b.txt", "a@b.txt", "é.txt", "a+b.txt", "plain.txt"]


class _Once(SigV4Auth):
    """Signs the path as it is sent, like S3, without encoding it again."""

    def _normalize_url_path(self, path: str) -> str:
        return path


def _signed_once(region: str):
    def sign(request):
        signed = AWSRequest(request.method, request.url, {"host": request.url.split("/")[2]}, data=request.body)
        _Once(Session().get_credentials().get_frozen_credentials(), "execute-api", region).add_auth(signed)
        request.headers.update({name: value for name, value in signed.headers.items() if name.lower() != "host"})
        return request

    return sign


def _signatures(world: World) -> Facts:
    facts: Facts = {}
    region = world.dynamodb.meta.region_name
    for name in _NAMES:
        path = world.file(quote(name, safe=""))
        sent = world.call("PUT", path, data=name.encode()).status_code
        once = world.call("GET", path, auth=_signed_once(region)).status_code
        facts[name] = {"as the package signs": sent, "with a path that is encoded once": once}
    facts["listed"] = [name for name in world.names() if name in _NAMES]
    return facts


def judge_signatures(facts: Facts) -> str:
    of_names = {name: facts[name] for name in _NAMES}
    by_package = {name: said["as the package signs"] for name, said in of_names.items()}
    if set(by_package.values()) == {200}:
        return "encoded twice" if sorted(facts["listed"]) == sorted(_NAMES) else "under other names"
    if by_package["plain.txt"] != 200:
        return "no signature is taken"
    refused = [name for name, status in by_package.items() if status == 403]
    if refused and all(of_names[name]["with a path that is encoded once"] != 403 for name in refused):
        return "encoded once"
    return "some are refused" if refused else "something else"


def _double(world: World) -> Facts:
    status = world.call("PUT", world.file("twice%2541.txt"), data=b"x").status_code
    return {"status": status, "listed": [name for name in world.names() if name.startswith("twice")]}


def judge_double(facts: Facts) -> str:
    if facts["status"] != 200:
        return "refused" if facts["status"] in (400, 403) else "something else"
    known = {("twiceA.txt",): "decoded twice", ("twice%41.txt",): "decoded once", ("twice%2541.txt",): "not decoded"}
    return known.get(tuple(facts["listed"]), "something else")


def _slashes(world: World) -> Facts:
    return {
        "tracking": world.call("GET", f"/{API}/experiments/get", params={"experiment_id": world.experiment}).status_code,
        "registry": world.call("GET", f"/{API}/registered-models/search", params={"max_results": 1}).status_code,
    }


def judge_slashes(facts: Facts) -> str:
    found = (facts["tracking"], facts["registry"])
    known = {(200, 404): "tracking alone", (200, 200): "all", (403, 403): "refused", (404, 404): "none"}
    return known.get(found, "something else")


CHECKS = [
    Check(
        "signatures",
        "Does the gateway accept signatures of paths with a space, =, @, é and +, as computed by clients/python (with the path encoded twice)?",
        {
            "encoded twice": Outcome(EXPECTED, "Yes. Programs that sign with the package can send files of any name."),
            "under other names": Outcome(DIFFERS, "The signatures are accepted, but files get different names than they were sent with."),
            "encoded once": Outcome(DIFFERS, "The gateway requires the path to be encoded once. clients/python (url.py, signer.py) has to be changed."),
            "some are refused": Outcome(DIFFERS, "Some names are refused, no matter how their path is signed. The observations list the names."),
            "no signature is taken": Outcome(DIFFERS, "Even a plain name is refused: check the credentials, the region and the permission execute-api:Invoke."),
        },
        _signatures,
        judge_signatures,
    ),
    Check(
        "encoded percent",
        "Is a path with %25 before two hexadecimal digits decoded twice, once by the gateway and once by the function?",
        {
            "decoded twice": Outcome(EXPECTED, "Yes, as documented in docs/guide/deploy.md under Paths."),
            "decoded once": Outcome(DIFFERS, "Such names work, so docs/guide/deploy.md is too strict."),
            "not decoded": Outcome(DIFFERS, "Paths arrive as they were sent: the functions have to decode them once more."),
            "refused": Outcome(DIFFERS, "Such paths are refused. docs/guide/deploy.md has to mention it."),
        },
        _double,
        judge_double,
    ),
    Check(
        "two slashes",
        "Are paths with //api at the start handled? They result from a tracking URI with a trailing slash.",
        {
            "tracking alone": Outcome(EXPECTED, "Only those of the function tracking, as documented in docs/guide/deploy.md under Paths."),
            "all": Outcome(DIFFERS, "The gateway merges the slashes: docs/guide/deploy.md is too strict."),
            "none": Outcome(DIFFERS, "None is handled: docs/guide/deploy.md has to mention it."),
            "refused": Outcome(DIFFERS, "The gateway verifies the signature against a different path than the one that clients sign."),
        },
        _slashes,
        judge_slashes,
    ),
]
