"""Writes the prices in the MLflow package to the crate `spans`: `python -m
tests.compare.record_prices`.
"""

import json
from importlib.resources import files
from pathlib import Path

TO = Path(__file__).parents[2] / "shared/language/spans/src/prices.tsv"

KINDS = ["input", "output", "cache_read", "cache_write", "cache_write_1hr"]


def lines() -> list[str]:
    """Returns the catalog in the format of the crate: a line for each provider, followed by one for
    each of its models.
    """
    written = []
    for provider in sorted(files("mlflow.utils").joinpath("model_catalog").iterdir(), key=lambda file: file.name[:-5]):
        if not provider.name.endswith(".json"):
            continue
        written.append(f"[{provider.name.removesuffix('.json')}]")
        for name, model in json.loads(provider.read_text("utf-8"))["models"].items():
            pricing = model.get("pricing") or {}
            prices = [pricing.get(f"{kind}_per_million_tokens") for kind in KINDS]
            fields = [name, *("" if price is None else repr(price) for price in prices)]
            written.append("\t".join(fields).rstrip("\t"))
    return written


if __name__ == "__main__":
    TO.write_text("\n".join(lines()) + "\n", "utf-8")
