"""Tokens that `mlflow-serverless login` has stored, by the origin of the server."""

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

_FILE = "mlflow-serverless/tokens.json"
#: Bits of a file's mode that permit access to other users.
_OF_OTHERS = 0o077


class StoredTokenError(Exception):
    """The file with tokens cannot be used. The message contains the reason, and what to do."""


def path() -> Path:
    """Returns the path of the file."""
    configured = os.environ.get("XDG_CONFIG_HOME", "")
    directory = Path(configured) if os.path.isabs(configured) else Path.home() / ".config"
    return directory / _FILE


class StoredTokens:
    """The file with tokens. It is read again when it has changed. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._version: tuple[Path, int, int, int] | None = None
        self._tokens: dict[str, Any] = {}

    def find(self, origin: str) -> str | None:
        """Returns the token for an origin, unless it has expired.

        Raises:
            StoredTokenError: The file is not valid, or other users can read it.
        """
        with self._lock:
            token = self._read().get(origin)
        if not isinstance(token, dict) or not token.get("expires", 0) > time.time():
            return None
        return token.get("token")

    def _read(self) -> dict[str, Any]:
        file = path()
        try:
            with file.open(encoding="utf-8") as opened:
                status = os.fstat(opened.fileno())
                version = (file, status.st_mtime_ns, status.st_size, status.st_ino)
                if version == self._version:
                    return self._tokens
                if os.name == "posix" and status.st_mode & _OF_OTHERS:
                    raise StoredTokenError(f"Other users can read {file}. Run: chmod 600 {file}")
                tokens = json.load(opened)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise StoredTokenError(f"{file} cannot be read ({error}). Delete it, and run mlflow-serverless login again.") from error
        if not isinstance(tokens, dict):
            raise StoredTokenError(f"{file} is not valid. Delete it, and run mlflow-serverless login again.")
        self._version, self._tokens = version, tokens
        return tokens
