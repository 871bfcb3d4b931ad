"""The contents of the archives."""

import sys
from collections.abc import Mapping
from pathlib import Path

import bom
from archive import Entry, files_below, write_tar, zipped
from build import SYSTEMS, TRIPLES
from archive_template import of_archive

_HERE = Path(__file__).parent
sys.path.append(str(_HERE.parent / "deploy"))
import layout  # noqa: E402


def function_archive(repository: Path, processor: str, functions: Mapping[str, Path], ui: Path, output: Path) -> Path:
    """Writes the archive that deploys the stack: functions, user interface, template, settings, and
    the command.
    """
    name = f"mlflow-serverless-{bom.version(repository)}-aws-{processor}"
    entries = {
        "deploy": Entry((_HERE / "deploy.sh").read_bytes(), is_program=True),
        "README.md": Entry((_HERE / "archive.md").read_bytes()),
        "template.yaml": Entry(of_archive((repository / "template.yaml").read_text(), processor).encode()),
        "ui.zip": Entry(zipped(files_below(ui))),
        "sbom.cdx.json": Entry(bom.components(repository, f"{TRIPLES[processor]}-unknown-linux-gnu", functions, _version(ui)).encode()),
        **files_below(repository / "tools/deploy", "tools/deploy/"),
        **files_below(repository / "clients/python", "clients/python/"),
    }
    entries["tools/deploy/layout.txt"] = Entry(f"{layout.current()}\n".encode())
    entries["LICENSES-crates.txt"] = Entry(bom.licence_texts(repository, f"{TRIPLES[processor]}-unknown-linux-gnu", functions).encode())
    for path in ("samconfig.toml", "tools/deploy.txt", "examples/quickstart.py", "LICENSE", "NOTICE"):
        entries[path] = Entry((repository / path).read_bytes())
    for function, program in functions.items():
        entries[f"functions/{function}.zip"] = Entry(zipped({"bootstrap": Entry(program.read_bytes(), is_program=True)}))
    return _write(output, name, entries)


def cloudshell_script(repository: Path, output: Path) -> Path:
    """Writes the script that deploys this version from AWS CloudShell."""
    path = output / "cloudshell.sh"
    path.write_text((_HERE / path.name).read_text().replace("@VERSION@", bom.version(repository)))
    return path


def program_archive(repository: Path, processor: str, program: Path, ui: Path, output: Path, system: str = "linux") -> Path:
    """Writes the archive of the program. For Linux, it contains a Containerfile."""
    name = f"mlflow-serverless-{bom.version(repository)}-{system}-{processor}"
    triple = f"{TRIPLES[processor]}-{SYSTEMS[system]}"
    entries = {
        "mlflow-serverless": Entry(program.read_bytes(), is_program=True),
        "sbom.cdx.json": Entry(bom.components(repository, triple, ["mlflow-serverless"], _version(ui)).encode()),
        "LICENSES-crates.txt": Entry(bom.licence_texts(repository, triple, ["mlflow-serverless"]).encode()),
        # Licence of the user interface, which is embedded in the program.
        "LICENSE-mlflow.txt": Entry((ui / "LICENSE.txt").read_bytes()),
    }
    for path in (["Containerfile"] if system == "linux" else []) + ["LICENSE", "NOTICE"]:
        entries[path] = Entry((repository / path).read_bytes())
    return _write(output, name, entries)


def _version(ui: Path) -> str:
    return (ui / "version").read_text().strip()


def _write(output: Path, name: str, entries: Mapping[str, Entry]) -> Path:
    path = output / f"{name}.tar.gz"
    write_tar(path, name, entries)
    return path
