"""SHA-256 of all that is passed on."""

import hashlib
from pathlib import Path

NAME = "SHA256SUMS"


def write_digests(directory: Path) -> Path:
    """As `sha256sum --check` reads them."""
    files = sorted(path for path in directory.iterdir() if path.is_file() and path.name != NAME)
    (directory / NAME).write_text("".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files))
    return directory / NAME
