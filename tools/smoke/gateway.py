"""Checks of what the gateway does with answers, cookies, addresses and rates."""

import os
import re
import secrets
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from .check import DIFFERS, EXPECTED, OPEN, Check, Facts, NotAsked, Outcome
from .world import API, World

#: Of a network that is for examples: nobody has it.
_FORGED = "203.0.113.77"
#: The cookie of a session that is not the secret one.
_COMPANION = "mlflow_user"
_REQUESTS, _AT_ONCE = 1_500, 48


def _challenge(world: World) -> Facts:
    answer = world.call("GET", f"{API}/experiments/get?experiment_id=0", url=world.users, is_signed=False)
    named = [name.lower() for name in answer.headers if name.lower().endswith("www-authenticate")]
    return {"status": answer.status_code, "headers": sorted(named)}


def judge_challenge(facts: Facts) -> str:
    if facts["status"] != 401:
        return "something else"
    known = {("x-amzn-remapped-www-authenticate",): "renamed", ("www-authenticate",): "kept", (): "dropped"}
    return known.get(tuple(facts["headers"]), "something else")


def _cookies(world: World) -> Facts:
    name, password = os.environ.get("MLFLOW_TRACKING_USERNAME"), os.environ.get("MLFLOW_TRACKING_PASSWORD")
    if not name or not password:
        raise NotAsked("MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD do not name a user")
    form = {"username": name, "password": password}
    signed_in = world.call("POST", "/signin", url=world.users, is_signed=False, data=form, headers={"Origin": world.users})
    set_by = signed_in.raw.headers.getlist("Set-Cookie")
    pairs = ["smoke=1", *(cookie.partition(";")[0] for cookie in set_by), "other=2"]

    def status(*sent: str) -> int:
        headers = {"Cookie": "; ".join(sent), "Sec-Fetch-Site": "same-origin"}
        return world.call("GET", f"{API}/users/current", url=world.users, is_signed=False, headers=headers).status_code

    try:
        return {"signing in": signed_in.status_code, "cookies set": len(set_by), "with them": status(*pairs), "without": status("smoke=1")}
    finally:
        # The browser's way to sign out: the session's cookie without the other one.
        if set_by:
            status(*(pair for pair in pairs[1:-1] if not pair.startswith(_COMPANION)))


def judge_cookies(facts: Facts) -> str:
    if facts["signing in"] != 303:
        return "something else"
    if facts["cookies set"] != 2:
        return "not both are set"
    return {(200, 401): "arrive"}.get((facts["with them"], facts["without"]), "do not arrive")


def _address(world: World) -> Facts:
    user = world.label + secrets.token_hex(4)
    for header in ({"X-Forwarded-For": _FORGED}, {"Forwarded": f"for={_FORGED}"}):
        world.call("GET", f"{API}/experiments/get?experiment_id=0", url=world.users, is_signed=False, auth=(user, "x"), headers=header)
    seen: list[str] = []

    def logged() -> bool:
        lines = [line for line in world.log_lines("tracking", user, 600) if "not signed in" in str(line)]
        seen[:] = [found[1] for line in lines for found in [re.search(r"Some\(([0-9a-fA-F.:]+)\)", str(line))] if found]
        return len(lines) >= 1

    if world.wait(logged, 60) is None:
        raise NotAsked("the log has no line of it after a minute")
    # Whose address it is, is nobody's business.
    return {"lines with an address": len(seen), "of them forged": sum(address == _FORGED for address in seen)}


def judge_address(facts: Facts) -> str:
    if facts["of them forged"]:
        return "forged"
    return "the caller's" if facts["lines with an address"] else "none"


def _rates(world: World) -> Facts:
    rate, burst = (float(world.parameter(name)) for name in ("RequestRate", "RequestBurst"))
    began = time.monotonic()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = Counter(pool.map(lambda _: world.call("GET", "/version").status_code, range(_REQUESTS)))
    seconds = time.monotonic() - began
    return {
        "requests": sum(answers.values()),
        "seconds": round(seconds, 1),
        "statuses": {str(status): count for status, count in sorted(answers.items())},
        "rate": rate,
        "burst": burst,
    }


def judge_rates(facts: Facts) -> str:
    found = facts["statuses"]
    if "429" in found:
        return "limited"
    if "503" in found:
        return "no sandboxes"
    allowed = facts["burst"] + facts["rate"] * facts["seconds"]
    return "not limited" if facts["requests"] > 1.5 * allowed else "not reached"


CHECKS = [
    Check(
        "challenge",
        "Under which name does WWW-Authenticate come out of the gateway?",
        {
            "renamed": Outcome(EXPECTED, "x-amzn-Remapped-WWW-Authenticate, as the tests have it: browsers show no window for a password, and are led to the page."),
            "kept": Outcome(DIFFERS, "It is kept: browsers ask for a password in a window of their own. The tests' gateway has to keep it, too."),
            "dropped": Outcome(DIFFERS, "It is dropped. No client of MLflow needs it."),
        },
        _challenge,
        judge_challenge,
    ),
    Check(
        "cookies",
        "Are both cookies of a session set, and do they arrive among others? Set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD for it.",
        {
            "arrive": Outcome(EXPECTED, "Yes. Users sign in on the page."),
            "not both are set": Outcome(DIFFERS, "The gateway joins or drops cookies of answers: the page cannot be used."),
            "do not arrive": Outcome(DIFFERS, "The gateway joins or drops cookies of requests: the page cannot be used."),
        },
        _cookies,
        judge_cookies,
    ),
    Check(
        "client address",
        "Is the address in the audit log the caller's, and not one that the caller made up in X-Forwarded-For or Forwarded?",
        {
            "the caller's": Outcome(EXPECTED, "Yes: requestContext.http.sourceIp."),
            "forged": Outcome(DIFFERS, "Callers choose the address by which failed sign-ins are counted and logged. Report it as docs/guide/security.md says."),
            "none": Outcome(DIFFERS, "The log has no address: failed sign-ins are not told apart by it."),
        },
        _address,
        judge_address,
    ),
    Check(
        "rates",
        f"Does the gateway answer 429 to more than its rate? At most {_REQUESTS} requests, {_AT_ONCE} at once.",
        {
            "limited": Outcome(EXPECTED, "Yes. The numbers say from which request on."),
            "no sandboxes": Outcome(DIFFERS, "The account's quota of sandboxes was used up first (503): ask for more, or lower RequestRate (operator guide, Many requests)."),
            "not limited": Outcome(DIFFERS, "Many more were answered than the stage allows: its limits are not in force."),
            "not reached": Outcome(OPEN, "Nothing: this machine sent fewer than the rate. Deploy with RequestRate=50 and RequestBurst=50 to learn more."),
        },
        _rates,
        judge_rates,
    ),
]
