"""Extracts MLflow's built user interface from the `mlflow` wheel:
`python3 tools/fetch_ui.py DIRECTORY VERSION`.

The wheel comes from the package index that pip is configured for. Files that compress well get a
compressed copy next to them. MLflow's licence is stored next to the build, and the licences of
bundled libraries are next to their scripts.
"""

import gzip
import importlib.util
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path, PurePosixPath

#: Directory of the build in the wheel.
BUILD = "mlflow/server/js/build/"
#: Smaller files, in bytes, fit into one or two packets anyway.
COMPRESS_FROM = 2048
COMPRESSED = {".cjs", ".css", ".html", ".js", ".json", ".mjs", ".svg", ".ttf", ".txt", ".eot"}


def main() -> None:
    target, version = Path(sys.argv[1]), sys.argv[2]
    stamp = target / "version"
    if stamp.exists() and stamp.read_text() == version:
        return
    with tempfile.TemporaryDirectory() as directory:
        wheel = download(version, Path(directory))
        unpacked = target.with_name(target.name + ".new")
        shutil.rmtree(unpacked, ignore_errors=True)
        unpack(wheel, unpacked)
    (unpacked / "version").write_text(version)
    # Replaces the directory as a whole, so that an interrupted run leaves the previous build.
    shutil.rmtree(target, ignore_errors=True)
    unpacked.rename(target)


def download(version: str, directory: Path) -> Path:
    pip = [python_with_pip(directory), "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "--only-binary", ":all:", "--dest", directory, f"mlflow=={version}"], check=True)
    [wheel] = directory.glob("mlflow-*.whl")
    return wheel


def python_with_pip(directory: Path) -> str:
    if importlib.util.find_spec("pip"):
        return sys.executable
    venv.create(directory / "venv", with_pip=True)
    return str(directory / "venv" / "bin" / "python")


def unpack(wheel: Path, target: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith(BUILD) and not name.endswith("/")]
        if BUILD + "index.html" not in names:
            sys.exit(f"{wheel.name} has no user interface in {BUILD}")
        for name in names:
            write(target.joinpath("build", *PurePosixPath(name).relative_to(BUILD).parts), archive.read(name))
        [licence] = [name for name in archive.namelist() if name.endswith(".dist-info/licenses/LICENSE.txt")]
        write(target / "LICENSE.txt", archive.read(licence))


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    if path.suffix in COMPRESSED and len(content) >= COMPRESS_FROM:
        # Without a time, so that the same wheel gives the same files.
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(content, compresslevel=9, mtime=0))


if __name__ == "__main__":
    main()
