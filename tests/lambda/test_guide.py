"""Checks that the operator guide describes the stack as template.yaml defines it."""

import re

import pytest
from samtranslator.yaml_helper import yaml_parse

from .conftest import REPOSITORY

#: Pages of the guide for operators of a stack.
_GUIDE = "\n".join((REPOSITORY / f"docs/guide/{page}.md").read_text() for page in ("deploy", "users", "operate", "recover"))


@pytest.fixture(scope="module")
def template() -> dict:
    return yaml_parse((REPOSITORY / "template.yaml").read_text())


@pytest.fixture(scope="module")
def functions(template: dict) -> dict[str, dict]:
    """Returns the properties of the functions by folder, including the shared properties."""
    shared = template["Globals"]["Function"]
    functions = [item["Properties"] for item in template["Resources"].values() if item["Type"].endswith("::Function")]
    return {function["CodeUri"].removeprefix("functions/"): shared | function for function in functions}


def _table(title: str) -> dict[str, str]:
    """Returns the first and second columns of the table whose header begins with `title`. A cell in
    the first column may contain several names.
    """
    lines = _GUIDE.split(f"| {title} |")[1].splitlines()[2:]
    rows = [[cell.strip() for cell in line.split("|")[1:]] for line in lines[: lines.index("")]]
    return {name: row[1] for row in rows for name in re.findall(r"`([^`]+)`", row[0])}


def test_alarms(template: dict):
    alarms = {name for name, item in template["Resources"].items() if item["Type"] == "AWS::CloudWatch::Alarm"}
    assert _table("alarm").keys() == alarms


def test_parameters(template: dict):
    defaults = {name: str(parameter["Default"]) for name, parameter in template["Parameters"].items()}
    told = _table("parameter")
    assert told.keys() == defaults.keys()
    for name, default in defaults.items():
        assert told[name].startswith(f"`{default}`" if default else "empty"), name
    delay = template["Parameters"]["IndexingDelay"]
    assert f"seconds, {delay['MinValue']} to {delay['MaxValue']}" in _GUIDE


def test_outputs(template: dict):
    assert _table("output").keys() == template["Outputs"].keys()


def test_functions(functions: dict[str, dict]):
    told = re.search(r"the functions ((?:`[\w-]+`(?:, | and )?)+) \(arm64, (\d+) MB, timeout (\d+) s\)", _flat(_GUIDE))
    of_their_own = ["fts-indexer", "deliver", "housekeeper", "ui"]
    api = {name: function for name, function in functions.items() if name not in of_their_own}
    assert set(re.findall(r"`([\w-]+)`", told[1])) == api.keys()
    for name, function in api.items():
        assert (function["MemorySize"], function["Timeout"]) == (int(told[2]), int(told[3])), name
    for name in of_their_own:
        assert f"`{name}` ({functions[name]['MemorySize']} MB, timeout {functions[name]['Timeout']} s)" in _flat(_GUIDE), name
    for name in functions:
        assert f"`{name}`" in _GUIDE.split("`/aws/lambda/STACK/FUNCTION`")[1].split("\n\n")[0], name


def test_logs_are_kept_so_long(template: dict):
    groups = [item["Properties"] for item in template["Resources"].values() if item["Type"] == "AWS::Logs::LogGroup"]
    # One for each function, and one for the requests that both stages refuse.
    assert len(groups) == len(list((REPOSITORY / "functions").glob("*/Cargo.toml"))) + 1
    assert all(group["RetentionInDays"] == {"Ref": "LogRetention"} for group in groups)
    assert template["Parameters"]["LogRetention"]["Default"] == 30
    assert "kept for 30 days" in _flat(_GUIDE)


def _flat(text: str) -> str:
    return " ".join(text.split())
