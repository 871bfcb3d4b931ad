"""Tests the verifier with examples published by AWS ("Signature Version 4 test suite"), and with
forgeries.
"""

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from tests.support.http_server import Received

from .verifier import Refused, Verifier

_VERIFIER = Verifier("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "us-east-1", "service")
_NOW = datetime(2015, 8, 30, 12, 36, tzinfo=timezone.utc)
_HEADERS = (("Host", "example.amazonaws.com"), ("X-Amz-Date", "20150830T123600Z"))
_UNRESERVED = "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

_EXAMPLES = {
    "get-vanilla": ("GET", "/", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
    "post-vanilla": ("POST", "/", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
    "get-vanilla-query-order-key-case": (
        "GET", "/?Param2=value2&Param1=value1", "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"),
    "get-vanilla-query-order-value": (
        "GET", "/?Param1=value2&Param1=value1", "5772eed61e12b33fae39ee5e7012498b51d56abc0abb7c60486157bd471c4694"),
    "get-vanilla-query-unreserved": (
        "GET", f"/?{_UNRESERVED}={_UNRESERVED}", "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197"),
    "get-vanilla-utf8-query": (
        "GET", "/?%E1%88%B4=bar", "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"),
    "get-relative": ("GET", "/example/..", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
    "get-slashes": ("GET", "//example//", "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84"),
    "get-space": ("GET", "/example space/", "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741"),
    "get-utf8": ("GET", "/ሴ", "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"),
}


def _signed(method: str, target: str, signature: str, headers=_HEADERS, listed="host;x-amz-date") -> Received:
    authorization = (
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
        f"SignedHeaders={listed}, Signature={signature}"
    )
    return Received(method, target, (*headers, ("Authorization", authorization)))


@pytest.mark.parametrize("name", _EXAMPLES)
def test_examples_of_paths_and_queries(name: str):
    _VERIFIER.verify(_signed(*_EXAMPLES[name]), _NOW)


def test_example_of_repeated_headers():
    headers = (*_HEADERS, ("My-Header1", "value2"), ("My-Header1", "value2"), ("My-Header1", "value1"))
    signature = "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea"
    _VERIFIER.verify(_signed("GET", "/", signature, headers, "host;my-header1;x-amz-date"), _NOW)


def test_example_of_spaces_in_headers():
    headers = (*_HEADERS, ("My-Header1", " value1"), ("My-Header2", ' "a   b   c"'))
    signature = "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"
    _VERIFIER.verify(_signed("GET", "/", signature, headers, "host;my-header1;my-header2;x-amz-date"), _NOW)


def test_example_of_a_body():
    headers = (*_HEADERS, ("Content-Type", "application/x-www-form-urlencoded"))
    signature = "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"
    request = _signed("POST", "/", signature, headers, "content-type;host;x-amz-date")
    _VERIFIER.verify(replace(request, body=b"Param1=value1"), _NOW)
    with pytest.raises(Refused, match="canonical request"):
        _VERIFIER.verify(replace(request, body=b"Param1=value2"), _NOW)


_VALID = _signed(*_EXAMPLES["get-vanilla-query-order-key-case"])


@pytest.mark.parametrize(
    "target",
    [
        "/?Param2=value2",
        "/?Param1=value1&Param2=value2&Param2=value2",
        "/?Param1=value1&Param2=value%202",
        "/x?Param1=value1&Param2=value2",
    ],
)
def test_another_target_is_refused(target: str):
    with pytest.raises(Refused, match="canonical request"):
        _VERIFIER.verify(replace(_VALID, target=target), _NOW)


def test_order_and_spelling_of_a_query_do_not_matter():
    _VERIFIER.verify(replace(_VALID, target="/?%50aram1=value1&Param2=value%32"), _NOW)


@pytest.mark.parametrize("skew", [timedelta(minutes=5), -timedelta(minutes=5)])
def test_only_five_minutes(skew: timedelta):
    _VERIFIER.verify(_VALID, _NOW + skew)
    with pytest.raises(Refused, match="signed at"):
        _VERIFIER.verify(_VALID, _NOW + skew * 1.01)


@pytest.mark.parametrize("of", [{"access_key": "AKIDOTHER"}, {"region": "eu-west-1"}, {"service": "s3"}])
def test_another_scope_is_refused(of: dict):
    with pytest.raises(Refused, match="credential"):
        replace(_VERIFIER, **of).verify(_VALID, _NOW)


def test_another_secret_is_refused():
    with pytest.raises(Refused, match="canonical request"):
        replace(_VERIFIER, secret_key="another").verify(_VALID, _NOW)


@pytest.mark.parametrize(
    ("added", "why"),
    [
        (("X-Amz-Meta", "x"), "have to be signed"),
        (("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD"), "have to be signed"),
        (("X-Amz-Security-Token", "x"), "security token"),
        (("X-Amz-Date", "20150830T123600Z"), "2 headers x-amz-date"),
        (("Host", "another"), "canonical request"),
    ],
)
def test_a_header_that_was_added_is_refused(added: tuple[str, str], why: str):
    with pytest.raises(Refused, match=why):
        _VERIFIER.verify(replace(_VALID, headers=(*_VALID.headers, added)), _NOW)


@pytest.mark.parametrize(
    ("listed", "why"),
    [
        ("x-amz-date", "have to be signed"),
        ("x-amz-date;host", "not sorted"),
        ("host;host;x-amz-date", "repeats"),
        ("accept;host;x-amz-date", "did not arrive"),
    ],
)
def test_a_wrong_list_of_headers_is_refused(listed: str, why: str):
    with pytest.raises(Refused, match=why):
        _VERIFIER.verify(_signed(*_EXAMPLES["get-vanilla"], listed=listed), _NOW)


@pytest.mark.parametrize(
    "headers", [_HEADERS, _VALID.headers + _VALID.headers[-1:], (*_HEADERS, ("Authorization", "Basic x"))]
)
def test_no_signature_is_refused(headers):
    with pytest.raises(Refused):
        _VERIFIER.verify(replace(_VALID, headers=headers), _NOW)
