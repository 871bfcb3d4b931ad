"""Checks of how paths arrive, and how they are signed."""

from urllib.parse import quote

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.session import Session

from .check import DIFFERS, EXPECTED, Check, Facts, Outcome
from .world import API, World

_NAMES = ["a b.txt", "a=b.txt", "a@b.txt", "é.txt", "a+b.txt", "plain.txt"]


class _Once(SigV4Auth):
    """Signs the path as it is sent, as S3 has it, and not encoded once more."""

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
        "Does the gateway take signatures of paths with a space, =, @, é and +, as clients/python computes them (the path encoded twice)?",
        {
            "encoded twice": Outcome(EXPECTED, "Yes. Files of any name can be sent by programs that sign with the package."),
            "under other names": Outcome(DIFFERS, "The signatures are taken, and files get other names than they were sent with."),
            "encoded once": Outcome(DIFFERS, "The gateway wants the path encoded once. clients/python (url.py, signer.py) has to sign so."),
            "some are refused": Outcome(DIFFERS, "Some names are refused whichever way their path is signed. The names are among what came."),
            "no signature is taken": Outcome(DIFFERS, "Even a plain name is refused: look at the credentials, the region and the right execute-api:Invoke."),
        },
        _signatures,
        judge_signatures,
    ),
    Check(
        "encoded percent",
        "Is a path with %25 before two hexadecimal digits decoded twice, once by the gateway and once by the function?",
        {
            "decoded twice": Outcome(EXPECTED, "Yes, as the operator guide says under Paths."),
            "decoded once": Outcome(DIFFERS, "Paths arrive otherwise than the operator guide says: such names work, and the guide is too strict."),
            "not decoded": Outcome(DIFFERS, "Paths arrive as they were sent: the functions have to decode them once more."),
            "refused": Outcome(DIFFERS, "Such a path is refused. The operator guide has to say so."),
        },
        _double,
        judge_double,
    ),
    Check(
        "two slashes",
        "Are paths that begin with //api answered, which a tracking URI with a slash at its end leads to?",
        {
            "tracking alone": Outcome(EXPECTED, "Those of the function tracking are, as the operator guide says under Paths."),
            "all": Outcome(DIFFERS, "The gateway joins the slashes: the operator guide is too strict."),
            "none": Outcome(DIFFERS, "None is answered: the operator guide has to say so."),
            "refused": Outcome(DIFFERS, "The gateway verifies the signature of such a path against another one than clients sign."),
        },
        _slashes,
        judge_slashes,
    ),
]
