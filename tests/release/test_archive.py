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
from urllib.parse import parse_qs

import boto3
import pytest
from moto import mock_aws
from samtranslator.yaml_helper import yaml_parse

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tools/release"))
import bom  # noqa: E402
import build  # noqa: E402
from archive import Entry, write_tar, zipped  # noqa: E402
from contents import cloudshell_script, function_archive, program_archive  # noqa: E402
from digests import write_digests  # noqa: E402
from publish import launch_url, publish  # noqa: E402
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
    # The supported layout, which the command compares with the table's layout.
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


@pytest.mark.parametrize("system, has_containerfile", [("linux", True), ("macos", False)])
def test_a_program_is_named_after_its_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str, has_containerfile: bool):
    triples = []
    monkeypatch.setattr(bom, "components", lambda _, triple, *__: triples.append(triple) or "{}\n")
    monkeypatch.setattr(bom, "licence_texts", lambda *_: "\n")
    program, ui = tmp_path / "program", tmp_path / "ui"
    ui.mkdir()
    for path in (program, ui / "version", ui / "LICENSE.txt"):
        path.write_text("3.17.2")
    made = program_archive(REPOSITORY, "arm64", program, ui, tmp_path, system)
    assert made.name == f"mlflow-serverless-{bom.version(REPOSITORY)}-{system}-arm64.tar.gz"
    assert triples == [f"aarch64-{build.SYSTEMS[system]}"]
    with tarfile.open(made) as packed:
        assert any(name.endswith("/Containerfile") for name in packed.getnames()) is has_containerfile


def _python(directory: Path, name: str, minor: int) -> None:
    """Creates an executable that acts as a Python of this version, and records that it was called.
    """
    path = directory / name
    path.write_text(f"""#!/bin/sh
case "$*" in
*version_info*) exit {int(minor < 11)} ;;
*) echo "{name} $*"; exit 1 ;;
esac
""")
    path.chmod(0o755)


@pytest.mark.parametrize(
    "found, used",
    [
        ({"python3": 11}, "python3"),
        # As in AWS CloudShell, and with Apple's Python.
        ({"python3": 9, "python3.11": 11}, "python3.11"),
        ({"python3": 9, "python3.12": 12, "python3.13": 13}, "python3.13"),
        ({"python3": 9}, None),
        ({}, None),
    ],
)
def test_the_command_finds_a_python_that_is_new_enough(tmp_path: Path, found: dict[str, int], used: str | None):
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, minor in found.items():
        _python(tools, name, minor)
    (tools / "dirname").symlink_to("/usr/bin/dirname")
    (tmp_path / "deploy").write_bytes((REPOSITORY / "tools/release/deploy.sh").read_bytes())
    done = subprocess.run(["/bin/sh", tmp_path / "deploy"], env={"PATH": str(tools)}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    if used:
        assert done.stdout == f"{used} -m venv --clear .venv\n"
    else:
        assert "Python 3.11 or later is needed" in done.stderr and done.stdout == ""


def test_an_environment_whose_python_is_gone_is_created_again(tmp_path: Path):
    """Checks a session of CloudShell after one in which Python was installed. At the end of a
    session, the installation is removed, but the home directory is kept.
    """
    tools, environment = tmp_path / "bin", tmp_path / ".venv"
    (environment / "bin").mkdir(parents=True)
    tools.mkdir()
    (environment / "ready").touch()
    (environment / "bin/python").symlink_to(tmp_path / "gone")
    _python(tools, "python3", 11)
    (tools / "dirname").symlink_to("/usr/bin/dirname")
    (tmp_path / "deploy").write_bytes((REPOSITORY / "tools/release/deploy.sh").read_bytes())
    done = subprocess.run(["/bin/sh", tmp_path / "deploy"], env={"PATH": str(tools)}, capture_output=True, text=True, timeout=60)
    assert done.stdout == "python3 -m venv --clear .venv\n"


@pytest.mark.parametrize(
    "options, calls",
    [
        ([], ["", "--admin ann"]),
        (["--parameters", "Workspaces=on"], ["--parameters Workspaces=on", "--admin ann"]),
        (["--environment", "dev"], ["--environment dev", "--environment dev --admin ann"]),
    ],
)
def test_the_script_for_cloudshell_goes_from_the_release_to_an_administrator(tmp_path: Path, options: list[str], calls: list[str]):
    release, home = tmp_path / "release", tmp_path / "home"
    earlier = home / "mlflow-serverless-0.0.1-aws-arm64/.venv"
    for path in (release, earlier):
        path.mkdir(parents=True)
    earlier.with_name("samconfig.toml").touch()
    script = cloudshell_script(REPOSITORY, release)
    name = f"mlflow-serverless-{bom.version(REPOSITORY)}-aws-arm64"
    called = b'#!/bin/sh\necho "deploy: $*"\n[ "${2-}" != ann ] || cat\n'
    write_tar(release / f"{name}.tar.gz", name, {"deploy": Entry(called, is_program=True)})
    write_digests(release)
    command = ["bash", script, release.as_uri(), "ann", *options]
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    done = subprocess.run(command, env=environment, input="", capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert [line.removeprefix("deploy: ").rstrip() for line in done.stdout.splitlines() if line.startswith("deploy:")] == calls
    # Only the unpacked archives are kept in the home directory, and the tools of the newest one.
    assert {path.name for path in home.iterdir()} == {name, earlier.parent.name}
    assert not earlier.exists() and earlier.with_name("samconfig.toml").exists()

    # An archive that was changed is not executed.
    write_tar(release / f"{name}.tar.gz", name, {"deploy": Entry(b"#!/bin/sh\necho deploy: changed\n", is_program=True)})
    done = subprocess.run(command, env=environment, input="", capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and "changed" not in done.stdout


def test_a_published_template_has_its_code_in_the_same_region(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    archive = _archive(tmp_path, monkeypatch)
    for name, value in {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}.items():
        monkeypatch.setenv(name, value)
    with mock_aws():
        for region in ("eu-central-1", "us-east-1"):
            client = boto3.client("s3", region_name=region)
            where = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
            client.create_bucket(Bucket=f"code-{region}", **where)
            url = publish(archive, f"code-{region}", region)
            key = f"{bom.version(REPOSITORY)}/arm64/template.yaml"
            assert url == launch_url(f"https://code-{region}.s3.{region}.amazonaws.com/{key}", region)
            published = yaml_parse(client.get_object(Bucket=f"code-{region}", Key=key)["Body"].read().decode())
            committed = yaml_parse(of_archive(TEMPLATE, "arm64"))
            for name, resource in committed["Resources"].items():
                for code in {"CodeUri", "ContentUri"} & resource.get("Properties", {}).keys():
                    place = published["Resources"][name]["Properties"].pop(code)
                    assert place["Bucket"] == f"code-{region}" and place["Key"].endswith(f"/{resource['Properties'].pop(code)}")
                    zipfile.ZipFile(BytesIO(client.get_object(**place)["Body"].read())).testzip()
            assert published == committed


def test_the_button_has_an_api_for_users():
    url = launch_url("https://b.s3.eu-central-1.amazonaws.com/0.1.0/arm64/template.yaml", "eu-central-1")
    page, _, query = url.partition("#/stacks/quickcreate?")
    assert page == "https://eu-central-1.console.aws.amazon.com/cloudformation/home?region=eu-central-1"
    assert parse_qs(query) == {
        "templateURL": ["https://b.s3.eu-central-1.amazonaws.com/0.1.0/arm64/template.yaml"], "stackName": ["mlflow"], "param_Users": ["on"]
    }
    assert "?" not in query and " " not in query


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
