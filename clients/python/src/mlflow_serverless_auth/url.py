"""URLs in the one form that a signer and a verifier cannot read in two ways."""

import re
from urllib.parse import quote, unquote_to_bytes, urlsplit, urlunsplit

#: What SigV4 leaves as it is; every other byte is written as %XX.
_UNRESERVED = "-_.~"

#: The hosts that API Gateway gives to an API: public, in China, with IPv6, and through a VPC endpoint.
_API_HOST = re.compile(
    r"(?:.+\.)?execute-api\.(?P<region>[a-z0-9-]+)\.(?:(?:vpce\.)?amazonaws\.com(?:\.cn)?|api\.aws)", re.IGNORECASE
)


def encoded(url: str) -> str:
    """The URL with the same path and parameters, each byte that needs it written as %XX, a space as %20.

    `requests` writes a space in a parameter as `+`, and AWS signs it as `%20`. Parameters keep their order, which
    means something to MLflow (`order_by`); SigV4 sorts a copy.
    """
    parts = urlsplit(url)
    segments = [quote(unquote_to_bytes(segment), safe=_UNRESERVED) for segment in parts.path.split("/")]
    path = "/".join(_without_dots(segments))
    pairs = (pair.partition("=") for pair in parts.query.split("&") if pair)
    query = "&".join(f"{_parameter(key)}={_parameter(value)}" for key, _, value in pairs)
    return urlunsplit((parts.scheme, parts.netloc, path or "/", query, ""))


def region(url: str) -> str | None:
    """The region in the host of an API's own URL; none for any other host, like a domain of one's own."""
    host = _API_HOST.fullmatch(urlsplit(url).hostname or "")
    return host["region"].lower() if host else None


def _without_dots(segments: list[str]) -> list[str]:
    """A path with `.` and `..` resolved: at its end, signers do not agree on whether they leave a slash."""
    kept: list[str] = []
    for segment in segments:
        if segment == "..":
            del kept[max(1, len(kept) - 1) :]  # What stands before the first slash stays: it is empty.
        elif segment != ".":
            kept.append(segment)
    return [*kept, ""] if segments[-1] in (".", "..") else kept


def _parameter(text: str) -> str:
    return quote(unquote_to_bytes(text.replace("+", " ")), safe=_UNRESERVED)
