"""Checks how the gateway handles responses, cookies, addresses and rates."""

import os
import re
import secrets
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from .check import DIFFERS, EXPECTED, OPEN, Check, Facts, NotAsked, Outcome
from .world import API, World, asked

#: An address in a network reserved for documentation.
_FORGED = "203.0.113.77"
#: The session cookie that is not secret.
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
        raise NotAsked("MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD are not set")
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
        # Signs out like a browser: with the session's cookie, but without its companion.
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
        raise NotAsked("the log has no matching line after a minute")
    # The address itself is private, so only the comparison is recorded.
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


def _settings(world: World) -> Facts:
    client = world.aws("apigatewayv2")
    facts: Facts = {}
    apis = {"signed": "Api"} | ({"users": "UsersApi"} if "UsersUri" in world.outputs else {})
    for name, resource in apis.items():
        with asked("describing the API"):
            described = world.aws("cloudformation").describe_stack_resource(StackName=world.stack, LogicalResourceId=resource)
            identifier = described["StackResourceDetail"]["PhysicalResourceId"]
            api = client.get_api(ApiId=identifier)
            stage = client.get_stage(ApiId=identifier, StageName="$default")
        facts[name] = {
            "API has the tag": api.get("Tags", {}).get("mlflow-stack") == world.stack,
            "stage has the tag": stage.get("Tags", {}).get("mlflow-stack") == world.stack,
            "closed": bool(api.get("DisableExecuteApiEndpoint")),
            "should be closed": world.parameter("DisableExecuteApiEndpoint") == "true",
            "writes a log": bool(stage.get("AccessLogSettings")),
            "should write a log": world.parameter("AccessLogs") == "on",
            "warnings": len(api.get("Warnings", [])) + len(api.get("ImportInfo", [])),
        }
    return facts


def judge_settings(facts: Facts) -> str:
    if any(api["closed"] != api["should be closed"] or api["writes a log"] != api["should write a log"] for api in facts.values()):
        return "not as asked"
    if not all(api["stage has the tag"] for api in facts.values()):
        return "no tag"
    if not all(api["API has the tag"] for api in facts.values()):
        return "only on stages"
    return "warnings" if any(api["warnings"] for api in facts.values()) else "as asked"


CHECKS = [
    Check(
        "settings of the gateway",
        "Do the APIs and their stages have the stack's tag, and the settings of DisableExecuteApiEndpoint and AccessLogs?",
        {
            "as asked": Outcome(EXPECTED, "Yes. Costs of the gateway are attributed to the stack."),
            "only on stages": Outcome(OPEN, "Only the stages have the tag. Check in Cost Explorer, after a day, whether costs of API Gateway are attributed to it."),
            "no tag": Outcome(DIFFERS, "A stage has no tag, so budgets and bills by tag leave out the gateway."),
            "not as asked": Outcome(DIFFERS, "DisableExecuteApiEndpoint or AccessLogs has no effect. After DisableExecuteApiEndpoint was true, run: aws apigatewayv2 update-api --api-id API_ID --no-disable-execute-api-endpoint"),
            "warnings": Outcome(OPEN, "API Gateway has warnings about the OpenAPI body, which should have failed the deployment. Report them: aws apigatewayv2 get-api --api-id API_ID"),
        },
        _settings,
        judge_settings,
    ),
    Check(
        "challenge",
        "Under which name does the gateway return WWW-Authenticate?",
        {
            "renamed": Outcome(EXPECTED, "As x-amzn-Remapped-WWW-Authenticate, like in the tests: browsers show no password dialog, and are redirected to the page."),
            "kept": Outcome(DIFFERS, "It is kept: browsers show a password dialog. The gateway of the tests has to keep it, too."),
            "dropped": Outcome(DIFFERS, "It is dropped. MLflow clients do not need it."),
        },
        _challenge,
        judge_challenge,
    ),
    Check(
        "cookies",
        "Are both cookies of a session set, and do they arrive together with others? Requires MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD.",
        {
            "arrive": Outcome(EXPECTED, "Yes. Users can sign in on the page."),
            "not both are set": Outcome(DIFFERS, "The gateway joins or drops cookies in responses: the page cannot be used."),
            "do not arrive": Outcome(DIFFERS, "The gateway joins or drops cookies in requests: the page cannot be used."),
        },
        _cookies,
        judge_cookies,
    ),
    Check(
        "client address",
        "Is the address in the audit log the caller's actual address, and not one forged in X-Forwarded-For or Forwarded?",
        {
            "the caller's": Outcome(EXPECTED, "Yes, from requestContext.http.sourceIp."),
            "forged": Outcome(DIFFERS, "Callers control the address by which failed sign-ins are counted and logged. Report it as described in docs/guide/security.md."),
            "none": Outcome(DIFFERS, "The log has no address, so it cannot distinguish failed sign-ins."),
        },
        _address,
        judge_address,
    ),
    Check(
        "rates",
        f"Does the gateway respond with 429 beyond its rate limit? Sends at most {_REQUESTS} requests, {_AT_ONCE} concurrently.",
        {
            "limited": Outcome(EXPECTED, "Yes. The numbers show after how many requests."),
            "no sandboxes": Outcome(DIFFERS, "The account's quota of concurrent executions was exhausted first (503): request a higher quota, or lower RequestRate (docs/guide/operate.md, Many requests)."),
            "not limited": Outcome(DIFFERS, "Many more requests succeeded than the stage allows: its limits are not effective."),
            "not reached": Outcome(OPEN, "Inconclusive, because this machine did not exceed the rate. Deploy with RequestRate=50 and RequestBurst=50 to find out."),
        },
        _rates,
        judge_rates,
    ),
]
