"""Next steps after a deployment."""

from collections.abc import Mapping
from typing import Any

from settings import Settings

_SIZE, _SWITCH = "MLFLOW_MULTIPART_UPLOAD_MINIMUM_FILE_SIZE", "MLFLOW_ENABLE_PROXY_MULTIPART_UPLOAD"
#: Settings of clients: a label, the first version that needs the settings, and the settings, newest
#: version first. With a minimum size of 1, all files bypass the API, which supports neither large
#: files nor text that is not UTF-8.
_FILES = [
    ("MLflow 3.18 and later", (3, 18), {}),
    ("3.15 to 3.17", (3, 15), {_SIZE: "1"}),
    ("older ones", (0,), {_SIZE: "1", _SWITCH: "true"}),
]


def of_files(version: str) -> dict[str, str]:
    """Returns the settings with which a client of this version can send files of any length and
    encoding without installing the project's package."""
    parts = tuple(int(part) for part in version.split(".")[:2])
    return next(settings for _, since, settings in _FILES if parts >= since)


def _lines_of_files() -> list[str]:
    said = {name: " ".join(f"{key}={value}" for key, value in settings.items()) for name, _, settings in _FILES}
    return [f"  {name:<26}{f'export {settings}' if settings else 'nothing more'}" for name, settings in said.items()]


def of(outputs: Mapping[str, str], settings: Settings, meta: Any) -> str:
    """Returns the tracking URIs, the settings of clients, and the next commands. `meta` describes a
    client of AWS in the stack's region.
    """
    command = settings.command("PARAMETERS")
    alarms = f"{command}AlarmTopic=arn:{meta.partition}:sns:{settings.region}:ACCOUNT:TOPIC"
    text = ["", f"The stack {settings.stack} is deployed.", "", "For programs with AWS credentials:", ""]
    text += ["  pip install ./clients/python", f"  export MLFLOW_TRACKING_URI={outputs['TrackingUri']} MLFLOW_TRACKING_AUTH=mlflow-serverless"]
    text += ["", "The package makes clients of every version send large files directly to the bucket."]
    for name, uri in (("Domain", "TrackingUri"), ("UsersDomain", "UsersUri")):
        if f"{name}Uri" in outputs:
            text += ["", f"{outputs[f'{name}Uri']} is equivalent to {outputs[uri]} once the name points to {outputs[f'{name}Target']}."]
    if "UsersUri" in outputs:
        text += ["", "For users, in a browser and as tracking URI:", "", f"  {outputs['UsersUri']}", ""]
        text += [f"  export MLFLOW_TRACKING_URI={outputs['UsersUri']} MLFLOW_TRACKING_TOKEN=...", "", "and for files of more than 4.5 MB, and texts that are not UTF-8", "", *_lines_of_files()]
        # The sign-in page is already public, but no user can sign in before there is an
        # administrator.
        following = [f"{settings.command('ADMIN')}NAME", "python examples/quickstart.py", alarms]
    else:
        following = ["python examples/quickstart.py", f"{command}Users=on", alarms]
    return "\n".join([*text, "", "Next:", "", *(f"  {number}. {command}" for number, command in enumerate(following, 1)), ""])


def of_data(outputs: Mapping[str, str]) -> str:
    """Returns what remains of a deleted stack, and how to delete it."""
    kept = [outputs[name] for name in ("TableName", "AccessTableName") if name in outputs]
    commands = [command for table in kept for command in (
        f"  aws dynamodb update-table --table-name {table} --no-deletion-protection-enabled",
        f"  aws dynamodb delete-table --table-name {table}",
    )]
    text = ["", "", "The tables and the bucket still exist, with all data. To delete them permanently:", "", *commands]
    if bucket := outputs.get("BucketName"):
        text += ["", f'and delete the bucket {bucket} with "Empty" and "Delete" in the S3 console.']
    return "\n".join([*text, ""])


def migration(outputs: Mapping[str, str], endpoint: str) -> str:
    """Returns the command that migrates the stack's tables to the layout of this version.
    `endpoint` is the URL of DynamoDB.
    """
    return f"mlflow-serverless migrate --dynamodb-endpoint {endpoint} --table {outputs['TableName']} --access-table {outputs['AccessTableName']}"
