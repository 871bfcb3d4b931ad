"""Extracts MLflow's built user interface from the `mlflow` wheel:
`python3 tools/fetch_ui.py DIRECTORY VERSION`.

The wheel comes from the package index that pip is configured for. Files that compress well get a
compressed copy next to them. Scripts that are loaded together are added as bundles (`ui_bundles`).
MLflow's licence is stored next to the build, and the licences of bundled libraries are next to their
scripts.
"""

import gzip
import hashlib
import importlib.util
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path, PurePosixPath

import ui_bundles

#: Directory of the build in the wheel.
BUILD = "mlflow/server/js/build/"
#: Minimum size in bytes of files that get a compressed copy. Smaller files fit into one or two
#: packets anyway.
COMPRESS_FROM = 2048
COMPRESSED = {".cjs", ".css", ".html", ".js", ".json", ".mjs", ".svg", ".ttf", ".txt", ".eot"}


def main() -> None:
    target, version = Path(sys.argv[1]), sys.argv[2]
    stamps = {"version": version, "tool": tool()}
    if all((target / name).exists() and (target / name).read_text() == stamp for name, stamp in stamps.items()):
        return
    with tempfile.TemporaryDirectory() as directory:
        wheel = download(version, Path(directory))
        unpacked = target.with_name(target.name + ".new")
        shutil.rmtree(unpacked, ignore_errors=True)
        unpack(wheel, unpacked)
    bundle(unpacked / "build")
    for name, stamp in stamps.items():
        (unpacked / name).write_text(stamp)
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


def bundle(build: Path) -> None:
    """Adds the bundles to a build. A build that does not load chunks as expected is left
    unchanged, and works without bundles.
    """
    try:
        files = ui_bundles.bundled_files(build)
    except ui_bundles.NoChunksError as error:
        print(f"The scripts of the user interface are served one by one: {error}", file=sys.stderr)
        return
    for name, content in files.items():
        write(build / name, content)


def tool() -> str:
    """Returns a digest of this program, so that a build of another version of it is replaced."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in (Path(__file__), *ui_bundles.SOURCES))).hexdigest()


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    if path.suffix in COMPRESSED and len(content) >= COMPRESS_FROM:
        # Without a time, so that the same wheel gives the same files.
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(content, compresslevel=9, mtime=0))


if __name__ == "__main__":
    main()
