"""Builds the program of a release, for the test that has it serve a table together with this version: `python tools/released.py`.

It prints the program's path. The release is the newest tag `v*`, or the revision that RELEASED_REVISION names; without either, the parent of HEAD. Its
source is unpacked and built in `target/released`, and a later call for the same commit builds nothing.
"""

import io
import os
import subprocess
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "target" / "released"
PROGRAM = "mlflow-serverless"


def main() -> None:
    commit = _git("rev-parse", f"{_revision()}^{{commit}}")
    program = PLACE / commit / PROGRAM
    if not program.exists():
        _build(commit, program)
    print(program)


def _revision() -> str:
    tags = _git("tag", "--list", "v*", "--sort=-version:refname").split()
    return os.environ.get("RELEASED_REVISION") or (tags[0] if tags else "HEAD~1")


def _build(commit: str, program: Path) -> None:
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    source, target = PLACE / commit / "source", PLACE / "build"
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(source, filter="data")
    # What goes to the standard output is the path alone.
    command = ["cargo", "build", "--locked", "--workspace", "--bin", PROGRAM, "--target-dir", target]
    subprocess.run(command, cwd=source, check=True, stdout=subprocess.DEVNULL)
    (target / "debug" / PROGRAM).rename(program)


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


if __name__ == "__main__":
    main()
