"""The build of MLflow's user interface under test: that of the installed MLflow in the layout of
`make ui`, or the one in BROWSER_UI.
"""

import os
from importlib.metadata import version
from pathlib import Path

from tests.support.ui_build import installed_build

#: For example target/ui-3.18.0/build, as created by `tools/fetch_ui.py`.
OTHER = Path(os.environ["BROWSER_UI"]).resolve() if "BROWSER_UI" in os.environ else None
VERSION = OTHER.with_name("version").read_text() if OTHER else version("mlflow")


def directory() -> Path:
    return OTHER or installed_build()
