"""Normalizes URLs to the one encoding that signers and verifiers interpret in the same way."""

import re
from urllib.parse import quote, unquote_to_bytes, urlsplit, urlunsplit

#: Characters besides letters and digits that SigV4 does not encode. All other bytes become %XX.
_UNRESERVED = "-_.~"

#: Host names of API Gateway: public, in China, over IPv6, and through a VPC endpoint.
_API_HOST = re.compile(
    r"(?:.+\.)?execute-api\.(?P<region>[a-z0-9-]+)\.(?:(?:vpce\.)?amazonaws\.com(?:\.cn)?|api\.aws)", re.IGNORECASE
)


def encoded(url: str) -> str:
    """Returns an equivalent URL in which all bytes that need it are percent-encoded.

    `requests` encodes a space in a parameter as `+`, but AWS requires `%20`. Parameters keep their order, which is
    significant in MLflow (`order_by`). SigV4 signs a sorted copy.
    """
    parts = urlsplit(url)
    segments = [quote(unquote_to_bytes(segment), safe=_UNRESERVED) for segment in parts.path.split("/")]
    path = "/".join(_without_dots(segments))
    pairs = (pair.partition("=") for pair in parts.query.split("&") if pair)
    query = "&".join(f"{_parameter(key)}={_parameter(value)}" for key, _, value in pairs)
    return urlunsplit((parts.scheme, parts.netloc, path or "/", query, ""))


def region(url: str) -> str | None:
    """Returns the region in an API Gateway host name, or `None` for other hosts, such as a custom domain."""
    host = _API_HOST.fullmatch(urlsplit(url).hostname or "")
    return host["region"].lower() if host else None


def _without_dots(segments: list[str]) -> list[str]:
    """Resolves `.` and `..` in a path. Signers disagree on whether a trailing dot segment leaves a slash."""
    kept: list[str] = []
    for segment in segments:
        if segment == "..":
            del kept[max(1, len(kept) - 1) :]  # Keeps the empty segment before the leading slash.
        elif segment != ".":
            kept.append(segment)
    return [*kept, ""] if segments[-1] in (".", "..") else kept


def _parameter(text: str) -> str:
    return quote(unquote_to_bytes(text.replace("+", " ")), safe=_UNRESERVED)
