"""Reads the parts of the template that have a cost. Parsed line by line, because Python's standard
library has no YAML parser.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


#: Parameters that `make deploy` sets for a new stack (tools/deploy/settings.py).
OF_A_NEW_STACK = {"Users": "on"}


class Template:
    """The resources of a template that exist with the parameters that a new stack gets."""

    def __init__(self, path: Path, said: Mapping[str, str] = OF_A_NEW_STACK) -> None:
        text = path.read_text("utf-8")
        sections = dict(re.findall(r"^(\w+):\n((?:(?: .*|#.*|)\n)*)", text, re.MULTILINE))
        blocks = dict(re.findall(r"^  (\w+):\n((?:(?:    .*|  #.*|)\n)*)", sections["Parameters"], re.MULTILINE))
        self.defaults = {name: _value(block, "Default") or "" for name, block in blocks.items()} | dict(said)
        self._conditions = dict(re.findall(r"^  (\w+): (!.*)$", sections["Conditions"], re.MULTILINE))
        blocks = re.findall(r"^  (\w+):\n((?:(?:    .*|  #.*|)\n)*)", sections["Resources"], re.MULTILINE)
        self.all = {name: _without_remarks(block) for name, block in blocks}
        assert len(self.all) > 20, "the template has an unexpected format"
        self.resources = {name: block for name, block in self.all.items() if self._is_made(block)}

    def of(self, kind: str) -> dict[str, str]:
        return {name: block for name, block in self.resources.items() if _value(block, "Type") == kind}

    def default_of(self, value: str | None) -> str | None:
        """Returns the value of a property with the parameters of a new stack."""
        found = re.fullmatch(r"!Ref (\w+)", value or "")
        return self.defaults[found[1]] if found else value

    def number(self, block: str, name: str) -> int:
        value = self.default_of(_value(block, name))
        assert value, f"no {name} in the template's resource:\n{block}"
        return int(value)

    def decided(self, block: str) -> str:
        """Returns a resource without the list items whose conditions do not hold for a new
        stack."""
        item = r"^( +)- Fn::If:\n +- (\w+)\n((?:\1 .*\n)*)"
        return re.sub(item, lambda found: found[3] if self.holds(found[2]) else "", block, flags=re.MULTILINE)

    def _is_made(self, block: str) -> bool:
        condition = re.search(r"^    Condition: (\w+)$", block, re.MULTILINE)
        return not condition or self.holds(condition[1])

    def holds(self, condition: str) -> bool:
        """Returns whether a condition holds with the parameters of a new stack."""
        return self._holds(self._conditions[condition])

    def _holds(self, text: str) -> bool:
        if found := re.fullmatch(r'!Equals \[!Ref (\w+), "?([^"\]]*)"?\]', text):
            return self.defaults[found[1]] == found[2]
        if found := re.fullmatch(r"!Not \[(.*)\]", text):
            return not self._holds(found[1])
        if found := re.fullmatch(r"!Condition (\w+)", text):
            return self.holds(found[1])
        if found := re.fullmatch(r"!(And|Or) \[(.*)\]", text):
            return {"And": all, "Or": any}[found[1]](self._holds(part) for part in _parts(found[2]))
        raise ValueError(f"a condition with an unexpected format: {text}")


def _parts(text: str) -> list[str]:
    """Splits a list, whose items may contain lists."""
    parts, depth = [""], 0
    for character in text:
        depth += {"[": 1, "]": -1}.get(character, 0)
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _without_remarks(block: str) -> str:
    return "".join(line for line in block.splitlines(keepends=True) if not line.lstrip().startswith("#"))


def _value(block: str, name: str) -> str | None:
    found = re.search(rf"^ +{name}: (.+?)(?: +#.*)?$", block, re.MULTILINE)
    return found[1].strip('"') if found else None


@dataclass(frozen=True)
class Stack:
    #: Memory of each function in MB.
    memory: dict[str, int]
    #: Functions for which the platform logs no lines about calls, because SystemLogLevel is WARN.
    silent: set[str]
    #: Number of metrics in alarms, which determines their price.
    alarm_metrics: int
    #: Number of metrics in alarms, including alarms that a new stack does not have.
    all_alarm_metrics: int
    metrics: list[str]
    dashboards: int
    #: Retention of logs in days.
    log_days: int
    #: Scheduled calls of functions per month.
    ticks: int
    #: Seconds for which changes are collected before they are indexed.
    gathered: int
    #: Whether the gateway logs a line about each call.
    gateway_lines: bool
    #: Requests per second that the API for users accepts.
    users_rate: int


#: Hours of a month in AWS's price calculations.
HOURS = 730
_MINUTES = {"minute": 1, "minutes": 1, "hour": 60, "hours": 60, "day": 1440, "days": 1440}


def read(path: Path) -> Stack:
    template = Template(path)
    functions = template.of("AWS::Serverless::Function")
    retentions = {template.number(block, "RetentionInDays") for block in template.of("AWS::Logs::LogGroup").values()}
    assert len(retentions) == 1, f"logs are kept for different times: {retentions}"
    return Stack(
        memory={name: template.number(block, "MemorySize") for name, block in functions.items()},
        silent={name for name, block in functions.items() if template.default_of(_value(block, "SystemLogLevel")) == "WARN"},
        alarm_metrics=sum(_alarm_metrics(template.decided(block)) for block in template.of("AWS::CloudWatch::Alarm").values()),
        all_alarm_metrics=sum(_alarm_metrics(block) for block in template.all.values() if _value(block, "Type") == "AWS::CloudWatch::Alarm"),
        metrics=sorted({name for block in template.of("AWS::Logs::MetricFilter").values() for name in re.findall(r"MetricName: (\w+)", block)}),
        dashboards=len(template.of("AWS::CloudWatch::Dashboard")),
        log_days=retentions.pop(),
        ticks=sum(_ticks(block) for block in template.of("AWS::Events::Rule").values()),
        gathered=int(template.defaults["IndexingDelay"]),
        gateway_lines=bool(template.of("AWS::ApiGatewayV2::Stage")) and template.holds("HasAccessLogs"),
        users_rate=int(template.defaults["UsersRequestRate"]),
    )


def _alarm_metrics(block: str) -> int:
    # An expression is not a metric itself, but the metrics in it are.
    return len(re.findall(r"^ +MetricStat:", block, re.MULTILINE)) or 1


def _ticks(block: str) -> int:
    schedule = _value(block, "ScheduleExpression")
    found = re.fullmatch(r"rate\((\d+) (\w+)\)", schedule or "")
    assert found, f"a schedule with an unexpected format: {schedule}"
    return round(HOURS * 60 / (int(found[1]) * _MINUTES[found[2]]))
