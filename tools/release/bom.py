"""The bill of materials of a program in CycloneDX format, generated from the dependencies in
cargo's metadata.
"""

import json
import re
import subprocess
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

#: The program is built by a separate invocation of cargo, with features that no function has.
_FEATURES = {"mlflow-serverless": ["mlflow-serverless/standalone"]}


def version(repository: Path) -> str:
    return tomllib.loads((repository / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def components(repository: Path, triple: str, packages: Iterable[str], ui: str) -> str:
    """Returns all crates that are linked into these packages, and MLflow's user interface of this
    version.
    """
    lock = tomllib.loads((repository / "Cargo.lock").read_text())
    digests = {(one["name"], one["version"]): one["checksum"] for one in lock["package"] if "checksum" in one}
    found = [_component(package, digests) for package in crates(repository, triple, packages)]
    found.append({
        "type": "library", "name": "mlflow-ui", "version": ui, "purl": f"pkg:pypi/mlflow@{ui}",
        "bom-ref": f"pkg:pypi/mlflow@{ui}", "licenses": [{"expression": "Apache-2.0"}],
    })
    own = {"type": "application", "name": "mlflow-serverless", "version": version(repository), "licenses": [{"expression": "Apache-2.0"}]}
    # Without a time and serial number, so that the same sources give the same document.
    document = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "metadata": {"component": own}, "components": found}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def licence_texts(repository: Path, triple: str, packages: Iterable[str]) -> str:
    """Returns the licences of these crates, each text once. Most require their notice to accompany
    the program.
    """
    crates_by_text: dict[str, list[str]] = {}
    without = []
    for package in crates(repository, triple, packages):
        name = f"{package['name']} {package['version']}"
        if package["source"] is None:
            continue
        texts = [path.read_text("utf-8", "replace").strip() for path in _licence_files(Path(package["manifest_path"]).parent)]
        if not texts:
            without.append(f"{name}: {package['license']}")
        for text in texts:
            crates_by_text.setdefault(text, []).append(name)
    sections = [f"{'=' * 80}\n{', '.join(names)}\n\n{text}\n" for text, names in crates_by_text.items()]
    if without:
        sections.append("\n".join([f"{'=' * 80}\nCrates without a licence text:\n", *without]) + "\n")
    return "\n".join(sections)


def _licence_files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.iterdir() if path.is_file() and re.match(r"(?i)(licen[cs]e|copying|notice)", path.name))


@cache
def _metadata(repository: Path, triple: str, features: tuple[str, ...]) -> dict[str, Any]:
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", triple]
    if features:
        command += ["--features", ",".join(features)]
    return json.loads(subprocess.run(command, cwd=repository, check=True, capture_output=True, text=True).stdout)


def crates(repository: Path, triple: str, packages: Iterable[str]) -> list[dict[str, Any]]:
    """Returns the packages that are linked into the given ones, as described by cargo."""
    packages = list(packages)
    features = tuple(feature for package in packages for feature in _FEATURES.get(package, []))
    return linked(_metadata(repository, triple, features), packages)


def linked(said: dict[str, Any], packages: Iterable[str]) -> list[dict[str, Any]]:
    """Returns the packages that the given ones need at run time, sorted by name and version.
    `said` is the output of `cargo metadata`."""
    by_id = {package["id"]: package for package in said["packages"]}
    nodes = {node["id"]: node for node in said["resolve"]["nodes"]}
    names = set(packages)
    waiting = [id_ for id_ in said["workspace_members"] if by_id[id_]["name"] in names]
    if len(waiting) != len(names):
        raise ValueError(f"the workspace lacks one of {sorted(names)}")
    found = set(waiting)
    while waiting:
        for dependency in nodes[waiting.pop()]["deps"]:
            is_linked = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            if is_linked and dependency["pkg"] not in found:
                found.add(dependency["pkg"])
                waiting.append(dependency["pkg"])
    return sorted((by_id[id_] for id_ in found), key=lambda package: (package["name"], package["version"]))


def _component(package: dict[str, Any], digests: dict[tuple[str, str], str]) -> dict[str, Any]:
    name, of_version = package["name"], package["version"]
    component = {"type": "library", "name": name, "version": of_version, "bom-ref": f"pkg:cargo/{name}@{of_version}"}
    if package["source"]:
        component["purl"] = f"pkg:cargo/{name}@{of_version}"
    if package["license"]:
        component["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if digest := digests.get((name, of_version)):
        component["hashes"] = [{"alg": "SHA-256", "content": digest}]
    return component
