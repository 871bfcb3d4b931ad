"""S3 on this machine: moto's server, which stores objects in memory and in temporary files, and
applies the CORS rules of each bucket.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from botocore.config import Config
from botocore.session import Session
from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends
from samtranslator.yaml_helper import yaml_parse

from tools.s3_cors import LocalS3Server

_TEMPLATE = Path(__file__).resolve().parents[2] / "template.yaml"
REGION = "eu-test-1"
KEY_ID, SECRET = "AKIDLOCAL", "secret/of+local"


@dataclass(frozen=True)
class LocalS3:
    """A running S3 server."""

    url: str

    @property
    def environment(self) -> Mapping[str, str]:
        """Returns the environment variables that make a program use this server."""
        return {
            "AWS_ENDPOINT_URL_S3": self.url,
            "AWS_ACCESS_KEY_ID": KEY_ID,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def client(self) -> Any:
        """Returns AWS's own client, for checking the contents of buckets."""
        return _client(self.url)

    def make_bucket(self, name: str) -> "Bucket":
        """Creates an empty bucket."""
        self.client().create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})
        return Bucket(self, name)


@dataclass(frozen=True)
class Bucket:
    """A bucket on the local server."""

    s3: LocalS3
    name: str

    def keys(self) -> set[str]:
        """Returns the keys of all objects."""
        pages = self.s3.client().get_paginator("list_objects_v2").paginate(Bucket=self.name)
        return {found["Key"] for page in pages for found in page.get("Contents", [])}

    def unfinished(self) -> list[str]:
        """Returns the keys of multipart uploads that were neither completed nor aborted."""
        found = self.s3.client().list_multipart_uploads(Bucket=self.name)
        return [upload["Key"] for upload in found.get("Uploads", [])]

    def get(self, key: str) -> bytes:
        return self.s3.client().get_object(Bucket=self.name, Key=key)["Body"].read()

    def put_many(self, keys: Iterable[str]) -> None:
        """Creates empty objects quickly, by bypassing HTTP."""
        backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
        for key in keys:
            backend.put_object(self.name, key, b"")

    def allow_pages(self, origins: Sequence[str]) -> None:
        """Applies the CORS rule of the template's bucket, with these origins in place of those of
        the APIs.
        """
        bucket = yaml_parse(_TEMPLATE.read_text())["Resources"]["ArtifactBucket"]["Properties"]
        [rule] = bucket["CorsConfiguration"]["CorsRules"]
        said = {
            "AllowedOrigins": list(origins),
            "AllowedMethods": rule["AllowedMethods"],
            "AllowedHeaders": rule["AllowedHeaders"],
            "ExposeHeaders": rule["ExposedHeaders"],
            "MaxAgeSeconds": rule["MaxAge"],
        }
        self.s3.client().put_bucket_cors(Bucket=self.name, CORSConfiguration={"CORSRules": [said]})

    def put(self, key: str, content: bytes = b"") -> None:
        self.s3.client().put_object(Bucket=self.name, Key=key, Body=content)


@cache
def _client(url: str) -> Any:
    return Session().create_client(
        "s3",
        REGION,
        endpoint_url=url,
        aws_access_key_id=KEY_ID,
        aws_secret_access_key=SECRET,
        config=Config(s3={"addressing_style": "path"}),
    )


@contextmanager
def local_s3() -> Iterator[LocalS3]:
    """Runs the server in threads of this process, on any free port."""
    server = LocalS3Server(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield LocalS3(f"http://{host}:{port}")
    finally:
        server.stop()
