"""Libraries use no functions, and only the indexer uses what puts entries of the index, and what packs."""

import re
import tomllib
from pathlib import Path

_REPOSITORY = Path(__file__).resolve().parents[2]
#: What an entry is put by. Two indexers may not work on one run (docs/run-index.md, "One writer").
_OF_THE_INDEXER = re.compile(r"\b(run_entries|Directory::default|enter)\(")

#: What has crates below it.
_FOLDERS = ("functions", "shared", ".", "bench")


def _manifests(folder: str) -> dict[str, dict]:
    found = (tomllib.loads(path.read_text()) for path in sorted(_REPOSITORY.glob(f"{folder}/*/Cargo.toml")))
    return {manifest["package"]["name"]: manifest for manifest in found}


def test_no_library_uses_a_function() -> None:
    functions, libraries = _manifests("functions"), _manifests("shared")
    assert len(functions) >= 10 and len(libraries) >= 20
    used = {name: set(manifest.get("dependencies", {})) & set(functions) for name, manifest in libraries.items()}
    assert not {name: uses for name, uses in used.items() if uses}


def test_no_crates_use_each_other() -> None:
    """Directly or by way of others, in tests included: cargo would compile one of them twice."""
    everybody = {name: manifest for folder in _FOLDERS for name, manifest in _manifests(folder).items()}
    left = {
        name: {used for kind in ("dependencies", "dev-dependencies", "build-dependencies") for used in manifest.get(kind, {})} & set(everybody)
        for name, manifest in everybody.items()
    }
    while free := [name for name, used in left.items() if not used & set(left)]:
        for name in free:
            del left[name]
    assert not left


def test_what_stores_knows_no_message() -> None:
    libraries = _manifests("shared")
    for name in ("model", "key-schema", "table"):
        assert "mlflow-api" not in libraries[name]["dependencies"], name


def test_only_the_indexer_packs() -> None:
    """A second packer would pack what the first one packs."""
    everybody = {name: manifest for folder in _FOLDERS for name, manifest in _manifests(folder).items()}
    assert {"mlflow-serverless", "domains", "sweep", "fts-indexer"} <= set(everybody)
    packing = {"metric-packing", "trace-packing"}
    users = {name for name, manifest in everybody.items() if packing & set(manifest.get("dependencies", {}))}
    assert users == {"fts-indexer"}


def test_only_the_indexer_puts_entries() -> None:
    users = {
        path.relative_to(_REPOSITORY).parts[:2]
        for folder in ("functions", "shared", "cli", "domains", "bench")
        for path in (_REPOSITORY / folder).rglob("src/**/*.rs")
        if "run_index" in (text := path.read_text()) and _OF_THE_INDEXER.search(text)
    }
    assert users == {("functions", "fts-indexer")}
    # The library itself puts rows of the directory, and otherwise deletes and marks.
    puts = [path.name for path in (_REPOSITORY / "shared/run-index/src").glob("*.rs") if re.search(r"\.put\(|Write::Put|write_many\([^V&]", path.read_text())]
    assert puts == ["directory.rs"]
