"""A broken S3 server: it never responds, closes the connection early, or sends a response that is
not from S3.
"""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_PAGE = b"<!DOCTYPE html><html><title>Sign in to this network</title></html>"
#: The bytes that follow a request, by kind of failure. If they end with `...`, the connection stays
#: open.
ANSWERS = {
    "nothing": b"...",
    "the beginning of a head": b"HTTP/1.1 200 OK\r\nContent-Le...",
    "half a body": b'HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n<?xml version="1.0"?><ListBucketResult>...',
    "half a body and an end": b'HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n<?xml version="1.0"?><ListBucketResult>',
    "an end": b"",
    "a page": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s" % (len(_PAGE), _PAGE),
    "a page of a failed gateway": b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s" % (len(_PAGE), _PAGE),
    "something else": b"SSH-2.0-OpenSSH_9.2\r\n",
}


class BrokenS3:
    """Serves one request per connection, always with the same bytes."""

    def __init__(self, answer: bytes):
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://%s:%d" % self._listener.getsockname()
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.asked = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def environment(self) -> dict[str, str]:
        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION")
        return dict.fromkeys(names, "any") | {"AWS_ENDPOINT_URL_S3": self.url, "AWS_EC2_METADATA_DISABLED": "true"}

    def held(self) -> int:
        """Returns the number of connections that the other side keeps open."""
        with self._lock:
            return len(self._open)

    def stop(self) -> None:
        self._listener.close()
        with self._lock:
            for connection in self._open:
                connection.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with self._lock:
                    self._open.add(connection)
                threading.Thread(target=self._answer_one, args=(connection,), daemon=True).start()

    def _answer_one(self, connection: socket.socket) -> None:
        with suppress(OSError):
            # Reads the head of the request, and as much of the body as has arrived.
            connection.recv(65_536)
            self.asked += 1
            connection.sendall(self._answer.removesuffix(b"..."))
            if self._answer.endswith(b"..."):
                while connection.recv(1 << 20):
                    pass
            else:
                # Closes with a reset instead of an orderly end.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with self._lock:
            self._open.discard(connection)
        connection.close()


@contextmanager
def broken_s3(kind: str) -> Iterator[BrokenS3]:
    s3 = BrokenS3(ANSWERS[kind])
    try:
        yield s3
    finally:
        s3.stop()
