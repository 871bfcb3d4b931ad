"""A report of what was dumped, and of failures."""

import sys
from collections import Counter

#: Maximum number of failures that are listed. Further ones are only counted.
_MAX_LISTED = 50


class UsageError(Exception):
    """An error that prevents the dump from starting. Its text is printed unchanged."""


class Report:
    """Counts what was dumped. Failures make the command exit with 1; notes do not."""

    def __init__(self) -> None:
        self.written: Counter[str] = Counter()
        self.unchanged: Counter[str] = Counter()
        self._failures: list[str] = []
        self._failed = 0
        self._notes: Counter[str] = Counter()

    @property
    def has_failures(self) -> bool:
        """Returns whether anything could not be dumped."""
        return self._failed > 0

    def failed(self, kind: str, id_: str, error: object) -> None:
        """Records an entity that could not be dumped completely."""
        self._failed += 1
        if len(self._failures) < _MAX_LISTED:
            self._failures.append(f"{kind} {id_}: {' '.join(str(error).split())[:500]}")

    def note(self, text: str, count: int = 1) -> None:
        """Records something that the source does not return or the schema cannot hold."""
        self._notes[text] += count

    def progress(self, text: str) -> None:
        """Prints what the dump is working on."""
        print(text, file=sys.stderr, flush=True)

    def print(self) -> None:
        """Prints the result."""
        for kind in sorted(self.written.keys() | self.unchanged.keys()):
            skipped = f", {self.unchanged[kind]} already complete" if self.unchanged[kind] else ""
            print(f"{kind}: {self.written[kind]} written{skipped}")
        for text, count in sorted(self._notes.items()):
            print(f"note: {text}" + (f" ({count} times)" if count > 1 else ""))
        for failure in self._failures:
            print(f"failed: {failure}")
        if self._failed > len(self._failures):
            print(f"failed: {self._failed - len(self._failures)} more")
        if self._failed:
            print("Not everything was dumped. Run the command again to retry what failed.")
