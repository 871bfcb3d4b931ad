"""MLflow's user interface in the layout of `make ui`, taken from the installed MLflow, so that no
network is needed.
"""

import functools
import importlib.util
import shutil
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

_REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.append(str(_REPOSITORY / "tools"))
import fetch_ui  # noqa: E402
import ui_bundles  # noqa: E402, F401

from tests.support.next_release import next_release  # noqa: E402


@functools.cache
def installed_build() -> Path:
    """Returns the directory of the build, which all test processes share. Writes it with the functions
    of the tool, unless there is one already. A file next to it is not part of the build.
    """
    target = _REPOSITORY / "target" / f"ui-installed-{version('mlflow')}-{fetch_ui.tool()[:12]}"
    if not target.is_dir():
        source = Path(importlib.util.find_spec("mlflow").origin).parent / "server" / "js" / "build"
        target.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as directory:
            made = Path(directory, "ui")
            for path in sorted(path for path in source.rglob("*") if path.is_file()):
                fetch_ui.write(made / "build" / path.relative_to(source), path.read_bytes())
            fetch_ui.bundle(made / "build")
            (made / "version").write_text("not to be served")
            _rename(made, target)
    return target / "build"


def next_build() -> Path:
    """Returns the directory of the user interface of MLflow 3.18.0, without compressed copies and
    bundles, which the server does not require.
    """
    return next_release() / "mlflow/server/js/build"


def _rename(made: Path, target: Path) -> None:
    try:
        made.rename(target)
    except OSError:
        # Another process has been faster.
        if not target.is_dir():
            raise
        shutil.rmtree(made)
