"""MLflow's user interface in the layout of `make ui`, taken from the installed MLflow, so that no
network is needed.
"""

import importlib.util
from pathlib import Path
from types import ModuleType

_FETCH = Path(__file__).resolve().parents[2] / "tools" / "fetch_ui.py"


def lay_build(target: Path) -> Path:
    """Writes the files that a browser loads first, and some more, with the functions of the tool.
    Large files have a compressed copy next to them. Returns the directory of the build. A file next
    to it is not part of the build.
    """
    fetch_ui = _fetch_ui()
    source = Path(importlib.util.find_spec("mlflow").origin).parent / "server" / "js" / "build"
    files = [source / name for name in ("index.html", "manifest.json", "favicon.ico")]
    files += [path for pattern in ("static/js/main.*.js", "static/css/main.*.css", "static/media/*.png") for path in source.glob(pattern)]
    for path in files:
        fetch_ui.write(target / "build" / path.relative_to(source), path.read_bytes())
    (target / "version").write_text("not to be served")
    return target / "build"


def _fetch_ui() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fetch_ui", _FETCH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
