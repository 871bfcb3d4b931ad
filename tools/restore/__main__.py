"""Restores both tables of a stack to one moment, under new names: `make restore STACK=mlflow AT=2030-01-31T12:00:00Z`.

It leaves the stack and its tables as they are. The new tables are complete: with a stream, TTL, backups and protection, and with no session or token of
before. It lists what came back, and says how to deploy on it, or does so (`--into`). What it has done already is not done twice, so that a call that was
cut off is made again.
"""

import argparse
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from inventory import counted
from tables import ACCESS, DATA, Restored, moment_of, restore

_DEPLOY = Path(__file__).parents[1] / "deploy"


def main() -> None:
    said = _arguments()
    # boto3 knows this variable by its older name alone.
    if region := os.environ.get("AWS_REGION"):
        os.environ["AWS_DEFAULT_REGION"] = region
    moment = None
    try:
        source = boto3.client("cloudformation").describe_stacks(StackName=said.stack)["Stacks"][0]
        outputs = {one["OutputKey"]: one["OutputValue"] for one in source["Outputs"]}
        client = boto3.client("dynamodb")
        names = {DATA: outputs["TableName"], ACCESS: outputs["AccessTableName"]}
        moment = moment_of(client, names.values(), said.at)
        print(f"Restoring both tables of {said.stack} to {moment.isoformat()}. That takes from minutes to hours.", flush=True)
        made = restore(client, said.stack, names, moment)
    except (BotoCoreError, ClientError, ValueError) as error:
        sys.exit(f"Not restored: {error}" + (f"\nTo go on, call it again with AT={moment.isoformat()}" if moment else ""))
    _end_sessions(said.program, client.meta.endpoint_url, made)
    for of, table in (("data", made.data), ("access", made.access)):
        print(f"\n{table} has, of the rows in docs/reference/table.md:\n")
        for row, count in sorted(counted(client, table).items()):
            print(f"  {count:>12,}  {row}")
        if of == "data":
            print("\nChanges of the last seconds before that moment may be missing in the index: step 2 below.")
    _go_on(said, {one["ParameterKey"]: one["ParameterValue"] for one in source["Parameters"]}, outputs, made, client.meta.endpoint_url)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="restore", description="Restores both tables of a stack to one moment, under new names.")
    parser.add_argument("--stack", required=True, help="the stack whose tables are restored")
    parser.add_argument("--at", required=True, help="the moment, such as 2030-01-31T12:00:00Z, or latest")
    parser.add_argument("--program", default="mlflow-serverless", help="the program mlflow-serverless, which ends sessions and tokens")
    parser.add_argument("--into", metavar="ENVIRONMENT", help="deploy this part of samconfig.toml on the new tables: default, dev or prod")
    parser.add_argument("--built", action="store_true", help="with --into: the functions and the user interface are built")
    return parser.parse_args()


def _end_sessions(program: str, endpoint: str, made: Restored) -> None:
    """They are those of that moment: also those that were ended, revoked or taken from somebody since."""
    done = subprocess.run([program, "admin", "end-sessions", *_place(endpoint, made)])
    if done.returncode:
        sys.exit("The tables are restored, but sessions and tokens in them have not ended. Deploy on them only after that has worked.")


def _place(endpoint: str, made: Restored) -> list[str]:
    return ["--dynamodb-endpoint", endpoint, "--table", made.data, "--access-table", made.access]


def _go_on(said: argparse.Namespace, kept: dict[str, str], outputs: dict[str, str], made: Restored, endpoint: str) -> None:
    parameters = {"ExistingTable": made.data, "ExistingTableStream": made.stream, "ExistingAccessTable": made.access}
    reindex = f"cargo run --release --bin mlflow-serverless -- reindex --dynamodb-endpoint {endpoint} --table {made.data}"
    environments = {name: part["global"]["parameters"]["stack_name"] for name, part in _config().items()}
    own = next((name for name, stack in environments.items() if stack == said.stack), None)
    own_parameters = dict(parameters)
    if kept.get("MaxReadUnits", "0") != "0":
        # The stack bounds no tables that it did not make.
        own_parameters |= {"MaxReadUnits": "0", "MaxWriteUnits": "0"}
        print("\nThe stack bounds the units of its own tables. It cannot bound these: do so by aws dynamodb update-table --on-demand-throughput.")
    # Its own tables leave the stack, and stay.
    allowed = [name for name in (DATA, ACCESS) if not kept.get(f"Existing{name}")]
    others = parameters | {name: kept[name] for name in ("TableKey", "BucketKey") if kept.get(name)}
    others["ArtifactRoot"] = kept.get("ArtifactRoot") or f"s3://{outputs['BucketName']}"
    # Two tables then have the same files: what one has deleted may be in use by the other.
    others["Housekeeping"] = "off"
    if said.into:
        if said.into not in environments:
            sys.exit(f"samconfig.toml has no environment {said.into}: it has {', '.join(environments)}.")
        command = [sys.executable, str(_DEPLOY), "--environment", said.into, *(["--built"] if said.built else [])]
        if said.into == own:
            command += ["--parameters", *_pairs(own_parameters), *(["--allow", *allowed] if allowed else [])]
        else:
            command += ["--parameters", *_pairs(others)]
        if status := subprocess.run(command).returncode:
            sys.exit(status)
        print(f"Then: {reindex}")
        return
    allow = f"ALLOW='{' '.join(allowed)}' " if allowed else ""
    print("\nNext:\n\n  1. Deploy on these tables, the same stack or another one, to look first:\n")
    if own:
        print(f"       make deploy ENVIRONMENT={own} {allow}PARAMETERS='{' '.join(_pairs(own_parameters))}'")
    print(f"       make deploy ENVIRONMENT=dev PARAMETERS='{' '.join(_pairs(others))}'")
    print(f"\n  2. {reindex}\n")


def _pairs(parameters: dict[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in parameters.items()]


def _config() -> dict[str, dict]:
    config = tomllib.loads(Path("samconfig.toml").read_text())
    return {name: part for name, part in config.items() if name != "version"}


if __name__ == "__main__":
    main()
