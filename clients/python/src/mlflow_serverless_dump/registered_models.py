"""Registered models and prompts, with their versions and aliases."""

from collections.abc import Iterator

from mlflow.entities.model_registry import ModelVersion, RegisteredModel

from mlflow_serverless_dump.context import Context
from mlflow_serverless_dump.ids import optional_run_id
from mlflow_serverless_dump.requests import in_parallel, is_unsupported, pages

_TABLES = ("registered_model_aliases", "registered_model_tags", "model_version_tags", "model_versions", "registered_models")
_PROMPTS = "tags.`mlflow.prompt.is_prompt` = 'true'"
_PAGE_SIZE = 100


def dump(context: Context) -> None:
    """Dumps the registry, one transaction per model. It replaces what an earlier dump has written."""
    seen: set[str] = set()
    for kind, model in _models(context):
        if model.name in seen:
            continue
        seen.add(model.name)
        try:
            _dump_model(context, kind, model)
        except Exception as error:
            context.database.rollback()
            context.report.failed(kind.removesuffix("s"), model.name, error)


def _models(context: Context) -> Iterator[tuple[str, RegisteredModel]]:
    search = context.client.search_registered_models
    for page in pages(search, max_results=_PAGE_SIZE):
        yield from (("registered models", model) for model in page)
    try:
        for page in pages(search, filter_string=_PROMPTS, max_results=_PAGE_SIZE):
            yield from (("prompts", model) for model in page)
    except Exception as error:
        if is_unsupported(error):
            context.report.note("the source does not support prompts")
        else:
            context.report.failed("prompts", "of the registry", error)


def _dump_model(context: Context, kind: str, model: RegisteredModel) -> None:
    database = context.database
    owner = {"workspace": "default", "name": model.name}
    for table in _TABLES:
        database.delete(table, **owner)
    quote = '"' if "'" in model.name else "'"
    condition = f"name = {quote}{model.name}{quote}"
    if kind == "prompts":
        condition += f" AND {_PROMPTS}"
    aliases = dict(model.aliases)
    for page in pages(context.client.search_model_versions, filter_string=condition, max_results=_PAGE_SIZE):

        def read(version: ModelVersion) -> tuple[ModelVersion, str]:
            # Only the single version has all tags and aliases in every registry. The client itself
            # refuses to return versions of prompts.
            store = context.client._get_registry_client().store
            return store.get_model_version(version.name, version.version), store.get_model_version_download_uri(version.name, version.version)

        for _, result in in_parallel(context.pool, context.window, read, page):
            if isinstance(result, Exception):
                raise result
            version, location = result
            aliases |= dict.fromkeys(version.aliases or [], version.version)
            _write_version(context, owner, version, location)
    database.insert("registered_model_aliases", [owner | {"alias": alias, "version": int(version)} for alias, version in aliases.items()])
    database.insert("registered_model_tags", [owner | {"key": key, "value": value} for key, value in model._tags.items()])
    times = {"creation_time": model.creation_timestamp, "last_updated_time": model.last_updated_timestamp}
    database.insert("registered_models", [owner | times | {"description": model.description}])
    database.commit()
    context.report.written[kind] += 1


def _write_version(context: Context, owner: dict, version: ModelVersion, location: str) -> None:
    number = {"version": int(version.version)}
    context.database.insert("model_version_tags", [owner | number | {"key": key, "value": value} for key, value in version.tags.items()])
    row = owner | number | {
        "creation_time": version.creation_timestamp,
        "last_updated_time": version.last_updated_timestamp,
        "description": version.description,
        "user_id": version.user_id or None,
        "current_stage": version.current_stage or "None",
        "source": version.source,
        "storage_location": location,
        "run_id": optional_run_id(version.run_id),
        "run_link": version.run_link or None,
        "status": version.status,
        "status_message": version.status_message or None,
    }
    context.database.insert("model_versions", [row])
    context.report.written["model versions"] += 1
