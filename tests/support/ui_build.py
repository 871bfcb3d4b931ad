"""MLflow's user interface as `make ui` lays it, from the MLflow that is installed here: no network."""

import importlib.util
from pathlib import Path
from types import ModuleType

_FETCH = Path(__file__).resolve().parents[2] / "tools" / "fetch_ui.py"


def lay_build(target: Path) -> Path:
    """The files that a browser asks for first and a few more, as the tool writes them, large ones with a compressed copy beside them. Returns the
    directory with the build; there is a file beside it that is not part of it."""
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
