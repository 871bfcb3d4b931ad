"""Registers an MCP server and a skill as the user `cora`, loads or deletes them, with MLflow 3.18:
`registrations.py register DIRECTORY`, `registrations.py load DIRECTORY` and `registrations.py
delete`. DIRECTORY contains the skill.
"""

import sys
from pathlib import Path

import mlflow

_SERVER = "com.example/coras"
_SKILL = {"name": "review", "organization": "cora"}
_URI = "skills:/@cora/review"


def register(directory: str) -> None:
    remotes = [{"type": "streamable-http", "url": "https://mcp.example.com/"}]
    content = {"name": _SERVER, "version": "1.0.0", "description": "Cora's", "remotes": remotes}
    server = mlflow.genai.register_mcp_server(content, status="active", tools=[], create_access_endpoints_from_remotes=True)
    skill = mlflow.genai.register_skill(source=directory, organization="cora")
    assert (server.created_by, skill.created_by) == ("cora", "cora"), (server, skill)
    mlflow.MlflowClient().set_mcp_server_alias(_SERVER, "stable", "1.0.0")
    mlflow.MlflowClient().set_skill_alias(**_SKILL, alias="stable", version=skill.version)


def load(directory: str) -> None:
    found = mlflow.genai.get_mcp_server_version_by_alias(_SERVER, "stable")
    assert (found.version, found.server_json["description"]) == ("1.0.0", "Cora's"), found
    [endpoint] = mlflow.genai.search_mcp_access_endpoints(_SERVER)
    assert endpoint.url == "https://mcp.example.com/", endpoint
    assert [server.name for server in mlflow.genai.search_mcp_servers()] == [_SERVER]
    assert [skill.name for skill in mlflow.genai.search_skills()] == ["review"]
    pulled = Path(mlflow.genai.pull(f"{_URI}@stable", destination="pulled"))
    assert _files(pulled) == _files(Path(directory))


def delete() -> None:
    mlflow.genai.update_mcp_server_version(_SERVER, "1.0.0", status="deprecated")
    mlflow.genai.delete_mcp_server(_SERVER)
    mlflow.MlflowClient().delete_skill(**_SKILL)


def _files(directory: Path) -> dict[str, bytes]:
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


if __name__ == "__main__":
    {"register": register, "load": load, "delete": delete}[sys.argv[1]](*sys.argv[2:])
