"""Pages without interaction. Each step opens a page in a visit, and looks at it."""

import json
from collections.abc import Callable
from urllib.parse import quote

from tests.browser.names import SESSION
from tests.browser.visit import Visit

Step = Callable[[Visit], None]


def _page(path: Callable[[dict[str, str]], str], until: str | None = None) -> Step:
    """Returns a step that looks at a page. `until` is a text that appears late, after all requests
    have completed.
    """

    def step(visit: Visit) -> None:
        visit.open(path(visit.ids))
        visit.look_at_page(None if until is None else visit.page.get_by_text(until, exact=True))

    return step


def _experiment(name: str, tab: str) -> Step:
    return _page(lambda ids: f"experiments/{ids[name]}/{tab}")


def _run(experiment: str, run: str, tab: str = "") -> Step:
    return _page(lambda ids: f"experiments/{ids[experiment]}/runs/{ids[run]}{tab}")


def _artifact(path: str) -> Step:
    """Returns a step that opens an artifact by its address. The step opens another page before,
    because the page of a run reads the address only when it is loaded."""

    def step(visit: Visit) -> None:
        visit.open("settings")
        visit.by_component("mlflow.settings.theme.toggle-switch").first.wait_for()
        visit.open(f"experiments/{visit.ids['artifacts']}/runs/{visit.ids['with artifacts']}/artifacts/{path}")
        visit.look_at_page(visit.page.get_by_text(f"/{path}"))

    return step


def _json(value: object) -> str:
    return quote(json.dumps(value))


def _curves(ids: dict[str, str]) -> list[str]:
    return [ids[f"curve {number}"] for number in range(3)]


PAGES: dict[str, Step] = {
    "home": _page(lambda ids: ""),
    "experiments": _page(lambda ids: "experiments"),
    "experiment": _page(lambda ids: f"experiments/{ids['training']}"),
    "runs": _experiment("training", "runs"),
    "runs of many": _experiment("many", "runs"),
    "runs nested": _experiment("nested", "runs"),
    "charts of runs": _experiment("curves", "runs?compareRunsMode=CHART"),
    "artifacts of runs": _experiment("artifacts", "runs?compareRunsMode=ARTIFACT"),
    "logged models": _experiment("training", "models"),
    "logged model": _page(lambda ids: f"experiments/{ids['training']}/models/{ids['logged model']}"),
    "logged model artifacts": _page(lambda ids: f"experiments/{ids['training']}/models/{ids['logged model']}/artifacts"),
    "traces": _experiment("training", "traces"),
    "evaluation runs": _experiment("evaluation", "evaluation-runs"),
    "overview usage": _experiment("evaluation", "overview/usage"),
    "overview quality": _experiment("evaluation", "overview/quality"),
    "overview tool calls": _experiment("evaluation", "overview/tool-calls"),
    "sessions": _experiment("evaluation", "chat-sessions"),
    "traces of an agent": _experiment("agent", "traces"),
    "trace": _page(lambda ids: f"experiments/{ids['agent']}/traces/{ids['trace 0']}"),
    "trace with an error": _page(lambda ids: f"experiments/{ids['agent']}/traces/{ids['trace 3']}"),
    "traces of a run": _run("agent", "asked", "/traces"),
    "sessions of an agent": _experiment("agent", "chat-sessions"),
    "session": _page(lambda ids: f"experiments/{ids['agent']}/chat-sessions/{quote(SESSION)}"),
    "overview of an agent": _experiment("agent", "overview/usage"),
    "quality of an agent": _experiment("agent", "overview/quality"),
    "tool calls of an agent": _experiment("agent", "overview/tool-calls"),
    "prompts of experiment": _experiment("evaluation", "prompts"),
    "run": _run("training", "autologged"),
    "run with children": _run("nested", "parent"),
    "run model metrics": _run("curves", "curve 0", "/model-metrics"),
    "run system metrics": _run("curves", "curve 0", "/system-metrics"),
    "run traces": _run("curves", "curve 0", "/traces"),
    "run artifacts": _run("artifacts", "with artifacts", "/artifacts"),
    "artifact image": _artifact("picture.png"),
    "artifact figure": _artifact("plots/figure.png"),
    "artifact table": _artifact("table.json"),
    "artifact text": _artifact("notes/text.txt"),
    "artifact markdown": _artifact("notes/readme.md"),
    "artifact html": _artifact("page.html"),
    "artifact json": _artifact("settings.json"),
    "artifact csv": _artifact("files/numbers.csv"),
    "artifact unknown": _artifact("files/unknown.bin"),
    "artifact model": _artifact("model"),
    "compare runs": _page(lambda ids: f"compare-runs?runs={_json(_curves(ids))}&experiments={_json([ids['curves']])}"),
    "compare experiments": _page(lambda ids: f"compare-experiments/s?experiments={_json([ids['curves'], ids['many']])}"),
    "metric of runs": _page(
        lambda ids: f"metric/loss?runs={_json(_curves(ids))}&metric=%22loss%22&experiments={_json([ids['curves']])}"
        "&plot_metric_keys=%5B%22loss%22%5D&plot_layout=%7B%7D",
        until="Latest",
    ),
    "models": _page(lambda ids: "models", until="Flexible, governed deployments with the new Model Registry UI"),
    "model": _page(lambda ids: "models/iris%20classifier"),
    "model version": _page(lambda ids: "models/iris%20classifier/versions/2"),
    "prompts": _page(lambda ids: "prompts"),
    "prompt": _page(lambda ids: "prompts/greeting"),
    "prompt of chat": _page(lambda ids: "prompts/chat"),
    "settings": _page(lambda ids: "settings"),
    "no such experiment": _page(lambda ids: "experiments/99999/runs"),
    "no such run": _page(lambda ids: f"experiments/{ids['training']}/runs/{'f' * 32}"),
    "no such page": _page(lambda ids: "nosuchpage"),
}

#: Pages that MLflow 3.17.2 does not have.
PAGES_OF_3_18: dict[str, Step] = {
    "issues": _experiment("evaluation", "issues"),
    "dashboard usage": _experiment("evaluation", "dashboard/usage"),
    "dashboard quality": _experiment("evaluation", "dashboard/quality"),
    "dashboard tool calls": _experiment("evaluation", "dashboard/tool-calls"),
}
