"""Computes the cost of requests from the lines that functions log about them: `{"fields":
{"message": "request", "route": …}}`.

The lines of an hour are stored in `hour.tsv`, with identical lines in one row. They were logged by
`serve`, so the table only has the length of their fields. A function's log line has additional
bytes around the fields, whose number is derived from the sample line in `assumptions.json`.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tools.cost import stack
from tools.cost.capacity import Units
from tools.cost.model import Cost, Model, data

RECORDED = Path(__file__).with_name("hour.tsv")
#: Pattern of a request's line in the text format of `serve`. Functions log JSON instead.
_TEXT = re.compile(r" INFO request: request (route=.*)$")
_FIELD = re.compile(r'(\w+)=(?:"([^"]*)"|(\S+))')


@dataclass(frozen=True)
class Line:
    route: str
    requests: float
    reads: float
    writes: float
    #: Length of the line in bytes, as a function writes it.
    size: int

    @property
    def is_call(self) -> bool:
        """Returns whether the line describes a call. Other work has routes that consist of a
        single word."""
        return " " in self.route


def read(text: str) -> Iterator[Line]:
    """Yields the lines of a log that describe requests, either of `serve` or of functions."""
    for line in text.splitlines():
        if found := _TEXT.search(line):
            fields = {name: quoted or plain for name, quoted, plain in _FIELD.findall(found[1])}
            numbers = {name: float(fields[name]) for name in ("ms", "requests", "read_units", "write_units")}
            fields = fields | numbers | ({"status": int(fields["status"])} if "status" in fields else {})
            yield _line(fields, around_fields() + _length(fields))
        elif '"target":"request"' in line:
            yield _line(json.loads(line)["fields"], len(line.strip().encode()))


def _line(fields: dict, size: int) -> Line:
    return Line(fields["route"], fields["requests"], fields["read_units"], fields["write_units"], size)


def _length(fields: dict) -> int:
    """Returns the bytes of the fields of a line in JSON."""
    names = ("route", "status", "ms", "requests", "read_units", "write_units", "caller")
    named = {"message": "request"} | {name: fields[name] for name in names if name in fields}
    named["requests"] = int(named["requests"])
    return len(json.dumps(named, separators=(",", ":")).encode())


def around_fields() -> int:
    """Returns the bytes of a function's log line without its fields, taken from the sample line
    among the assumptions."""
    [line] = data("assumptions.json")["own lines"]["value"]
    return len(line.encode()) - _length(json.loads(line)["fields"])


def bill(model: Model, lines: dict[Line, int]) -> Cost:
    """Returns the cost of the lines' calls and of the work that they cause. The lines do not cover
    cold starts, files in the bucket, or the stream's calls of the indexer.
    """
    total = Cost()
    for line, times in lines.items():
        units = Units(line.requests, line.writes, line.reads)
        if line.is_call:
            total += replace(model.call(units, starts=0), logs=model.logged(model.bytes_logged(line.size))) * times
        else:
            total += model.work(units) * times
    return total


def write(path: Path, lines: Iterable[Line]) -> None:
    rows = [
        "\t".join([line.route, *(f"{value:g}" for value in (line.requests, line.reads, line.writes, line.size - around_fields(), times))])
        for line, times in sorted(Counter(lines).items(), key=lambda one: (one[0].route, -one[1], str(one[0])))
    ]
    path.write_text("\n".join(["route\trequests\tread units\twrite units\tbytes of fields\ttimes", *rows, ""]), "utf-8")


def recorded(path: Path = RECORDED) -> dict[Line, int]:
    rows = [row.split("\t") for row in path.read_text("utf-8").splitlines()[1:]]
    return {Line(route, float(requests), float(reads), float(writes), int(size) + around_fields()): int(times) for route, requests, reads, writes, size, times in rows}


def main() -> None:
    model = Model(stack.read(Path(__file__).resolve().parents[2] / "template.yaml"))
    lines = Counter(line for path in sys.argv[1:] for line in read(Path(path).read_text("utf-8")))
    total = bill(model, lines)
    calls = sum(times for line, times in lines.items() if line.is_call)
    sys.stdout.write(f"{calls:,} calls: ${total.all:.6f}, of which table ${total.table:.6f}\n")


if __name__ == "__main__":
    main()
