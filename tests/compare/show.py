"""Prints stock MLflow's response to every request of a scenario: `python -m tests.compare.show
runs-create`.
"""

import argparse
import json
import tempfile
from pathlib import Path

from tests.compare.differences import describe
from tests.compare.placeholders import Placeholders
from tests.compare.runner import Player
from tests.compare.scenario import load
from tests.compare.times import Clock
from tests.support.http import Side
from tests.support.servers import StockMlflow


def main() -> None:
    """Plays the scenarios named on the command line on a new stock server."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("scenario", nargs="+")
    with tempfile.TemporaryDirectory() as directory:
        server = StockMlflow(Path(directory))
        try:
            for name in arguments.parse_args().scenario:
                _show(name, Side("reference", server.url))
        finally:
            server.stop()


def _show(name: str, side: Side) -> None:
    scenario = load(Path(__file__).with_name("scenarios") / f"{name}.yaml")
    player = Player(side, {"unique": name, **scenario.variables}, Placeholders(Clock()))
    for step in scenario.steps:
        request = step.request(player.variables)
        answer = side.send(request)
        player.capture(step, answer)
        body = json.dumps(answer.body, ensure_ascii=False) if answer.kind == "json" else answer.body
        print(f"{name} / {step.name}\n  {describe(request)}\n  -> {answer.status} {answer.kind}\n  {body}\n")


if __name__ == "__main__":
    main()
