"""Takes the screenshot for README.md on a new server: `python -m tests.browser.picture
docs/images/ui.png`.
"""

import math
import random
import sys
import tempfile
from pathlib import Path

from mlflow import MlflowClient
from mlflow.entities import Metric, Param
from playwright.sync_api import sync_playwright

from tests.browser import ui
from tests.browser.visit import CHROMIUM, OPTIONS, Visit
from tests.support.servers import ServerlessMlflow

_RUNS = [(0.1, 2), (0.05, 3), (0.02, 4), (0.01, 6)]
_METRICS = 3
_STEPS = 200
_FIRST_START = 1_750_000_000_000


def main(file: Path) -> None:
    with tempfile.TemporaryDirectory() as directory, sync_playwright() as playwright:
        server = ServerlessMlflow(Path(directory, "server"), in_memory=True, options=("--ui", str(ui.directory())))
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        try:
            experiment = _train(MlflowClient(server.url))
            visit = Visit(browser, server.url, {}, Path(directory))
            visit.page.set_viewport_size({"width": 1360, "height": 760})
            visit.begin("picture")
            visit.open(f"experiments/{experiment}/runs?compareRunsMode=CHART")
            curves = visit.page.locator(".js-plotly-plot path.js-line")
            curves.nth(len(_RUNS) * _METRICS - 1).wait_for(state="attached")
            visit.look("charts")
            file.parent.mkdir(exist_ok=True)
            visit.page.screenshot(path=file)
        finally:
            browser.close()
            server.stop()


def _train(client: MlflowClient) -> str:
    """Creates runs with reproducible training curves. Returns the id of their experiment."""
    experiment = client.create_experiment("digits")
    randomness = random.Random(4)
    for number, (rate, layers) in enumerate(_RUNS):
        start = _FIRST_START + number * 60_000
        run = client.create_run(experiment, start, run_name=f"rate {rate}, {layers} layers").info.run_id
        points = []
        for step in range(_STEPS):
            left, noise = math.exp(-step * rate * 0.6), randomness.gauss(0, 0.012)
            loss = 0.12 + 0.02 * layers + 1.9 * left + noise * (0.5 + left)
            values = {
                "loss": loss,
                "validation loss": loss * 1.08 + 0.05 + randomness.gauss(0, 0.015),
                "accuracy": 0.98 - 0.01 * layers - 0.75 * left + noise / 2,
            }
            points += [Metric(key, value, start + step, step) for key, value in values.items()]
        params = {"learning_rate": rate, "layers": layers, "optimizer": "adam"}
        client.log_batch(run, points, [Param(key, str(value)) for key, value in params.items()])
        client.set_terminated(run, end_time=start + 50_000)
    return experiment


if __name__ == "__main__":
    main(Path(sys.argv[1]))
