"""SHA-256 digests of all archives of a release."""

import hashlib
from pathlib import Path

NAME = "SHA256SUMS"


def write_digests(directory: Path) -> Path:
    """Writes the digests in the format of `sha256sum --check`."""
    files = sorted(path for path in directory.iterdir() if path.is_file() and path.name != NAME)
    (directory / NAME).write_text("".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files))
    return directory / NAME
