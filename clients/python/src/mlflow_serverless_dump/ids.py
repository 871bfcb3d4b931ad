"""Ids that fit MLflow's SQL schema, for sources whose ids do not."""

import hashlib
import re
import uuid

#: Tag with the id that the source uses, on entities whose id had to be replaced.
ORIGINAL_ID_TAG = "mlflow-serverless.dump.originalId"

_RUN_ID = re.compile(r"[0-9a-f]{32}")


def experiment_number(id_: str) -> int:
    """Returns the number for an experiment's id. If the id is not a number (Azure ML), the result
    has 18 digits derived from it, like the ids of file stores.
    """
    if re.fullmatch(r"[0-9]{1,18}", id_):
        return int(id_)
    digest = int.from_bytes(hashlib.sha256(id_.encode()).digest()[:16])
    return 10**17 + digest % (9 * 10**17)


def run_id(id_: str) -> str:
    """Returns the run's id if it has 32 hexadecimal digits, and otherwise an id derived from it."""
    if _RUN_ID.fullmatch(id_):
        return id_
    return derived(id_)


def optional_run_id(id_: str | None) -> str | None:
    """Returns the id of an optional run, or `None` if the id is missing or empty."""
    return run_id(id_) if id_ else None


def derived(*parts: str) -> str:
    """Returns a UUID as 32 digits. Equal parts result in equal ids, so that a repeated dump
    contains the same ids.
    """
    digest = hashlib.sha256("\0".join(parts).encode()).digest()
    return uuid.UUID(bytes=digest[:16], version=4).hex
