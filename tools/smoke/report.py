"""Reports of the checks, without anything that identifies an account, host, address or secret."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .check import ALWAYS, Result

_PLACE = "the project's issue tracker, at the address that this checkout came from (git remote get-url origin)"
_PATTERNS = [
    (r"\barn:[\w-]+:[^\s\"',]+", "ARN"),
    (r"https?://[^\s\"',]+", "URL"),
    (r"\b[\w.-]+\.amazonaws\.com(?:\.cn)?\b", "HOST"),
    (r"\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{8,}\b", "KEY"),
    (r"\bmlflow-token_[\w.-]+", "TOKEN"),
    (r"\b\d{12}\b", "ACCOUNT"),
    (r"\b\d{1,3}(?:\.\d{1,3}){3}\b", "ADDRESS"),
]


def redacted(value: Any, secrets: Iterable[str] = ()) -> Any:
    """Returns the JSON with identifying information removed from names and values."""
    if isinstance(value, dict):
        return {redacted(name, secrets): redacted(of, secrets) for name, of in value.items()}
    if isinstance(value, list):
        return [redacted(of, secrets) for of in value]
    if not isinstance(value, str):
        return value
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        value = value.replace(secret, "…")
    for pattern, name in _PATTERNS:
        value = re.sub(pattern, name, value)
    return value


def told(result: Result) -> str:
    """Formats a result for display: the question, the observations, and the meaning of each
    possible answer.
    """
    check, lines = result.check, []
    lines.append(f"{check.name}: {check.asks}")
    lines.append(f"  observed: {json.dumps(result.facts, ensure_ascii=False)} ({result.seconds:.0f} s)")
    for name, outcome in {**check.outcomes, **{name: ALWAYS[name] for name in ALWAYS if name == result.outcome}}.items():
        mark = "->" if name == result.outcome else "  "
        lines.append(f"  {mark} {name} ({outcome.verdict}): {outcome.means}")
    if result.verdict != "as expected":
        lines.append(f"  Report it at {place()}.")
    return "\n".join(lines)


def place() -> str:
    """Returns where results are to be reported. Reads the repository from the workspace's manifest,
    if it has one.
    """
    manifest = (Path(__file__).parents[2] / "Cargo.toml").read_text()
    found = re.search(r'^repository\s*=\s*"([^"]+)"', manifest, re.MULTILINE)
    return f"{found[1]}/issues" if found else _PLACE


def as_json(results: Iterable[Result], about: dict[str, Any]) -> dict[str, Any]:
    """Returns the content of the result file."""
    checks = [
        {
            "name": result.check.name,
            "asks": result.check.asks,
            "outcome": result.outcome,
            "verdict": result.verdict,
            "means": result.check.outcome(result.outcome).means,
            "came": result.facts,
            "seconds": round(result.seconds, 1),
        }
        for result in results
    ]
    return about | {"checks": checks}


def as_table(results: Iterable[Result]) -> str:
    """Returns a Markdown table for pasting."""
    rows = [f"| {result.check.name} | {result.outcome} | {result.verdict} | `{json.dumps(result.facts, ensure_ascii=False)}` |" for result in results]
    return "\n".join(["| check | answer | verdict | observations |", "|---|---|---|---|", *rows])
