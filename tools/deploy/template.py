"""Validates parameters against template.yaml before anything is built. CloudFormation would only
refuse them afterwards.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from samtranslator.yaml_helper import yaml_parse


def read_template() -> dict[str, Any]:
    """Reads the template in the current directory."""
    return yaml_parse(Path("template.yaml").read_text())


def refused(template: Mapping[str, Any], said: Mapping[str, str], kept: Mapping[str, str]) -> Iterator[str]:
    """Yields problems with the given parameters, on top of the parameters that a stack keeps."""
    known = template["Parameters"]
    for name, value in said.items():
        if name not in known:
            yield f"There is no parameter {name}. The parameters are: {', '.join(known)}."
        elif why := _not_allowed(known[name], value):
            yield f"{name}={value}: {why}."
    values = {name: str(one.get("Default", "")) for name, one in known.items()} | dict(kept) | dict(said)
    for rule in template["Rules"].values():
        if _holds(rule["RuleCondition"], values):
            yield from (one["AssertDescription"] for one in rule["Assertions"] if not _holds(one["Assert"], values))


def _not_allowed(parameter: Mapping[str, Any], value: str) -> str | None:
    if "AllowedValues" in parameter and value not in map(str, parameter["AllowedValues"]):
        return f"it must be one of {', '.join(map(str, parameter['AllowedValues']))}"
    if "AllowedPattern" in parameter and not re.fullmatch(parameter["AllowedPattern"], value):
        return f"it {parameter['ConstraintDescription']}"
    if len(value) > parameter.get("MaxLength", len(value)):
        return f"it must have at most {parameter['MaxLength']} characters"
    if parameter["Type"] == "Number":
        if not re.fullmatch("[0-9]+", value):
            return "it must be a number"
        least, most = parameter.get("MinValue", 0), parameter.get("MaxValue", float("inf"))
        if not least <= int(value) <= most:
            return f"it must be at least {least}" if most == float("inf") else f"it must be from {least} to {most}"
    return None


def _holds(said: Mapping[str, Any], values: Mapping[str, str]) -> bool:
    """Evaluates a condition of a rule. Supports only the functions that the template uses."""
    [(name, arguments)] = said.items()
    if name == "Fn::Equals":
        left, right = (_value(argument, values) for argument in arguments)
        return left == right
    if name == "Fn::Not":
        return not _holds(arguments[0], values)
    if name in ("Fn::And", "Fn::Or"):
        parts = [_holds(argument, values) for argument in arguments]
        return all(parts) if name == "Fn::And" else any(parts)
    raise NotImplementedError(name)


def _value(argument: Any, values: Mapping[str, str]) -> str:
    return values[argument["Ref"]] if isinstance(argument, Mapping) else str(argument)
