"""Compares uploads of skills with MLflow 3.18.0: proper archives, and archives that a client would
not make.
"""

import gzip
import io
import json
import re
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.compare.conftest import COMPARED, NEXT_RELEASE
from tests.compare.differences import compare_values
from tests.support.http import Answer, Request, Side

pytestmark = NEXT_RELEASE

_SKILLS = "/api/3.0/mlflow/skills"
_ARTIFACTS = "/api/2.0/mlflow-artifacts/artifacts"
_MANIFEST = b"---\nname: a\ndescription: d\n---\n"
_BOUNDARY = "a boundary"
#: The limits of MLflow.
_MOST_BYTES, _MOST_ENTRIES = 25 << 20, 10_000

_TOKEN = re.compile(r"(?<=/)[0-9a-f]{32}$")
#: Messages that contain Python's reason why it cannot read an archive.
_UNREADABLE = re.compile(r"('content\.tar\.gz' is not a readable tar archive|Archive is malformed)[:.].*", re.DOTALL)


#: Messages in the words of Python's library for types.
_INVALID = re.compile(r"Invalid registration metadata: .*(dictionary or instance|Extra inputs are not permitted).*", re.DOTALL)


def entry(name: str, content: bytes = b"x", **fields: Any) -> tuple[tarfile.TarInfo, bytes]:
    """Returns an entry of a tar archive, whose header has these fields."""
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def tar(*entries: tuple[tarfile.TarInfo, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=form) as archive:
        for info, content in entries:
            archive.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def packed(*entries: tuple[tarfile.TarInfo, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    return gzip.compress(tar(*entries, form=form), 1, mtime=0)


def directory(name: str) -> tuple[tarfile.TarInfo, bytes]:
    return entry(name, b"", type=tarfile.DIRTYPE)


def zipped() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("SKILL.md", _MANIFEST)
    return packed.getvalue()


def with_size(size: bytes) -> bytes:
    """Returns an archive whose only entry has this text as its size."""
    header = bytearray(tar(entry("a", b""))[:512])
    header[124 : 124 + len(size)] = size
    header[148:156] = b" " * 8
    header[148:155] = b"%06o\0" % sum(header)
    return gzip.compress(bytes(header) + bytes(1024), mtime=0)


#: An archive. Large ones are functions, which are only called by their test.
Archive = bytes | Callable[[], bytes]

_SKILL = entry("SKILL.md", _MANIFEST)
_WHOLE = packed(_SKILL)

ACCEPTED: dict[str, Archive] = {
    "a file": _WHOLE,
    "a tree": packed(_SKILL, entry("b/c/d.txt"), entry("b.txt", b""), entry("b/a.bin", bytes(range(256)) * 5)),
    "directories": packed(directory("./"), directory("b"), directory("b/c/"), entry("b/c/d"), _SKILL),
    "a leading dot": packed(entry("./SKILL.md", _MANIFEST), entry("./b/c")),
    "doubled slashes": packed(_SKILL, entry("b//c")),
    "long names": packed(_SKILL, entry("d/" * 60 + "e" * 200)),
    "long names of GNU": packed(_SKILL, entry("d/" * 60 + "e" * 200), form=tarfile.GNU_FORMAT),
    "a prefix of ustar": packed(_SKILL, entry("d/" * 60 + "e" * 90), form=tarfile.USTAR_FORMAT),
    "letters outside ASCII": packed(_SKILL, entry("ä/ß/日本.txt")),
    "spaces": packed(_SKILL, entry("a b/ c")),
    "an old file": packed(_SKILL, entry("b", type=tarfile.AREGTYPE)),
    "a contiguous file": packed(_SKILL, entry("b", type=tarfile.CONTTYPE)),
    "times and owners": packed(entry("SKILL.md", _MANIFEST, mtime=1e9, mode=0o4777, uid=0, uname="root")),
    "no manifest": packed(entry("a")),
    "several members of gzip": gzip.compress(tar(_SKILL)[:512], mtime=0) + gzip.compress(tar(_SKILL)[512:], mtime=0),
    "zeros after gzip": _WHOLE + bytes(7),
    "no end": gzip.compress(tar(_SKILL)[:1024], mtime=0),
    "content after the end": gzip.compress(tar(_SKILL) + tar(entry("b")), mtime=0),
    "as much content as possible": lambda: packed(_SKILL, entry("b", bytes(_MOST_BYTES - len(_MANIFEST)))),
}

#: Archives that result in the same version, but in different files: MLflow keeps the archive's file
#: names unchanged, and stores empty directories.
ACCEPTED_IN_ANOTHER_FORM: dict[str, Archive] = {
    "a decomposed name": packed(_SKILL, entry("a\u0308b")),
    "an empty directory": packed(_SKILL, directory("b")),
}

#: Archives that only MLflow accepts. It ignores what it cannot read after the first entry.
ONLY_ACCEPTED_BY_MLFLOW: dict[str, Archive] = {
    "a sparse file": packed(_SKILL, entry("b", b"", type=tarfile.GNUTYPE_SPARSE)),
    "a wrong header after the first": gzip.compress(tar(_SKILL)[:1024] + b"x" * 512, mtime=0),
}

REFUSED: dict[str, Archive] = {
    "a name above": packed(_SKILL, entry("../b")),
    "a name above in a directory": packed(_SKILL, entry("b/../../c")),
    "a name that returns": packed(_SKILL, entry("b/../c")),
    "an inner dot": packed(_SKILL, entry("b/./c")),
    "two leading dots": packed(_SKILL, entry("././c")),
    "an absolute name": packed(_SKILL, entry("/etc/passwd")),
    "an absolute name after a dot": packed(_SKILL, entry(".//etc/passwd")),
    "a drive": packed(_SKILL, entry("C:/b")),
    "a stream": packed(_SKILL, entry("b:c")),
    "a backslash": packed(_SKILL, entry("..\\b")),
    "a device of Windows": packed(_SKILL, entry("b/nul.txt")),
    "a trailing dot": packed(_SKILL, entry("b.")),
    "a trailing space": packed(_SKILL, entry("b /c")),
    "a character of Windows": packed(_SKILL, entry("b*")),
    "a control character": packed(_SKILL, entry("b\n")),
    "a long segment": packed(_SKILL, entry("b" * 256)),
    "a deep path": packed(_SKILL, entry("b/" * 128 + "c")),
    "a long path": packed(_SKILL, entry(("b" * 100 + "/") * 41 + "c")),
    "no UTF-8": packed(_SKILL, entry("b\udcff"), form=tarfile.GNU_FORMAT),
    "a percent sign": packed(_SKILL, entry("b%2e")),
    "a percent sign in an empty directory": packed(_SKILL, directory("b/%")),
    "a number sign in a directory": packed(_SKILL, entry("b#/c")),
    "a question mark": packed(_SKILL, entry("b?")),
    "no name": packed(_SKILL, entry("./")),
    "a symbolic link": packed(_SKILL, entry("b", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd")),
    "a symbolic link and a file below it": packed(entry("b", b"", type=tarfile.SYMTYPE, linkname="/tmp"), entry("b/c")),
    "a long symbolic link": packed(_SKILL, entry("b", b"", type=tarfile.SYMTYPE, linkname="c" * 200)),
    "a hard link": packed(_SKILL, entry("b", b"", type=tarfile.LNKTYPE, linkname="SKILL.md")),
    "a hard link outside": packed(_SKILL, entry("b", b"", type=tarfile.LNKTYPE, linkname="/etc/passwd")),
    "a device": packed(_SKILL, entry("b", b"", type=tarfile.CHRTYPE, devmajor=1, devminor=3)),
    "a block device": packed(_SKILL, entry("b", b"", type=tarfile.BLKTYPE)),
    "a pipe": packed(_SKILL, entry("b", b"", type=tarfile.FIFOTYPE)),
    "a symbolic link above": packed(_SKILL, entry("../b", b"", type=tarfile.SYMTYPE, linkname="c")),
    "a file twice": packed(_SKILL, _SKILL),
    "a file in another case": packed(_SKILL, entry("skill.MD")),
    "a directory in another case": packed(entry("b/c"), entry("B/d")),
    "a file in another form": packed(entry("\u00e4"), entry("a\u0308")),
    "a folded letter": packed(entry("stra\u00dfe"), entry("STRASSE")),
    "a file as a directory": packed(entry("b"), entry("b/c")),
    "a directory as a file": packed(entry("b/c"), entry("b")),
    "no files": packed(directory("b")),
    "no entries": packed(),
    "an empty archive": b"",
    "an empty gzip": gzip.compress(b""),
    "text": b"not an archive",
    "text in gzip": gzip.compress(b"not an archive"),
    "zip": zipped(),
    "tar": tar(_SKILL),
    "a cut gzip": _WHOLE[:-4],
    "a cut gzip in the middle": _WHOLE[:60],
    "a cut tar": gzip.compress(tar(_SKILL)[:700], mtime=0),
    "a wrong checksum of gzip": _WHOLE[:-8] + b"\0\0\0\0" + _WHOLE[-4:],
    "text after gzip": _WHOLE + b"text",
    "a wrong checksum of tar": gzip.compress(b"x" + tar(_SKILL)[1:], mtime=0),
    "a size of another alphabet": with_size(b"xyz"),
    "a size beyond the end": with_size(b"00000010000\0"),
    "a negative size": with_size(b"\xff" * 12),
    "a great size": with_size(b"\x80" + b"\0" * 4 + b"\x7f" * 7),
    "more entries than possible": lambda: packed(*(directory(f"b{number}") for number in range(_MOST_ENTRIES + 1))),
    "more content than possible": lambda: packed(_SKILL, entry("b", bytes(_MOST_BYTES - len(_MANIFEST) + 1))),
    "a bomb": lambda: packed(_SKILL, entry("b", bytes(60 << 20))),
    "a bomb in a header": lambda: packed(entry("b", pax_headers={"comment": "x" * (12 << 20)})),
    "a bomb after the end": lambda: gzip.compress(tar(_SKILL) + bytes(60 << 20), 1, mtime=0),
    "a larger archive than possible": lambda: bytes(_MOST_BYTES + (1 << 20) + 1),
}


@dataclass
class Part:
    """A part of a form."""

    name: str
    content: bytes
    filename: str | None = None


def form(*parts: Part) -> bytes:
    body = b""
    for part in parts:
        filename = "" if part.filename is None else f'; filename="{part.filename}"'
        body += f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="{part.name}"{filename}\r\n\r\n'.encode()
        body += part.content + b"\r\n"
    return body + f"--{_BOUNDARY}--\r\n".encode()


def upload(side: Side, skill: str, body: bytes, kind: str = f'multipart/form-data; boundary="{_BOUNDARY}"') -> Answer:
    return side.send(Request("POST", f"{_SKILLS}/{skill}/versions", {}, body, {"Content-Type": kind}))


def of_archive(archive: Archive) -> bytes:
    content = archive if isinstance(archive, bytes) else archive()
    return form(Part("metadata", b"{}"), Part("content", content, "content.tar.gz"))


def shown(answer: Answer) -> tuple[int, Any]:
    """Returns what is compared of a response: everything but times, tokens in paths, and the
    reasons of Python.
    """
    if not isinstance(answer.body, dict):
        return answer.status, answer.body
    body = {name: value for name, value in answer.body.items() if not name.endswith("_timestamp")}
    if isinstance(source := body.get("source"), str):
        body["source"] = _TOKEN.sub("<token>", source)
    if isinstance(message := body.get("message"), str):
        body["message"] = _INVALID.sub("<invalid>", _UNREADABLE.sub("<unreadable>", message))
    if body.get("error_code") == "BAD_REQUEST":
        # MLflow's reader of forms says nothing more.
        body = {name: body[name] for name in ("error_code", "message")}
    if answer.status == 413:
        # MLflow has another code for this status.
        body = {"message": body.get("message")}
    for file in body.get("files", []):
        # MLflow omits the size of an empty file.
        file.setdefault("file_size", 0)
    return answer.status, body


def assert_same(sides: tuple[Side, Side], send: Callable[[Side], Answer]) -> list[Answer]:
    """Sends a request to both sides, and compares the responses."""
    answers = [send(side) for side in sides]
    found = list(compare_values("answer", *map(shown, answers)))
    assert not found, "\n".join(map(str, found))
    return answers


@pytest.fixture
def sides(next_reference: Side, subject: Side) -> tuple[Side, Side]:
    return next_reference, subject


@pytest.mark.parametrize("case", ACCEPTED)
def test_an_archive_that_is_accepted(case: str, sides: tuple[Side, Side], record_property):
    skill = f"accepted-{list(ACCEPTED).index(case)}"
    body = of_archive(ACCEPTED[case])

    answers = assert_same(sides, lambda side: upload(side, skill, body))

    assert answers[0].status == 200
    roots = {side.name: answer.body["source"].removeprefix("mlflow-artifacts:/") for side, answer in zip(sides, answers)}
    requests = 1 + _assert_same_tree(sides, roots, "")
    record_property(COMPARED, requests)


@pytest.mark.parametrize("case", ACCEPTED_IN_ANOTHER_FORM)
def test_an_archive_whose_files_differ(case: str, sides: tuple[Side, Side], record_property):
    body = of_archive(ACCEPTED_IN_ANOTHER_FORM[case])
    answers = assert_same(sides, lambda side: upload(side, f"differs-{len(case)}", body))
    assert answers[0].status == 200
    record_property(COMPARED, 1)


@pytest.mark.parametrize("case", ONLY_ACCEPTED_BY_MLFLOW)
def test_an_archive_that_only_mlflow_accepts(case: str, sides: tuple[Side, Side]):
    body = of_archive(ONLY_ACCEPTED_BY_MLFLOW[case])
    assert [upload(side, f"only-{len(case)}", body).status for side in sides] == [200, 400]


def _assert_same_tree(sides: tuple[Side, Side], roots: dict[str, str], path: str) -> int:
    """Compares all files below a path as the artifact API returns them. Returns the number of
    requests.
    """
    listed = assert_same(sides, lambda side: side.send(Request("GET", _ARTIFACTS, {"path": f"{roots[side.name]}{path}"})))
    count = 1
    for file in listed[0].body.get("files", []):
        below = f"{path}/{file['path']}"
        if file.get("is_dir"):
            count += _assert_same_tree(sides, roots, below)
        elif file.get("file_size", 0) < 1 << 20:
            assert_same(sides, lambda side: side.send(Request("GET", f"{_ARTIFACTS}/{roots[side.name]}{below}")))
            count += 1
    return count


@pytest.mark.parametrize("case", REFUSED)
def test_an_archive_that_is_refused(case: str, sides: tuple[Side, Side], record_property):
    skill = f"refused-{list(REFUSED).index(case)}"
    body = of_archive(REFUSED[case])

    answers = assert_same(sides, lambda side: upload(side, skill, body))

    assert answers[0].status in (400, 413)
    # Nothing has been registered.
    assert_same(sides, lambda side: side.send(Request("GET", f"{_SKILLS}/{skill}")))
    record_property(COMPARED, 2)


def _forms() -> list[tuple[Part, ...]]:
    metadata, content = Part("metadata", b"{}"), Part("content", _WHOLE, "content.tar.gz")
    digest = "1" * 64
    return [
        (metadata, content),
        (content, metadata),
        (Part("metadata", b"{}", "metadata.json"), content),
        (metadata, Part("content", _WHOLE, "")),
        (metadata, Part("content", _WHOLE)),
        (metadata,),
        (content,),
        (),
        (metadata, content, content),
        (metadata, metadata, content),
        (metadata, content, Part("other", b"")),
        (Part("metadata", b""), content),
        (Part("metadata", b"nonsense"), content),
        (Part("metadata", b"[]"), content),
        (Part("metadata", b"\xff"), content),
        (Part("metadata", b" " * (1 << 20) + b"{}"), content),
        *(
            (Part("metadata", json.dumps(fields).encode()), content)
            for fields in (
                {"status": "draft"},
                {"status": "deprecated"},
                {"digest": digest},
                {"digest": "x"},
                {"name": "forms"},
                {"name": "other"},
                {"organization": "acme"},
                {"source": "https://example.com/a.git"},
                {"source_type": "git"},
                {"ref": "v1"},
                {"subpath": "a"},
                {"other": 1},
            )
        ),
    ]

@pytest.mark.parametrize("parts", _forms(), ids=range(len(_forms())))
def test_a_form(parts: tuple[Part, ...], sides: tuple[Side, Side], record_property):
    assert_same(sides, lambda side: upload(side, "forms", form(*parts)))
    record_property(COMPARED, 1)


_FORM = of_archive(_WHOLE)
_KIND = f'multipart/form-data; boundary="{_BOUNDARY}"'


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        *((_FORM, kind) for kind in ("multipart/form-data", "multipart/form-data; boundary=other", _KIND.title(), "application/gzip", "")),
        *((body, _KIND) for body in (b"", b"nonsense", _FORM[:-20], _FORM[:150], _FORM[:20], _FORM + b"text")),
    ],
    ids=range(11),
)
def test_a_malformed_form(body: bytes, kind: str, sides: tuple[Side, Side], record_property):
    assert_same(sides, lambda side: upload(side, "forms", body, kind))
    record_property(COMPARED, 1)


def test_the_limit_of_a_request(sides: tuple[Side, Side], record_property):
    body = of_archive(bytes(_MOST_BYTES + (3 << 20)))
    answers = assert_same(sides, lambda side: upload(side, "large", body))
    assert answers[0].status == 413
    record_property(COMPARED, 1)
