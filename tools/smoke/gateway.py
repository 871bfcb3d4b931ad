"""Checks how the gateway handles responses, cookies, addresses and rates."""

import os
import re
import secrets
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from .check import DIFFERS, EXPECTED, OPEN, Check, Facts, NotAsked, Outcome
from .world import API, TAG, World, asked

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


def _warnings(world: World) -> Facts:
    if world.parameter("ApplicationLogLevel") != "WARN":
        raise NotAsked("it requires a stack with ApplicationLogLevel=WARN")
    user, began = world.label + secrets.token_hex(4), time.monotonic()
    # A failed sign-in is logged as a warning, and every request as information.
    world.call("GET", f"{API}/experiments/get?experiment_id=0", url=world.users, is_signed=False, auth=(user, "x"))
    shown = world.wait(lambda: world.log_lines("tracking", user, 600), 60)
    return {"the warning after s": shown, "lines of INFO": len(world.log_lines("tracking", "INFO", time.monotonic() - began))}


def judge_warnings(facts: Facts) -> str:
    if facts["the warning after s"] is None:
        return "hidden"
    return "INFO as well" if facts["lines of INFO"] else "shown"


def _tags(world: World) -> Facts:
    """Reads the tags of what is billed: the APIs and their stages."""
    client, facts = world.aws("apigatewayv2"), {}
    arn = f"arn:{client.meta.partition}:apigateway:{client.meta.region_name}::/apis"
    for name, identifier in world.resources("AWS::ApiGatewayV2::Api").items():
        for what, resource in ((name, f"{arn}/{identifier}"), (f"stage of {name}", f"{arn}/{identifier}/stages/$default")):
            with asked("reading tags"):
                facts[what] = client.get_tags(ResourceArn=resource).get("Tags", {}).get(TAG) == world.tag
    return facts


def judge_tags(facts: Facts) -> str:
    stages = [has_tag for what, has_tag in facts.items() if what.startswith("stage")]
    if not stages or not all(stages):
        return "not billed by tag"
    return "tagged" if all(facts.values()) else "stages alone"


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
    for name, identifier in world.resources("AWS::ApiGatewayV2::Api").items():
        with asked("describing the API"):
            api = client.get_api(ApiId=identifier)
            stage = client.get_stage(ApiId=identifier, StageName="$default")
        facts[name] = {
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
    return "warnings" if any(api["warnings"] for api in facts.values()) else "as asked"


CHECKS = [
    Check(
        "settings of the gateway",
        "Do the APIs have the settings of DisableExecuteApiEndpoint and AccessLogs, and no warnings?",
        {
            "as asked": Outcome(EXPECTED, "Yes."),
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
        "warnings",
        "Does ApplicationLogLevel=WARN show warnings and errors, and hide other lines? The alarms depend on it.",
        {
            "shown": Outcome(EXPECTED, "Yes."),
            "INFO as well": Outcome(DIFFERS, "Lines of INFO are shown, too: the log costs as much as without the setting."),
            "hidden": Outcome(DIFFERS, "Warnings are hidden, so the alarms that count lines never go off. Deploy with ApplicationLogLevel=INFO."),
        },
        _warnings,
        judge_warnings,
    ),
    Check(
        "tags",
        "Do the APIs and their stages have the stack's tag, by which the bill and the budget find their costs?",
        {
            "tagged": Outcome(EXPECTED, "Yes."),
            "stages alone": Outcome(OPEN, "Only the stages have it. Compare the costs of API Gateway by tag with all its costs in Cost Explorer."),
            "not billed by tag": Outcome(DIFFERS, "A stage lacks the tag: the budget does not count the costs of API Gateway. Add the tag by hand: aws apigatewayv2 tag-resource."),
        },
        _tags,
        judge_tags,
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
