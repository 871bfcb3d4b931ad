"""Builds the program of a release, for the test that serves a table with it and with this version:
`python tools/released.py`.

Prints the path of the program. The release is the revision in RELEASED_REVISION, otherwise the
newest tag `v*`, otherwise the parent of HEAD. Its source is unpacked and built in
`target/released`. Later runs for the same commit build nothing.
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
    # Standard output must only contain the path.
    command = ["cargo", "build", "--locked", "--workspace", "--bin", PROGRAM, "--target-dir", target]
    subprocess.run(command, cwd=source, check=True, stdout=subprocess.DEVNULL)
    (target / "debug" / PROGRAM).rename(program)


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


if __name__ == "__main__":
    main()
