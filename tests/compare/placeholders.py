"""Names for what a server may choose by itself, so that two servers can be compared.

Ids, clocks, page tokens and made-up run names differ between two correct servers. Each side learns the ids
in its answers and numbers them in the order of appearance: as both sides get the same requests, the same
thing gets the same name, wherever it turns up later, also inside a message or an artifact location.
"""

import json
import re
from typing import Any

from tests.compare.times import Clock

_RUN_ID = re.compile(r"[0-9a-f]{32}")
_EXPERIMENT_ID = re.compile(r"[1-9][0-9]*")
#: Creating a run repeats the experiment's id as it was sent, and it may be sent as " 07".
_SPELLED_ID = re.compile(r"([ +0]*)([1-9][0-9]*)")
#: A long number in a text is an id we know, or it is not; a short one may be anything, unless the text says so.
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_LEARNABLE = re.compile(rf"(?:dr?-|m-)?[0-9a-f]{{32}}|{_UUID}|[0-9]{{6,}}")
_EXPERIMENT_IN_MESSAGE = re.compile(r"(experiment(?: with)?(?: id)?[ =]'?[-+ ]?)([0-9]+)", re.IGNORECASE)
#: Python's way to print the ids of several experiments.
_EXPERIMENTS_IN_MESSAGE = re.compile(r"\['[0-9]+'(?:, '[0-9]+')*\]")
_GENERATED_NAME = re.compile(r"[a-z]+-[a-z]+-[0-9]+")
_PYTHON_STRING = r"'(?:[^'\\]|\\.)*'"
_PYTHON_SET = re.compile(rf"\{{({_PYTHON_STRING}(?:, {_PYTHON_STRING})*)\}}")

#: What SQLAlchemy says when a constraint fails: the statement and its values, times and ids included.
_DATABASE_ERROR = re.compile(r"(\(raised as a result of [^)]*\)\n)?\(sqlite3\.\w+\) .*", re.DOTALL)

_OBJECT_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")

#: Fields with what a server has chosen: what it looks like, and what to call it.
_LEARNED_FIELDS = {
    "run_id": (_RUN_ID, "run"),
    "run_uuid": (_RUN_ID, "run"),
    "experiment_id": (_EXPERIMENT_ID, "experiment"),
    "dataset_id": (re.compile(r"d-[0-9a-f]{32}"), "dataset"),
    "request_id": (_RUN_ID, "trace"),
    "dataset_record_id": (re.compile(r"dr-[0-9a-f]{32}"), "record"),
    "scorer_id": (re.compile(_UUID), "scorer"),
    "model_id": (re.compile(r"m-[0-9a-f]{32}"), "model"),
}
_EXPERIMENT_FIELDS = {"experiment_id", "experiment_ids"}
#: A digest of an evaluation dataset is made of the time, and looks like a number at times.
_DIGEST = re.compile(r"[0-9a-f]{8}")
#: JSON in a text: it is compared as JSON.
_JSON_TEXTS = {"records", "tags", "schema", "profile"}
_LOCATIONS = {"artifact_uri", "artifact_location", "source", "mlflow.artifact_location"}
#: MLflow returns these in whatever order its database finds them.
_SETS = {"tags", "params", "model_outputs", "aliases", "latest_versions"}
#: Times that servers choose.
_CREATED = {"creation_time", "created_time", "creation_timestamp", "creation_timestamp_ms"}
_UPDATED = {"last_update_time", "last_updated_timestamp", "last_updated_timestamp_ms"}
#: The same where GraphQL says them: integers of 64 bits are texts.
_TIMES_OF_GRAPHQL = {"creationTime", "lastUpdateTime", "creationTimestamp", "lastUpdatedTimestamp"}


class Placeholders:
    """What one side has chosen so far."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def learn(self, body: Any) -> None:
        """Number the ids that appear in an answer for the first time."""
        if isinstance(body, list):
            for item in body:
                self.learn(item)
        elif isinstance(body, dict):
            for key, value in body.items():
                self._learn_field(_snake_case(key), value)
                self.learn(value)

    def apply(self, body: Any) -> Any:
        """The body with everything the server chose replaced by its name."""
        return self._apply(body, key="", parent="")

    def _name(self, text: str) -> str:
        return self._names.get(text, text)

    def _learn_field(self, key: str, value: Any) -> None:
        if key in _JSON_TEXTS and isinstance(value, str):
            self.learn(_read_json(value))
        pattern, kind = _LEARNED_FIELDS.get(key, (None, ""))
        if pattern is None or not isinstance(value, str) or value in self._names:
            return
        if pattern.fullmatch(value):
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._names[value] = f"<{kind} {self._counts[kind]}>"

    def _apply(self, value: Any, key: str, parent: str) -> Any:
        if isinstance(value, dict):
            return self._apply_to_object(value, key)
        if isinstance(value, list):
            items = [self._apply(item, key, parent) for item in value]
            is_set = key in _SETS or (key, parent) == ("metrics", "data")
            return sorted(items, key=repr) if is_set else items
        if isinstance(value, str):
            if key in _JSON_TEXTS and isinstance(content := _read_json(value), (dict, list)):
                return {"<JSON>": self._apply(content, "", parent)}
            return self._apply_to_string(value, key)
        if key == "experiment_id" and isinstance(value, int):
            return f"<number of {self._name(str(value))}>"
        return value

    def _apply_to_object(self, fields: dict[str, Any], own_key: str) -> dict[str, Any]:
        applied = {key: self._apply(value, _snake_case(key), own_key) for key, value in fields.items()}
        # Where an entity says when it was made. Elsewhere the names may be anybody's.
        if fields.keys() & _CREATED:
            times = fields.keys() & (_CREATED | _UPDATED)
            applied |= {key: self._clock.name(fields[key]) for key in times if isinstance(fields[key], int)}
        for key in fields.keys() & _TIMES_OF_GRAPHQL:
            time = int(fields[key])
            applied[key] = name if (name := self._clock.name(time)) != time else fields[key]
        if "dataset_id" in fields and isinstance(fields.get("digest"), str):
            applied["digest"] = "<digest>" if _DIGEST.fullmatch(fields["digest"]) else fields["digest"]
        if _RUN_ID.fullmatch(str(fields.get("online_scoring_config_id"))):
            applied["online_scoring_config_id"] = "<configuration>"
        if "creation_timestamp_ms" in fields and "model_id" in fields and _GENERATED_NAME.fullmatch(fields.get("name", "")):
            applied["name"] = "<generated name>"
        if fields.get("key") == "mlflow.artifactLocation" and isinstance(fields.get("value"), str):
            applied["value"] = self._apply_to_string(fields["value"], "artifact_location")
        if "info" in fields:
            _hide_generated_name(applied)
        return applied

    def _apply_to_string(self, text: str, key: str) -> str:
        if key == "next_page_token":
            return "<page token>"
        if key in _LEARNED_FIELDS or key in _EXPERIMENT_FIELDS:
            spelled = _SPELLED_ID.fullmatch(text)
            return spelled[1] + self._name(spelled[2]) if spelled else self._name(text)
        if key in _LOCATIONS and not text.startswith("models:"):
            text = "/".join(map(self._name, text.split("/")))
        text = _LEARNABLE.sub(lambda found: self._name(found[0]), text)
        if key in {"message", "errors"}:
            text = _EXPERIMENT_IN_MESSAGE.sub(lambda found: found[1] + self._name(found[2]), text)
            text = _EXPERIMENTS_IN_MESSAGE.sub(lambda found: re.sub("[0-9]+", lambda id: self._name(id[0]), found[0]), text)
        text = _DATABASE_ERROR.sub("<database error>", text)
        text = _OBJECT_ADDRESS.sub("<address>", text)
        return _PYTHON_SET.sub(_sorted_set, text)


def _snake_case(name: str) -> str:
    """The name of a field of GraphQL as REST has it; other names as they are."""
    return re.sub("(?<=[a-z])[A-Z]", lambda found: f"_{found[0].lower()}", name)


def _read_json(text: str) -> Any:
    """What a text holds as JSON, with names for the numbers that are none; nothing, if it is no JSON."""
    try:
        return json.loads(text, parse_constant=lambda name: f"<{name}>")
    except ValueError:
        return None


def _sorted_set(found: re.Match[str]) -> str:
    """Python prints the elements of a set of strings in a different order in every process."""
    return "{" + ", ".join(sorted(re.findall(_PYTHON_STRING, found[1]))) + "}"


def _hide_generated_name(run: dict[str, Any]) -> None:
    name = run["info"].get("run_name", "")
    if not _GENERATED_NAME.fullmatch(name):
        return
    run["info"]["run_name"] = "<generated name>"
    for tag in run.get("data", {}).get("tags", []):
        if tag.get("key") == "mlflow.runName" and tag.get("value") == name:
            tag["value"] = "<generated name>"
