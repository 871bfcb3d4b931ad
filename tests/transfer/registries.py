"""Rows of skills, webhooks and issues of MLflow 3.18, and the files of uploaded skills."""

import hashlib
from pathlib import Path

from tests.transfer.rows import UNICODE, T

_TOKEN = "0123456789abcdef" * 2
#: Directory of the uploaded content, below the artifact root.
CONTENT = f"skills/@acme/review/{_TOKEN}"
ISSUE = "iss-" + "1" * 32


def skills() -> dict[str, list[dict]]:
    """Returns the rows of two skills. The greatest version of one of them is deleted."""
    review = {"workspace": "default", "organization": "acme", "name": "review"}
    empty = {"workspace": "default", "organization": "", "name": "empty"}
    times = {"created_by": "ann", "last_updated_by": "bob", "created_at": T, "last_updated_at": T + 5}
    git = {"source_type": "git", "source": "https://example.com/skills.git", "ref": "main", "subpath": "review"}

    def version(number: int, **others) -> dict:
        row = {"source_type": None, "source": None, "ref": None, "subpath": None, "digest": None, "status": "active"}
        return review | row | times | {"version": number, "created_at": T + number} | others

    return {
        "skills": [
            review | times | {"description": UNICODE, "icons": [{"src": "https://example.com/i.png"}], "search_text": f"review {UNICODE}"},
            empty | times | {"description": None, "icons": None, "search_text": "empty"},
        ],
        "skill_versions": [
            version(1, source_type="mlflow", source=f"mlflow-artifacts:/{CONTENT}", digest="0" * 64),
            version(2, **git, digest="1" * 64, status="deprecated"),
            version(3, source_type="zip", source="https://example.com/s.zip", status="draft", created_by=None, last_updated_by=None),
            version(4, **git, status="deleted"),
        ],
        "skill_tags": [review | {"key": "team", "value": UNICODE}, review | {"key": "none", "value": ""}],
        "skill_version_tags": [review | {"version": 2, "key": "a/key", "value": UNICODE * 100}],
        "skill_aliases": [review | {"alias": "stable", "version": 2}, review | {"alias": "first", "version": 1}],
    }


def write_content(root: Path) -> None:
    """Writes the files of the uploaded version below an artifact root."""
    directory = root / CONTENT
    (directory / "scripts").mkdir(parents=True)
    (directory / "SKILL.md").write_text(UNICODE)
    (directory / "scripts/run.py").write_text("print()")


def webhooks() -> dict[str, list[dict]]:
    """Returns the rows of webhooks without secrets, of which one is deleted."""
    row = {"description": None, "url": "https://example.com/hook", "status": "ACTIVE", "secret": None, "deleted_timestamp": None, "workspace": "default"}
    first, disabled, deleted = (f"{number}f0c1d2e-0000-4000-8000-000000000000" for number in range(3))
    return {
        "webhooks": [
            row | {"webhook_id": first, "name": "first", "creation_timestamp": T, "last_updated_timestamp": T},
            row
            | {"webhook_id": disabled, "name": "disabled", "description": UNICODE, "status": "DISABLED", "creation_timestamp": T + 1, "last_updated_timestamp": T + 9},
            row | {"webhook_id": deleted, "name": "deleted", "creation_timestamp": T, "last_updated_timestamp": T, "deleted_timestamp": T + 3},
        ],
        "webhook_events": [
            {"webhook_id": first, "entity": "registered_model", "action": "created"},
            {"webhook_id": first, "entity": "model_version_tag", "action": "set"},
            {"webhook_id": disabled, "entity": "budget_policy", "action": "exceeded"},
            {"webhook_id": deleted, "entity": "prompt", "action": "created"},
        ],
    }


def issues() -> dict[str, list[dict]]:
    """Returns the rows of an issue with everything that only MLflow 3.18 has."""
    issue = {
        "issue_id": ISSUE,
        "experiment_id": 1,
        "name": "slow",
        "description": UNICODE,
        "status": "pending",
        "severity": "high",
        "root_causes": None,
        "source_run_id": None,
        "categories": '["Cost", " cost", "latency"]',
        "created_timestamp": T,
        "last_updated_timestamp": T + 4,
        "created_by": "ann",
        "last_seen_timestamp": T + 2,
        "last_updated_by": "eve",
        "metadata": '{"k":"v"}',
    }
    categories = {category.strip().lower(): category for category in ("Cost", " cost", "latency")}
    hashes = [(hashlib.sha256(key.encode()).hexdigest(), category) for key, category in categories.items()]
    return {
        "issues": [issue],
        "issue_categories": [{"issue_id": ISSUE, "category_hash": digest, "category": category} for digest, category in hashes],
    }
