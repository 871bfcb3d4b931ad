"""Signs every GET of the scenarios in tests/compare, and checks that the gateway parses the same
request as without a signature.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from mlflow_serverless_auth import SigV4

from tests.compare.scenario import load
from tests.support.http import Request

from .gateway import understand

_SCENARIOS = sorted((Path(__file__).parents[1] / "compare/scenarios").glob("*.yaml"))


def _gets(file: Path) -> Iterator[Request]:
    """Yields the GET requests of a scenario. Values captured from responses, mostly ids, are
    replaced by a text that is hard to sign.
    """
    scenario = load(file)
    captured = {name: f"{name} +%2B/&=?#ü" for step in scenario.steps for name in step.capture}
    variables = captured | {"unique": f"{scenario.name} unique"} | scenario.variables
    for step in scenario.steps:
        if step.method == "GET":
            yield step.request(variables)


@pytest.mark.parametrize("one_in", [pytest.param(4, id="some"), pytest.param(1, id="all", marks=pytest.mark.slow)])
@pytest.mark.parametrize("file", _SCENARIOS, ids=lambda file: file.stem)
def test_every_get_of_a_scenario(file: Path, one_in: int, echoing: str, auth: SigV4):
    with requests.Session() as session:
        session.trust_env = False
        for request in list(_gets(file))[::one_in]:
            plain = requests.Request("GET", echoing + request.path, params=request.query).prepare()
            path, _, query = plain.path_url.partition("?")
            answer = session.get(plain.url, data=request.body, headers=request.headers, auth=auth, timeout=60)
            assert answer.status_code == 200, answer.text
            understood = answer.json()
            assert understood["query"] == understand(path, query)["query"]
            # A path that goes upwards is normalized before it is sent.
            assert ".." in path or understood["path"] == understand(path, query)["path"]


def test_the_scenarios_have_what_is_hard_to_sign():
    """Checks that the test above covers repeated parameters, spaces, special characters and other
    alphabets.
    """
    gets = [request for file in _SCENARIOS for request in _gets(file)]
    assert len(gets) > 500
    values = [value for request in gets for value in request.query.values()]
    texts = [str(item) for value in values for item in (value if isinstance(value, list) else [value])]
    assert any(isinstance(value, list) and len(value) > 1 for value in values)
    for hard in (" ", "+", "%", "/", "&", "=", "ü"):
        assert any(hard in text for text in texts), hard
    assert "" in texts
