"""A model behind OpenAI's API, served by the test process."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_USAGE = {"prompt_tokens": 11, "completion_tokens": 4, "total_tokens": 15}
_HEAD = {"id": "chatcmpl-1", "created": 1_700_000_000, "model": "gpt-4o-mini"}


@contextmanager
def played_model() -> Iterator[str]:
    """Yields the URL of a model, which is served until the context ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


class _Model(BaseHTTPRequestHandler):
    """Answers each chat with the same text, complete or as a stream. Calls a tool if one is
    offered.
    """

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if asked["messages"][-1]["content"] == "fail":
            return self._send(400, "application/json", json.dumps({"error": {"message": "no", "code": "bad"}}))
        if asked.get("stream"):
            return self._send(200, "text/event-stream", _stream(asked))
        message = {"role": "assistant", "content": "a platform"}
        if asked.get("tools"):
            call = {"id": "call-1", "type": "function", "function": {"name": "look_up", "arguments": '{"word": "MLflow"}'}}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        answer = {**_HEAD, "object": "chat.completion", "choices": [choice], "usage": _USAGE}
        return self._send(200, "application/json", json.dumps(answer))

    def _send(self, status: int, content_type: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Suppresses the log."""


def _stream(asked: dict) -> str:
    pieces = [{"role": "assistant", "content": "a "}, {"content": "platform"}]
    chunks = [_chunk([{"index": 0, "delta": piece, "finish_reason": None}]) for piece in pieces]
    chunks.append(_chunk([{"index": 0, "delta": {}, "finish_reason": "stop"}]))
    if asked.get("stream_options", {}).get("include_usage"):
        chunks.append({**_chunk([]), "usage": _USAGE})
    events = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
    return events + "data: [DONE]\n\n"


def _chunk(choices: list[dict]) -> dict:
    return {**_HEAD, "object": "chat.completion.chunk", "choices": choices}
