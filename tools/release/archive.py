"""Reproducible archives: the same content gives the same bytes, independent of time and machine."""

import gzip
import io
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

#: The earliest date that a zip file supports.
_DATE = (1980, 1, 1, 0, 0, 0)
_SECONDS = 315532800


@dataclass(frozen=True)
class Entry:
    content: bytes
    is_program: bool = False

    @property
    def mode(self) -> int:
        return 0o755 if self.is_program else 0o644


def files_below(directory: Path, prefix: str = "") -> dict[str, Entry]:
    """Returns all files, except those that Python generates."""
    found = {}
    for path in directory.rglob("*"):
        name = path.relative_to(directory)
        if path.is_file() and not any(part == "__pycache__" or part.endswith(".egg-info") for part in name.parts):
            found[prefix + name.as_posix()] = Entry(path.read_bytes())
    return found


def zipped(entries: Mapping[str, Entry]) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, entry in sorted(entries.items()):
            info = zipfile.ZipInfo(name, _DATE)
            # Always Unix, because other systems have no file modes in zip files.
            info.create_system = 3
            info.external_attr = (0o100000 | entry.mode) << 16
            archive.writestr(info, entry.content, zipfile.ZIP_DEFLATED, compresslevel=9)
    return written.getvalue()


def write_tar(path: Path, directory: str, entries: Mapping[str, Entry]) -> None:
    """Writes a compressed tar archive with all entries below one directory."""
    with path.open("wb") as file, gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=_SECONDS) as compressed:
        with tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for name, entry in sorted(entries.items()):
                info = tarfile.TarInfo(f"{directory}/{name}")
                info.size, info.mode, info.mtime = len(entry.content), entry.mode, _SECONDS
                info.uname = info.gname = "root"
                archive.addfile(info, io.BytesIO(entry.content))
