"""Bundles the scripts of MLflow's user interface, so that a page requests a few larger files instead
of dozens of small ones.

MLflow builds its user interface with webpack. The entry script loads the code of a page as up to 30
chunks at the same time, and each of them is an invocation of the function `ui`. An AWS account with
a small Lambda quota rejects some of them, and browsers do not repeat the requests.

A bundle is a script that contains several chunks as they are. `ui_loader.js`, which runs before the
entry script, makes webpack load a bundle instead of its chunks, and repeats downloads that fail. The
chunks of a bundle are derived from the scripts: the calls in them that load chunks show which ones
are loaded together. The original files are left unchanged, and the loader falls back to them.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

#: Number of scripts that the loader requests at the same time. A page also requests style sheets and
#: data, and an AWS account may have a quota of 10 concurrent requests.
SCRIPTS_AT_ONCE = 2
#: Maximum number of scripts for one call that loads chunks. If the maximum were lower, pages would
#: load more code that they do not need.
SCRIPTS_PER_CALL = 6
#: Maximum size of a bundle in bytes. Encoded in base64, it fits into a Lambda's response of 6 MB.
MAX_BYTES = 4_000_000
#: Directory of the scripts in the build.
_SCRIPTS = "static/js"
_LOADER = Path(__file__).with_name("ui_loader.js")
#: Files that determine what the bundles contain.
SOURCES = (Path(__file__), _LOADER)

#: The beginning of a chunk, in its first bytes: a call that adds it to webpack's global list. The
#: groups are the list's name, and the chunk's ids.
_CHUNK = re.compile(r"""(?:\.|\[")(webpackChunk\w*).{0,200}?\.push\(\[\[([^\]]+)\],\s*\{""", re.DOTALL)
_CHUNK_BYTES = 2000
#: A call that loads one chunk, such as `n.e(123)`.
_LOAD = re.compile(r"""\b\w+\.e\((\d+|"[^"]*")\)""")
#: A call that loads several chunks, which a page needs at the same time.
_LOAD_ALL = re.compile(r"""\bPromise\.all\(\[((?:\w+\.e\((?:\d+|"[^"]*")\),?)+)\]\)""")


class NoChunksError(Exception):
    """The build has no chunks that can be bundled."""


@dataclass(frozen=True)
class Bundle:
    """Chunks that are loaded together. A single chunk is loaded from its own file."""

    files: tuple[str, ...]
    #: Size in bytes, and when compressed.
    size: int
    compressed: int
    #: The sets of chunks that need at least one of these chunks, as the bits of a number.
    uses: int


def bundled_files(build: Path) -> dict[str, bytes]:
    """Returns the bundles of a build, the loader, and the page that uses it, by their paths in the
    build. Raises NoChunksError if there is nothing to bundle.
    """
    scripts = {path.name: path.read_text() for path in sorted((build / _SCRIPTS).glob("*.js"))}
    ids, name = _chunks(scripts)
    page = (build / "index.html").read_text()
    entry = re.search(rf"""<script\b[^>]*\bsrc="(?:\./)?static-files/({_SCRIPTS}/[^"]+)"[^>]*></script>""", page)
    if not ids or entry is None:
        raise NoChunksError("the page does not load chunks in a known way")
    files: dict[str, bytes] = {}
    contents: dict[str, list[str]] = {}
    for bundle in bundles(build, scripts, ids):
        content = "".join(f"(() => {{\n{scripts[file]}\n}})();\n" for file in bundle.files).encode()
        path = f"{_SCRIPTS}/bundle.{_digest(content)}.js"
        files[path] = content
        contents[path] = [chunk for chunk, file in ids.items() if file in bundle.files]
    if not files:
        raise NoChunksError("no page loads many chunks at once")
    loader = _LOADER.read_text()
    values = {"LIST_NAME": name, "SCRIPTS_AT_ONCE": str(SCRIPTS_AT_ONCE), "BUNDLES": json.dumps(contents, separators=(",", ":"))}
    for placeholder, value in values.items():
        loader = loader.replace(placeholder, value)
    loader_path = f"{_SCRIPTS}/bundles.{_digest(loader.encode())}.js"
    files[loader_path] = loader.encode()
    # A script with the attributes of the entry script is loaded in the same way and runs before it.
    tag = entry[0].replace(entry[1], loader_path)
    files["index.html"] = page.replace(entry[0], tag + entry[0], 1).encode()
    return files


def bundles(build: Path, scripts: dict[str, str], ids: dict[str, str]) -> list[Bundle]:
    """Merges chunks until no call loads more than SCRIPTS_PER_CALL files, or no bundles can be
    merged without exceeding MAX_BYTES. Each step merges the pair that adds the fewest bytes to what
    the calls load. Returns the bundles of more than one chunk.
    """
    calls = _calls(scripts, ids)
    found = [
        Bundle(
            (file,),
            len(scripts[file].encode()),
            _compressed(build / _SCRIPTS / file),
            sum(1 << number for number, call in enumerate(calls) if file in call),
        )
        for file in sorted(set().union(*calls))
    ]
    while pairs := _mergeable(found, len(calls)):
        _, first, second = min((_added(found[first], found[second]), first, second) for first, second in pairs)
        merged = _merged(found[first], found[second])
        found = [bundle for position, bundle in enumerate(found) if position not in (first, second)] + [merged]
    return [bundle for bundle in found if len(bundle.files) > 1]


def _chunks(scripts: dict[str, str]) -> tuple[dict[str, str], str]:
    """Returns the files of the chunks by id, and the name of webpack's list."""
    ids: dict[str, str] = {}
    names = set()
    for file, content in scripts.items():
        if found := _CHUNK.search(content[:_CHUNK_BYTES]):
            names.add(found[1])
            ids |= {chunk.strip().strip('"'): file for chunk in found[2].split(",")}
    return (ids, names.pop()) if len(names) == 1 else ({}, "")


def _calls(scripts: dict[str, str], ids: dict[str, str]) -> list[frozenset[str]]:
    """Returns the sets of files that are loaded at the same time, by one call or by all calls in a
    chunk. The calls of the entry script belong to different pages.
    """
    calls: set[frozenset[str]] = set()
    chunks = set(ids.values())
    for file, content in scripts.items():
        several = [_files(call, ids) for call in _LOAD_ALL.findall(content)]
        calls |= {*several, *(frozenset([one]) for one in _files(_LOAD_ALL.sub("", content), ids))}
        if file in chunks:
            calls.add(frozenset().union(*several))
    return sorted((call for call in calls if call), key=sorted)


def _files(code: str, ids: dict[str, str]) -> frozenset[str]:
    chunks = (chunk.strip('"') for chunk in _LOAD.findall(code))
    return frozenset(ids[chunk] for chunk in chunks if chunk in ids)


def _mergeable(found: list[Bundle], calls: int) -> set[tuple[int, int]]:
    """Returns the pairs of bundles that can be merged: some call loads both of them and more than
    SCRIPTS_PER_CALL bundles, and together they do not exceed MAX_BYTES.
    """
    pairs = set()
    for number in range(calls):
        loaded = [position for position, bundle in enumerate(found) if bundle.uses >> number & 1]
        if len(loaded) > SCRIPTS_PER_CALL:
            pairs |= {(first, second) for first in loaded for second in loaded if first < second}
    return {(first, second) for first, second in pairs if found[first].size + found[second].size <= MAX_BYTES}


def _added(first: Bundle, second: Bundle) -> int:
    """Returns the compressed bytes that all calls together would load in addition."""
    return second.compressed * (first.uses & ~second.uses).bit_count() + first.compressed * (second.uses & ~first.uses).bit_count()


def _merged(first: Bundle, second: Bundle) -> Bundle:
    return Bundle(
        (*first.files, *second.files), first.size + second.size, first.compressed + second.compressed, first.uses | second.uses
    )


def _compressed(path: Path) -> int:
    copy = path.with_name(path.name + ".gz")
    return (copy if copy.exists() else path).stat().st_size


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:8]
