"""Paths that attackers use for path traversal. The list is shared with the tests of the artifacts
function.
"""

import json
from pathlib import Path

_SPELLINGS = Path(__file__).parents[2] / "functions/artifacts/tests/attacks.json"
#: Placeholders for one step upwards, in different encodings.
_STEPS = {
    "{up}": "../", "{2e}": "%2e%2E/", "{2f}": "..%2f", "{252e}": "%252e%252e/", "{252f}": "..%252F",
    "{25252e}": "%25252e%25252e/", "{back}": "..%5c", "{5c}": "%2e%2E%5C", "{255c}": "%252e%252e%255c",
}
#: Number of steps upwards, which is more than any path under test is deep.
_FAR = 12


def spellings() -> list[str]:
    """Returns the attacks as they appear in a URL, and some very long paths."""
    attacks = json.loads(_SPELLINGS.read_text())
    for name, step in _STEPS.items():
        attacks = [attack.replace(name, step * _FAR) for attack in attacks]
    return [*attacks, "n" * 1_025, "n" * 5_000, "d/" * 3_000, "%41" * 20_000]
