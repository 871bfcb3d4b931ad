"""S3 on this machine for `make watch-bucket`: a bucket in memory, gone at the end. It checks no signatures.

Usage: local_s3.py PORT BUCKET
"""

import sys
import threading
import urllib.request

from moto.server import ThreadedMotoServer


def main(port: str, bucket: str) -> None:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=int(port), verbose=False)
    server.start()
    urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/{bucket}", method="PUT"), timeout=10).close()
    threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
