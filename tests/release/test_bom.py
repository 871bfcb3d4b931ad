"""Tests of the list of components in a program: all linked crates, and no others. It also shows
which features a function has.
"""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tools/release"))
import bom  # noqa: E402
import build  # noqa: E402


def test_what_only_builds_or_tests_is_not_linked():
    def node(id_: str, *deps: tuple[str, str | None]) -> dict:
        return {"id": id_, "deps": [{"pkg": pkg, "dep_kinds": [{"kind": kind}]} for pkg, kind in deps]}

    nodes = [node("own", ("a", None), ("b", "build"), ("c", "dev")), node("a", ("d", None)), node("b", ("e", None)), node("d", ("a", None))]
    nodes += [node("c"), node("e")]
    packages = [{"id": node["id"], "name": node["id"], "version": "1.0.0"} for node in nodes]
    said = {"packages": packages, "resolve": {"nodes": nodes}, "workspace_members": ["own"]}
    assert [package["name"] for package in bom.linked(said, ["own"])] == ["a", "d", "own"]


@cache
def _components(triple: str, *packages: str) -> dict[str, dict]:
    # The version of the user interface does not matter here, and it does not have to be downloaded.
    found = json.loads(bom.components(REPOSITORY, triple, packages, ui="3.17.2"))
    assert (found["bomFormat"], found["metadata"]["component"]["version"]) == ("CycloneDX", bom.version(REPOSITORY))
    return {component["name"]: component for component in found["components"]}


def test_crates_have_an_address_a_licence_and_a_digest():
    component = _components("x86_64-unknown-linux-musl", "mlflow-serverless")["axum"]
    assert component["purl"] == f"pkg:cargo/axum@{component['version']}"
    assert component["licenses"] == [{"expression": "MIT"}]
    assert [len(digest["content"]) for digest in component["hashes"]] == [64]


def test_licences_go_with_the_program():
    text = bom.licence_texts(REPOSITORY, "x86_64-unknown-linux-musl", ["mlflow-serverless"])
    # Mozilla's list of roots has a license of its own, and that of axum contains a name.
    assert "webpki-root-certs" in text and "Community Data License Agreement" in text
    assert "axum" in text and "Permission is hereby granted, free of charge" in text
    assert "domains 0." not in text


def test_the_program_has_what_people_need():
    names = _components("x86_64-unknown-linux-musl", "mlflow-serverless")
    assert {"aws-sdk-sso", "webpki-root-certs", "mlflow-ui", "dynoxide-rs"} <= names.keys()


def test_functions_have_neither_logins_of_people_nor_an_engine_nor_roots_of_trust():
    command = ["cargo", "tree", "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p}"]
    packages = [argument for name in build.function_names(REPOSITORY) for argument in ("--package", name)]
    tree = subprocess.run([*command, *packages], cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout
    found = {line.split()[0] for line in tree.splitlines() if line}
    assert "aws-config" in found
    assert not {"aws-sdk-sso", "aws-sdk-ssooidc", "webpki-root-certs", "embedded-engine", "dynoxide-rs"} & found
    names = _components("aarch64-unknown-linux-gnu", *build.function_names(REPOSITORY))
    assert not {"embedded-engine", "dynoxide-rs", "mlflow-serverless"} & names.keys()
