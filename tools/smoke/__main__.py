"""Checks on a stack in AWS what no emulator can: `make smoke STACK=mlflow`.

Takes at most 20 minutes and a dollar, and removes everything it has created. Requires AWS
credentials that may call the API, and permissions for the table, logs and stack for some of the
checks. Checks without permission are skipped. The only dependencies come with SAM (boto3,
requests). `docs/guide/deploy.md` lists the checks.
"""

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from requests import RequestException

from . import bodies, gateway, paths, platform, report
from .check import DIFFERS, Check, NotAsked, Result
from .cleanup import Cleanup, remove_all
from .spending import MOST_DOLLARS, MOST_SECONDS, SECONDS_TO_CLEAN_UP, Spent
from .world import World

#: Cold starts come first, before anything is warm. The check that may be throttled comes last.
CHECKS = [*platform.CHECKS[:1], *paths.CHECKS, *bodies.CHECKS, *gateway.CHECKS[:-1], *platform.CHECKS[1:], *gateway.CHECKS[-1:]]


class Interrupted(BaseException):
    """The run was ended by a signal or the time limit. No check handles this as its own failure."""


def main() -> None:
    said = _arguments()
    # Python programs read AWS_DEFAULT_REGION, all others AWS_REGION.
    if os.environ.get("AWS_REGION"):
        os.environ["AWS_DEFAULT_REGION"] = os.environ["AWS_REGION"]
    checks = [check for check in CHECKS if not said.only or check.name in said.only]
    _catch_signals()
    results: list[Result] = []
    left: list[str] = []
    try:
        world = World(said.stack, said.tracking_uri, said.users_uri, said.patience, restores=said.restore, cleanup=Cleanup())
    except (BotoCoreError, ClientError) as error:
        sys.exit(f"AWS: {error}")
    except KeyError as error:
        sys.exit(f"The stack {said.stack} has no output {error}: it does not belong to this project, or is not complete.")
    except Interrupted as why:
        sys.exit(f"{why}. Nothing was created.")
    print(f"Checking {said.stack} for at most {MOST_SECONDS // 60} minutes and {MOST_DOLLARS:.0f} dollar, in the experiment {world.label}.\n", flush=True)
    ended = None
    try:
        world.cleanup.add("resources of the checks", lambda: remove_all(world))
        for result in _answers(world, checks):
            results.append(result)
            print(report.redacted(report.told(result), _secrets(world)) + "\n", flush=True)
    except Interrupted as why:
        ended = str(why)
        print(f"{ended}: cleaning up ...", flush=True)
    finally:
        _ignore_signals()
        world.spending.most = MOST_DOLLARS
        left = world.cleanup.run()
    _write(Path(said.output), world, results, left, ended)
    sys.exit(1 if left or ended or any(result.verdict == DIFFERS for result in results) else 0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="smoke", description="Checks on a stack in AWS what no emulator can.")
    parser.add_argument("--stack", required=True, help="name of the stack, in the account and region of the current profile")
    parser.add_argument("--only", nargs="*", metavar="CHECK", choices=[check.name for check in CHECKS], help="run only these checks")
    parser.add_argument("--restore", action="store_true", help="restore the access table to a new table, and delete the new table")
    parser.add_argument("--output", default="smoke.json", help="path of the result file")
    parser.add_argument("--tracking-uri", help="URI to use instead of the output TrackingUri, such as a custom domain")
    parser.add_argument("--users-uri", help="URI to use instead of the output UsersUri")
    parser.add_argument("--patience", type=float, default=35, help="timeout of a response, in seconds")
    return parser.parse_args()


def _answers(world: World, checks: Iterable[Check]) -> Iterable[Result]:
    for check in checks:
        yield put(world, check)


def put(world: Any, check: Check) -> Result:
    """Runs a check. Errors are results, too, so that the remaining checks still run."""
    began = time.monotonic()
    try:
        facts = check.ask(world)
        outcome = check.judge(facts)
    except (NotAsked, Spent) as why:
        outcome, facts = "not asked", {"why": str(why)}
    except (RequestException, ClientError, BotoCoreError, KeyError, ValueError) as error:
        outcome, facts = "something else", {"error": f"{type(error).__name__}: {error}"}
    return Result(check, outcome, facts, time.monotonic() - began)


def _secrets(world: World) -> list[str]:
    """Returns the texts that would identify the stack."""
    return [world.signed, *world.outputs.values()]


def _write(file: Path, world: World, results: list[Result], left: list[str], ended: str | None) -> None:
    about = {
        "version": 1,
        "when": time.strftime("%Y-%m-%d", time.gmtime()),
        "region": world.dynamodb.meta.region_name,
        "requests": world.spending.requests,
        "dollars at most": round(world.spending.dollars, 4),
        "ended": ended,
        "left": left,
    }
    kept = report.redacted(report.as_json(results, about), _secrets(world))
    file.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    print(report.redacted(report.as_table(results), _secrets(world)))
    print(f"\n{about['requests']} requests cost at most ${world.spending.dollars:.2f}. Results: {file}. To report them, paste the table or attach the file at {report.place()}.")
    for one in left:
        # Not redacted, because the names are needed for removing it by hand.
        print(f"LEFT: {one}")


def _catch_signals() -> None:
    def end(number: int, _: Any) -> None:
        raise Interrupted("The time limit was reached" if number == signal.SIGALRM else f"Interrupted by {signal.Signals(number).name}")

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):
        signal.signal(number, end)
    signal.setitimer(signal.ITIMER_REAL, MOST_SECONDS - SECONDS_TO_CLEAN_UP)


def _ignore_signals() -> None:
    """Keeps signals from interrupting the cleanup, which has a time limit of its own."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: print("Still cleaning up ...", flush=True))


if __name__ == "__main__":
    main()
