"""The build of MLflow's user interface under test: that of the installed MLflow, or the one in
BROWSER_UI.
"""

import os
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

#: For example target/ui-3.18.0/build, as created by `tools/fetch_ui.py`.
OTHER = Path(os.environ["BROWSER_UI"]).resolve() if "BROWSER_UI" in os.environ else None
_MLFLOW = Path(find_spec("mlflow").origin).parent
DIRECTORY = OTHER or _MLFLOW / "server" / "js" / "build"
VERSION = OTHER.with_name("version").read_text() if OTHER else version("mlflow")
