"""Tests of the local S3, which has to apply the CORS rules of a bucket like S3."""

import pytest
import requests
from moto.s3.models import CorsRule

from tests.support.s3 import Bucket, LocalS3
from tools.s3_cors import first

_PAGE, _OTHER = "https://a1.execute-api.eu-1.amazonaws.com", "https://evil.example"


@pytest.fixture
def bucket(s3: LocalS3, request: pytest.FixtureRequest) -> Bucket:
    bucket = s3.make_bucket(request.node.name.replace("_", "-").lower()[:60])
    bucket.put("file", b"content")
    return bucket


def _url(bucket: Bucket, action: str = "get_object") -> str:
    return bucket.s3.client().generate_presigned_url(action, {"Bucket": bucket.name, "Key": "file"})


def _for_pages(answer: requests.Response) -> dict[str, str]:
    return {name.lower(): value for name, value in answer.headers.items() if name.lower().startswith("access-control-")}


def _preflight(bucket: Bucket, origin: str, method: str, headers: str = "") -> requests.Response:
    asked = {"Origin": origin, "Access-Control-Request-Method": method}
    asked |= {"Access-Control-Request-Headers": headers} if headers else {}
    return requests.options(f"{bucket.s3.url}/{bucket.name}/file", headers=asked, timeout=60)


def test_pages_of_the_api_read_and_send_files_and_no_others_do(bucket: Bucket):
    bucket.allow_pages([_PAGE])
    url = _url(bucket)
    read = requests.get(url, headers={"Origin": _PAGE}, timeout=60)
    allowed = _for_pages(read)
    assert (read.content, allowed["access-control-allow-origin"], allowed["access-control-expose-headers"]) == (b"content", _PAGE, "ETag")
    assert "Origin" in read.headers["Vary"]
    # The bucket responds, but the browser withholds the response from the page.
    for headers in ({"Origin": _OTHER}, {}):
        foreign = requests.get(url, headers=headers, timeout=60)
        assert (foreign.status_code, _for_pages(foreign)) == (200, {}), headers
    assert _for_pages(requests.put(_url(bucket, "put_object"), b"new", headers={"Origin": _PAGE}, timeout=60))["access-control-allow-origin"] == _PAGE
    assert _for_pages(requests.delete(_url(bucket, "delete_object"), headers={"Origin": _PAGE}, timeout=60)) == {}

    sends = _preflight(bucket, _PAGE, "PUT", "Content-Type, X-Any")
    said = _for_pages(sends)
    assert (sends.status_code, said["access-control-allow-origin"], said["access-control-max-age"]) == (200, _PAGE, "3600")
    assert (said["access-control-allow-methods"], said["access-control-allow-headers"]) == ("GET, PUT", "content-type, x-any")
    for origin, method in [(_OTHER, "PUT"), (_PAGE, "DELETE"), (_PAGE, "POST"), (_PAGE + ".evil.example", "GET"), ("null", "GET")]:
        refused = _preflight(bucket, origin, method)
        assert (refused.status_code, _for_pages(refused)) == (403, {}), (origin, method)
        assert "CORSResponse: This CORS request is not allowed" in refused.text


def test_without_a_rule_no_page_does_anything(bucket: Bucket):
    refused = _preflight(bucket, _PAGE, "GET")
    assert (refused.status_code, "CORS is not enabled for this bucket" in refused.text) == (403, True)
    read = requests.get(_url(bucket), headers={"Origin": _PAGE}, timeout=60)
    assert (read.status_code, _for_pages(read)) == (200, {})
    assert requests.options(f"{bucket.s3.url}/{bucket.name}/file", timeout=60).status_code == 400


@pytest.mark.parametrize(
    ("origins", "headers", "asked", "is_allowed"),
    [
        (["*"], ["*"], ["content-type", "x-a"], True),
        (["https://*.example"], [], [], True),
        (["https://*.example"], [], ["content-type"], False),
        (["https://a.example"], ["Content-*"], ["content-type"], True),
        (["https://a.example"], ["content-*"], ["content-type", "x-a"], False),
        (["http://a.example"], ["*"], [], False),
        (["https://a.exampl."], ["*"], [], False),
    ],
)
def test_an_asterisk_is_any_text(origins: list[str], headers: list[str], asked: list[str], is_allowed: bool):
    rule = CorsRule(["GET"], origins, headers)
    assert (first([rule], "https://a.example", "GET", asked) is rule) == is_allowed
