"""Tests of the archive that deploys the stack: it is reproducible, contains everything that
`deploy` needs, and has the committed template except for the code.
"""

import hashlib
import os
import stat
import subprocess
import sys
import tarfile
import zipfile
from io import BytesIO
from pathlib import Path

import pytest
from samtranslator.yaml_helper import yaml_parse

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tools/release"))
import bom  # noqa: E402
import build  # noqa: E402
from archive import Entry, write_tar, zipped  # noqa: E402
from contents import function_archive  # noqa: E402
from digests import write_digests  # noqa: E402
from archive_template import of_archive  # noqa: E402

TEMPLATE = (REPOSITORY / "template.yaml").read_text()


@pytest.mark.parametrize("processor", build.TRIPLES)
def test_the_template_differs_in_the_places_of_the_code_alone(processor: str):
    committed, packed = yaml_parse(TEMPLATE), yaml_parse(of_archive(TEMPLATE, processor))
    assert packed["Globals"]["Function"].pop("Architectures") == [processor]
    committed["Globals"]["Function"].pop("Architectures")
    named = set()
    for name, resource in committed["Resources"].items():
        if resource["Type"] == "AWS::Serverless::Function":
            assert resource.pop("Metadata") == {"BuildMethod": "rust-cargolambda"}
            code = resource["Properties"].pop("CodeUri")
            assert packed["Resources"][name]["Properties"].pop("CodeUri") == f"{code}.zip"
            named.add(code.removeprefix("functions/"))
    assert committed["Resources"]["UiLayer"]["Properties"].pop("ContentUri") == "ui"
    assert packed["Resources"]["UiLayer"]["Properties"].pop("ContentUri") == "ui.zip"
    assert packed == committed
    assert named == set(build.function_names(REPOSITORY))


@pytest.mark.parametrize("line", ["BuildMethod: rust-cargolambda", "CodeUri: functions/", "ContentUri: ui", "Architectures: [arm64]"])
def test_a_template_that_is_written_in_another_way_is_refused(line: str):
    with pytest.raises(ValueError):
        of_archive(TEMPLATE.replace(line, f"# {line}"), "arm64")


def test_another_way_to_build_is_refused():
    with pytest.raises(ValueError):
        of_archive(TEMPLATE.replace("BuildMethod: rust-cargolambda", "BuildMethod: makefile", 1), "arm64")


def _archive(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Creates an archive with small programs."""
    monkeypatch.setattr(bom, "components", lambda *_: "{}\n")
    monkeypatch.setattr(bom, "licence_texts", lambda *_: "\n")
    programs, ui = directory / "programs", directory / "ui"
    for path in (programs, ui / "build"):
        path.mkdir(parents=True)
    (ui / "build/index.html").write_text("<html></html>")
    (ui / "version").write_text("3.17.2")
    for name in build.function_names(REPOSITORY):
        (programs / name).write_text(f"#!/bin/sh\necho {name}\n")
    return function_archive(REPOSITORY, "arm64", {name: programs / name for name in build.function_names(REPOSITORY)}, ui, directory)


def test_an_archive_has_all_that_it_deploys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with tarfile.open(_archive(tmp_path, monkeypatch)) as packed:
        packed.extractall(tmp_path / "unpacked", filter="data")
    [project] = (tmp_path / "unpacked").iterdir()
    template = yaml_parse((project / "template.yaml").read_text())
    codes = [one["Properties"].get("CodeUri") or one["Properties"].get("ContentUri") for one in template["Resources"].values()]
    for code in filter(None, codes):
        with zipfile.ZipFile(project / code) as zipped_code:
            if code.startswith("functions/"):
                [info] = zipped_code.infolist()
                assert info.filename == "bootstrap" and stat.S_IMODE(info.external_attr >> 16) == 0o755
            else:
                assert zipped_code.namelist() == ["build/index.html", "version"]
    assert os.access(project / "deploy", os.X_OK)
    # Files that the command tells its caller to use.
    assert (project / "clients/python/pyproject.toml").is_file() and (project / "examples/quickstart.py").is_file()
    # The layout, which the command compares with that of the table.
    layouts = [_layout(of) for of in (project, REPOSITORY)]
    assert layouts[0] == layouts[1] and layouts[0].strip().isdigit()


def _layout(project: Path) -> str:
    """Returns the layout that a project's command supports."""
    code = [sys.executable, "-c", "import layout; print(layout.current())"]
    return subprocess.run(code, cwd=project / "tools/deploy", capture_output=True, text=True, check=True, timeout=60).stdout


def test_the_command_of_an_archive_tells_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with tarfile.open(_archive(tmp_path, monkeypatch)) as packed:
        packed.extractall(tmp_path / "unpacked", filter="data")
    [project] = (tmp_path / "unpacked").iterdir()
    (project / ".venv").symlink_to(REPOSITORY / ".venv")
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "AWS_EC2_METADATA_DISABLED": "true"}
    done = subprocess.run([project / "deploy", "--check"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert "Nothing was changed" in done.stderr and "export AWS_REGION=" in done.stderr and "Rust" not in done.stderr


def test_the_same_content_makes_the_same_archive(tmp_path: Path):
    digests = []
    for attempt, names in enumerate([["b", "a/c"], ["a/c", "b"]]):
        entries = {name: Entry(name.encode(), is_program=name == "b") for name in names}
        path = tmp_path / f"{attempt}.tar.gz"
        write_tar(path, "top", {**entries, "inner.zip": Entry(zipped(entries))})
        digests.append(hashlib.sha256(path.read_bytes()).hexdigest())
    assert digests[0] == digests[1]
    with tarfile.open(path) as packed:
        assert [(one.name, one.mode, one.uid, one.mtime) for one in packed] == [
            ("top/a/c", 0o644, 0, 315532800), ("top/b", 0o755, 0, 315532800), ("top/inner.zip", 0o644, 0, 315532800)
        ]
        inner = zipfile.ZipFile(BytesIO(packed.extractfile("top/inner.zip").read()))
        assert [(one.filename, one.external_attr >> 16) for one in inner.infolist()] == [("a/c", 0o100644), ("b", 0o100755)]


def test_digests_are_checked_by_sha256sum(tmp_path: Path):
    (tmp_path / "a.tar.gz").write_bytes(b"a")
    (tmp_path / "b.tar.gz").write_bytes(b"b")
    write_digests(tmp_path)
    # The file of digests does not list itself when it is written again.
    path = write_digests(tmp_path)
    assert len(path.read_text().splitlines()) == 2
    check = ["sha256sum", "--check", "--strict", path.name]
    assert subprocess.run(check, cwd=tmp_path, capture_output=True).returncode == 0
    (tmp_path / "a.tar.gz").write_bytes(b"c")
    assert subprocess.run(check, cwd=tmp_path, capture_output=True).returncode == 1
