"""Replaces values that a server chooses itself with names, so that two servers can be compared.

Ids, times, page tokens and generated run names differ between two correct servers. Each side
collects the ids in its responses and numbers them in the order of appearance. Because both sides
receive the same requests, an id gets the same name on both sides, wherever it appears later,
including in messages and artifact locations.
"""

import json
import re
from typing import Any

from tests.compare.times import Clock

_RUN_ID = re.compile(r"[0-9a-f]{32}")
_EXPERIMENT_ID = re.compile(r"[1-9][0-9]*")
#: An experiment id with the spelling that the client used, such as " 07". The response to creating
#: a run repeats it.
_SPELLED_ID = re.compile(r"([ +0]*)([1-9][0-9]*)")
#: Ids that can be recognized anywhere in a text. A long number is either a known id or none. A
#: short number may have any meaning, so it is only replaced where the text says that it is an id.
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_LEARNABLE = re.compile(rf"(?:dr?-|m-|ls-|rq-|iss-|ae-)?[0-9a-f]{{32}}|{_UUID}|\b[0-9A-Z]{{26}}\b|[0-9]{{6,}}")
_EXPERIMENT_IN_MESSAGE = re.compile(r"(experiment(?: with)?(?: id)?[ =]'?[-+ ]?)([0-9]+)", re.IGNORECASE)
#: The ids of several experiments, as Python prints a list.
_EXPERIMENTS_IN_MESSAGE = re.compile(r"\['[0-9]+'(?:, '[0-9]+')*\]")
_GENERATED_NAME = re.compile(r"[a-z]+-[a-z]+-[0-9]+")
_PYTHON_STRING = r"'(?:[^'\\]|\\.)*'"
_PYTHON_SET = re.compile(rf"\{{({_PYTHON_STRING}(?:, {_PYTHON_STRING})*)\}}")

#: SQLAlchemy's message for a violated constraint: the statement with its values, including times
#: and ids.
_DATABASE_ERROR = re.compile(r"(\(raised as a result of [^)]*\)\n)?\(sqlite3\.\w+\) .*", re.DOTALL)

_OBJECT_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")

#: Fields whose values are chosen by the server, with their format and the name to use for them.
_LEARNED_FIELDS = {
    "run_id": (_RUN_ID, "run"),
    "run_uuid": (_RUN_ID, "run"),
    "experiment_id": (_EXPERIMENT_ID, "experiment"),
    "dataset_id": (re.compile(r"d-[0-9a-f]{32}"), "dataset"),
    "request_id": (_RUN_ID, "trace"),
    "dataset_record_id": (re.compile(r"dr-[0-9a-f]{32}"), "record"),
    "scorer_id": (re.compile(_UUID), "scorer"),
    "model_id": (re.compile(r"m-[0-9a-f]{32}"), "model"),
    "schema_id": (re.compile(r"ls-[0-9a-f]{32}"), "label schema"),
    "queue_id": (re.compile(r"rq-[0-9a-f]{32}"), "review queue"),
    "issue_id": (re.compile(r"iss-[0-9a-f]{32}"), "issue"),
    "webhook_id": (re.compile(rf"{_UUID}|[0-9A-Z]{{26}}"), "webhook"),
    "id": (re.compile(r"ae-[0-9a-f]{32}"), "access endpoint"),
}
_EXPERIMENT_FIELDS = {"experiment_id", "experiment_ids"}
#: The location of an uploaded skill, whose last part is chosen by the server.
_CONTENT = re.compile(r"mlflow-artifacts:/skills/.*/([0-9a-f]{32})")
#: The digest of an evaluation dataset. It depends on the time, and may look like a number.
_DIGEST = re.compile(r"[0-9a-f]{8}")
#: Fields that contain JSON in a string, which is compared as JSON.
_JSON_TEXTS = {"records", "tags", "schema", "profile"}
_LOCATIONS = {"artifact_uri", "artifact_location", "source", "mlflow.artifact_location"}
#: Lists that MLflow returns in the order of its database.
_SETS = {"tags", "params", "model_outputs", "aliases", "latest_versions", "access_endpoints"}
#: Times that are set by servers.
_CREATED = {
    "creation_time",
    "created_time",
    "creation_timestamp",
    "creation_timestamp_ms",
    "creation_time_ms",
    "created_at",
    "created_timestamp",
}
_UPDATED = {
    "last_update_time",
    "last_updated_timestamp",
    "last_updated_timestamp_ms",
    "last_update_time_ms",
    "last_updated_at",
    "last_seen_timestamp",
    "completed_time_ms",
}
#: Times in GraphQL responses, where 64-bit integers are strings.
_TIMES_OF_GRAPHQL = {"creationTime", "lastUpdateTime", "creationTimestamp", "lastUpdatedTimestamp"}


class Placeholders:
    """The values that one side has chosen so far."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def learn(self, body: Any) -> None:
        """Numbers the ids that appear for the first time in a response."""
        if isinstance(body, list):
            for item in body:
                self.learn(item)
        elif isinstance(body, dict):
            for key, value in body.items():
                self._learn_field(_snake_case(key), value)
                self.learn(value)

    def apply(self, body: Any) -> Any:
        """Returns the body with all values that the server has chosen replaced by their names."""
        return self._apply(body, key="", parent="")

    def _name(self, text: str) -> str:
        return self._names.get(text, text)

    def _learn_field(self, key: str, value: Any) -> None:
        if key in _JSON_TEXTS and isinstance(value, str):
            self.learn(_read_json(value))
        if key == "source" and isinstance(value, str) and (content := _CONTENT.fullmatch(value)):
            self._learn(content[1], "content")
        pattern, kind = _LEARNED_FIELDS.get(key, (None, ""))
        if pattern is not None and isinstance(value, str) and pattern.fullmatch(value):
            self._learn(value, kind)

    def _learn(self, text: str, kind: str) -> None:
        if text not in self._names:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._names[text] = f"<{kind} {self._counts[kind]}>"

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
        # Only in objects with a creation time. In others, fields with these names may be set by
        # clients.
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
        # Stock MLflow creates the default label schema when schemas are first listed.
        if fields.get("is_default") is True:
            applied |= {"created_at": "<time>", "last_updated_at": "<time>"}
        if "info" in fields:
            _hide_generated_name(applied)
        return applied

    def _apply_to_string(self, text: str, key: str) -> str:
        if key == "next_page_token" and text:
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
    """Converts the name of a GraphQL field to that of the REST field. Returns other names
    unchanged.
    """
    return re.sub("(?<=[a-z])[A-Z]", lambda found: f"_{found[0].lower()}", name)


def _read_json(text: str) -> Any:
    """Parses JSON, with NaN and infinities replaced by their names. Returns `None` if the text is
    not JSON.
    """
    try:
        return json.loads(text, parse_constant=lambda name: f"<{name}>")
    except ValueError:
        return None


def _sorted_set(found: re.Match[str]) -> str:
    """Sorts the elements of a printed Python set of strings, whose order differs
    between processes.
    """
    return "{" + ", ".join(sorted(re.findall(_PYTHON_STRING, found[1]))) + "}"


def _hide_generated_name(run: dict[str, Any]) -> None:
    name = run["info"].get("run_name", "")
    if not _GENERATED_NAME.fullmatch(name):
        return
    run["info"]["run_name"] = "<generated name>"
    for tag in run.get("data", {}).get("tags", []):
        if tag.get("key") == "mlflow.runName" and tag.get("value") == name:
            tag["value"] = "<generated name>"
