"""Records what stock MLflow makes of exported spans: `python -m tests.compare.record_spans`.

A test of the crate `spans` reads the recording. Each line is a case: the requests, the last
response, and for each trace its info, its spans as returned by `traces/get`, its spans as stored,
the columns in the database, and the downloaded file of spans if it is not composed of the stored
spans. To compare more random exports than the recording has, pass their number, a seed, and a
different file.
"""

import base64
import json
import os
import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import Any

import requests

from tests.compare.span_cases import Case, cases
from tests.support.servers import StockMlflow, stock_database

TO = Path(__file__).parents[2] / "shared/language/spans/tests/fixtures/stock.jsonl"

COLUMNS = ["span_id", "parent_span_id", "name", "type", "status", "start_time_unix_nano", "end_time_unix_nano"]
COLUMNS += ["model_name", "model_provider", "input_cost", "output_cost", "total_cost"]


def record(url: str, database: sqlite3.Connection, case: Case) -> dict[str, Any]:
    headers = {"x-mlflow-experiment-id": "0"}
    if case.content_type:
        headers["content-type"] = case.content_type
    if case.content_encoding:
        headers["content-encoding"] = case.content_encoding
    answers = [requests.post(f"{url}/v1/traces", data=body, headers=headers, timeout=60) for body in case.bodies]
    answer = answers[-1]
    made: dict[str, Any] = {"name": case.name, "content_type": case.content_type, "content_encoding": case.content_encoding}
    made["bodies"] = [_written(body) for body in case.bodies]
    made["status"] = answer.status_code
    made["answer"] = answer.json() if answer.status_code != 200 else None
    made["traces"] = []
    for trace in case.traces if answer.status_code == 200 else []:
        identity = f"tr-{trace}"
        wanted = {"trace_id": identity, "allow_partial": "true"}
        read = requests.get(f"{url}/api/3.0/mlflow/traces/get", params=wanted, timeout=60)
        file = requests.get(f"{url}/ajax-api/3.0/mlflow/get-trace-artifact", params={"request_id": identity}, timeout=60)
        query = f"SELECT {', '.join(COLUMNS)} FROM spans WHERE trace_id = ? ORDER BY span_id"
        rows = [dict(zip(COLUMNS, row)) for row in database.execute(query, (identity,))]
        stored = dict(database.execute("SELECT span_id, content FROM spans WHERE trace_id = ?", (identity,)))
        trace_read = read.json().get("trace", {})
        made["traces"].append({
            "trace_id": identity,
            "status": read.status_code,
            "info": trace_read.get("trace_info"),
            "spans": trace_read.get("spans"),
            "stored": [stored[row["span_id"]] for row in rows],
            "rows": rows,
        })
        ids = [_bytes_of(span["span_id"]).hex() for span in trace_read.get("spans", [])]
        text = file.content.decode()
        if text != '{"spans":[' + ",".join(stored[identity] for identity in ids) + "]}":
            made["traces"][-1]["file"] = text
    return made


def _bytes_of(encoded: str) -> bytes:
    return base64.b64decode(encoded)


def _written(body: bytes) -> dict[str, str]:
    try:
        return {"text": body.decode("ascii")}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(body).decode()}


def main(number: int = 60, seed: int = 1, to: Path = TO) -> None:
    # Prices come from the package, not from the internet.
    os.environ["MLFLOW_MODEL_CATALOG_URI"] = ""
    with tempfile.TemporaryDirectory() as directory:
        server = StockMlflow(Path(directory) / "stock")
        try:
            with sqlite3.connect(stock_database(Path(directory) / "stock"), timeout=30) as database:
                lines = [json.dumps(record(server.url, database, case), ensure_ascii=False) for case in cases(number, seed)]
        finally:
            server.stop()
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text("\n".join(lines) + "\n", "utf-8")
    print(len(lines), "cases")


if __name__ == "__main__":
    main(*(int(number) for number in sys.argv[1:3]), *(Path(path) for path in sys.argv[3:]))
