"""An HTTP connection that uses little CPU time, so that the server is measured and not
the client.
"""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlsplit

_TIMEOUT_SECONDS = 300
_CHUNK = 65_536


class Connection:
    """A persistent connection for one thread. Each request is sent in one piece, and a response
    must have a length.
    """

    def __init__(self, url: str):
        parts = urlsplit(url)
        self._host = parts.netloc
        self._socket = socket.create_connection((parts.hostname, parts.port), _TIMEOUT_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def get(self, path: str) -> bytes:
        """Sends a GET, and returns the body of the response, whose status must be 200."""
        return self._exchange("GET", path, b"")

    def post(self, path: str, body: dict[str, Any]) -> bytes:
        """Sends JSON to a path of MLflow's API, and returns the body of the response, whose status
        must be 200.
        """
        return self._exchange("POST", f"/api/2.0/mlflow/{path}", json.dumps(body).encode())

    def send(self, path: str, body: bytes, headers: dict[str, str]) -> bytes:
        """Sends a body with the type in the headers, and returns the body of the response, whose
        status must be 200.
        """
        return self._exchange("POST", path, body, headers)

    def close(self) -> None:
        self._socket.close()

    def _exchange(self, method: str, path: str, body: bytes, headers: dict[str, str] | None = None) -> bytes:
        named = {"Host": self._host} | (headers or {"Content-Type": "application/json"})
        head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in named.items())
        self._socket.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        received = b""
        while b"\r\n\r\n" not in received:
            received += self._received()
        head, _, start = received.partition(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        lengths = [int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length:")]
        if not lengths:
            raise RuntimeError(f"the response to {path} has no length: {head[:300]!r}")
        parts, missing = [start], lengths[0] - len(start)
        while missing > 0:
            parts.append(self._received())
            missing -= len(parts[-1])
        answer = b"".join(parts)
        if lines[0].split(b" ")[1] != b"200":
            raise RuntimeError(f"{path} returned {lines[0].decode()}: {answer[:300]!r}")
        return answer

    def _received(self) -> bytes:
        received = self._socket.recv(_CHUNK)
        if not received:
            raise ConnectionError("the server has closed the connection")
        return received


#: A request that is sent over a connection.
Call = Callable[[Connection], Any]


def calls_a_second(url: str, calls: list[Call], warm_up: float, seconds: float) -> float:
    """Repeats each of the calls over its own connection, all concurrently, and returns the number
    of responses per second.
    """
    begin = threading.Barrier(len(calls) + 1)
    counted: list[int] = []
    failed: list[BaseException] = []

    def repeat(call: Call) -> None:
        connection = Connection(url)
        begin.wait()
        start, count = time.monotonic(), 0
        try:
            while (now := time.monotonic()) < start + warm_up + seconds:
                call(connection)
                # Counts calls that began after the warm-up.
                count += now >= start + warm_up
            counted.append(count)
        except BaseException as error:
            failed.append(error)
            raise
        finally:
            connection.close()

    threads = [threading.Thread(target=repeat, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    begin.wait()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return sum(counted) / seconds


def for_each(url: str, items: Iterable[Any], act: Callable[[Connection, Any], Any], connections: int) -> None:
    """Calls `act` for each item, over one of several connections, in any order. The first failure
    stops it.
    """
    rest, failed = iter(items), []
    taking = threading.Lock()

    def client() -> None:
        connection = Connection(url)
        try:
            while not failed:
                with taking:
                    item = next(rest, None)
                if item is None:
                    return
                act(connection, item)
        except BaseException as error:
            failed.append(error)
            raise
        finally:
            connection.close()

    threads = [threading.Thread(target=client) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
