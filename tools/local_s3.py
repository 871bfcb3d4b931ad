"""S3 on this machine for `make watch-bucket`: an in-memory bucket, without verification of
signatures.

Its CORS rule is that of the template's bucket, for pages of the functions on port 9000.

Usage: python -m tools.local_s3 PORT BUCKET
"""

import sys
import threading
import urllib.request

from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends

from tools.s3_cors import LocalS3Server

_PAGES = ["http://127.0.0.1:9000", "http://localhost:9000"]
_RULE = {"AllowedOrigin": _PAGES, "AllowedMethod": ["GET", "PUT"], "AllowedHeader": "*", "ExposeHeader": "ETag", "MaxAgeSeconds": "3600"}


def main(port: str, bucket: str) -> None:
    server = LocalS3Server(ip_address="127.0.0.1", port=int(port), verbose=False)
    server.start()
    urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/{bucket}", method="PUT"), timeout=10).close()
    s3_backends[DEFAULT_ACCOUNT_ID]["aws"].put_bucket_cors(bucket, [_RULE])
    threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
