"""Determines which files of a crate use which others, from paths in the source text (`crate::…`,
`super::…`, `self::…`).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_DECLARED = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;", re.MULTILINE)
_USED = re.compile(r"^\s*(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);", re.MULTILINE)
_INLINE = re.compile(r"\b((?:crate|super|self)(?:::\w+)+)")
_DEFINED = re.compile(
    r"^(?:pub(?:\([^)]*\))?\s+)?(?:(?:const|async|unsafe|default)\s+)*"
    r"(?:fn|struct|enum|union|trait|type|const|static|macro_rules!)\s+(\w+)",
    re.MULTILINE,
)
#: Characters, raw strings, strings and comments. They are matched in one pass, because each may
#: contain text that looks like another.
_NOT_CODE = re.compile(r"""b?'(?:\\.|[^'\\])'|r(#*)".*?"\1|"(?:[^"\\]|\\.)*"|//[^\n]*""", re.DOTALL)
#: The path of a used item. "*" as the last name stands for everything in a module.
Names = tuple[str, ...]


@dataclass(eq=False)
class Module:
    """A file of a crate."""

    file: Path
    path: Names
    children: set[str] = field(default_factory=set)
    #: Items defined at the top level.
    defined: set[str] = field(default_factory=set)
    #: Imported names with the path that each refers to, from every `use`, public or not.
    imported: dict[str, Names] = field(default_factory=dict)
    #: Modules with a glob import.
    globs: list[Names] = field(default_factory=list)
    #: All paths in the file, except those of `pub use`, which only re-export.
    used: set[Names] = field(default_factory=set)


def modules(root: Path) -> dict[Names, Module]:
    """Returns the modules of the crate with this root file, by path. Inline modules are part of
    their file.
    """
    found: dict[Names, Module] = {}
    _read(root, (), root.parent, found)
    return found


def _read(file: Path, path: Names, children_in: Path, found: dict[Names, Module]) -> None:
    text = _without_tests_comments_and_texts(file.read_text())
    module = Module(file, path)
    found[path] = module
    for name in _DECLARED.findall(text):
        flat, folder = children_in / f"{name}.rs", children_in / name / "mod.rs"
        child = flat if flat.exists() else folder
        # Ignores a file's tests, and modules with a different path.
        if child.exists() and name != "tests":
            module.children.add(name)
            _read(child, (*path, name), children_in / name, found)
    module.defined = set(_DEFINED.findall(text))
    for public, tree in _USED.findall(text):
        for names, alias in _flattened(tree):
            absolute = _absolute(names, path, module.children)
            if absolute is None:
                continue
            if absolute[-1] == "*":
                module.globs.append(absolute[:-1])
            else:
                module.imported[alias] = absolute
            if not public:
                module.used.add(absolute)
    for inline in _INLINE.findall(_USED.sub("", text)):
        if absolute := _absolute(tuple(inline.split("::")), path, module.children):
            module.used.add(absolute)


def _without_tests_comments_and_texts(text: str) -> str:
    text = _NOT_CODE.sub("", text)
    # Tests are at the end of a file, and may use everything that they test.
    return re.split(r"^#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*mod \w+ \{", text, maxsplit=1, flags=re.MULTILINE)[0]


def _flattened(tree: str) -> Iterator[tuple[Names, str]]:
    """Yields the paths in `a::{b, c::{self, d as e}}`, each with its local name."""
    tree = re.sub(r"\s+", " ", tree).strip()
    if (brace := tree.find("{")) >= 0:
        prefix = tuple(name for name in tree[:brace].split("::") if name.strip())
        depth, begin = 0, brace + 1
        for place in range(brace, len(tree)):
            depth += {"{": 1, "}": -1}.get(tree[place], 0)
            if (tree[place] == "," and depth == 1) or (tree[place] == "}" and depth == 0):
                part, begin = tree[begin:place].strip(), place + 1
                for names, alias in _flattened(part) if part else ():
                    names = (*prefix, *names)
                    yield (names[:-1], names[-2]) if names[-1] == "self" else (names, alias)
        return
    path, _, alias = tree.partition(" as ")
    names = tuple(name.strip() for name in path.split("::"))
    yield names, alias.strip() or names[-1]


def _absolute(names: Names, path: Names, children: set[str]) -> Names | None:
    """Returns a path relative to the crate's root, or `None` if it leads out of the crate."""
    first, at = names[0], path
    if first == "crate":
        return names[1:] or None
    if first not in ("super", "self"):
        return (*path, *names) if first in children else None
    while names and names[0] in ("super", "self"):
        if names[0] == "super":
            at = at[:-1]
        names = names[1:]
    return (*at, *names) if names else at


def arrows(crate: dict[Names, Module]) -> dict[Path, set[Path]]:
    """Returns which files use which. A re-exported name belongs to the file that defines it."""
    found = {}
    for module in crate.values():
        targets = {_home(crate, names, set()) for names in module.used}
        found[module.file] = {target.file for target in targets if target is not None} - {module.file}
    return found


def _home(crate: dict[Names, Module], names: Names, seen: set[Names]) -> Module | None:
    """Returns the module that defines the item at a path."""
    if names in seen:
        return None
    seen.add(names)
    if names in crate:
        return crate[names]
    at = next((names[:length] for length in range(len(names) - 1, -1, -1) if names[:length] in crate), None)
    if at is None:
        return None
    module, name, rest = crate[at], names[len(at)], names[len(at) + 1 :]
    if name in module.defined:
        return module
    if name in module.imported:
        return _home(crate, (*module.imported[name], *rest), seen)
    for source in module.globs:
        if home := _home(crate, (*source, name, *rest), seen):
            return home
    return module if name != "*" or module.defined else None


def circles(graph: dict[Path, set[Path]]) -> list[list[Path]]:
    """Returns groups of files that use each other, directly or indirectly."""
    reached = {file: _reachable(graph, file) for file in graph}
    found: list[list[Path]] = []
    for file in sorted(graph):
        circle = sorted(other for other in reached[file] if file in reached.get(other, set()))
        if circle and circle not in found:
            found.append(circle)
    return found


def _reachable(graph: dict[Path, set[Path]], begin: Path) -> set[Path]:
    reached: set[Path] = set()
    waiting = list(graph[begin])
    while waiting:
        if (file := waiting.pop()) not in reached:
            reached.add(file)
            waiting.extend(graph.get(file, ()))
    return reached
