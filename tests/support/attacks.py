"""Paths that try to lead elsewhere, as attackers write them: the list that the tests of the artifacts function use, too."""

import json
from pathlib import Path

_SPELLINGS = Path(__file__).parents[2] / "functions/artifacts/tests/attacks.json"
#: What stands for steps upwards, in some encoding.
_STEPS = {
    "{up}": "../", "{2e}": "%2e%2E/", "{2f}": "..%2f", "{252e}": "%252e%252e/", "{252f}": "..%252F",
    "{25252e}": "%25252e%25252e/", "{back}": "..%5c", "{5c}": "%2e%2E%5C", "{255c}": "%252e%252e%255c",
}
#: More steps than lead out of any place.
_FAR = 12


def spellings() -> list[str]:
    """As they stand in a URL."""
    attacks = json.loads(_SPELLINGS.read_text())
    for name, step in _STEPS.items():
        attacks = [attack.replace(name, step * _FAR) for attack in attacks]
    return [*attacks, "n" * 1_025, "n" * 5_000, "d/" * 3_000, "%41" * 20_000]
