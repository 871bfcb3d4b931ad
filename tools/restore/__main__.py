"""Restores both tables of a stack to the same point in time, under new names.

Run by `make restore STACK=mlflow AT=2030-01-31T12:00:00Z`. The stack and its tables are not
changed. The new tables are ready for use: they have a stream, TTL, backups and deletion protection,
but no sessions or tokens. The program lists what was restored, and prints how to deploy on it,
or deploys (`--into`). Steps that are complete are not repeated, so an interrupted run can be
started again.
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
    # boto3 only reads the older AWS_DEFAULT_REGION.
    if region := os.environ.get("AWS_REGION"):
        os.environ["AWS_DEFAULT_REGION"] = region
    moment = None
    try:
        source = boto3.client("cloudformation").describe_stacks(StackName=said.stack)["Stacks"][0]
        outputs = {one["OutputKey"]: one["OutputValue"] for one in source["Outputs"]}
        client = boto3.client("dynamodb")
        names = {DATA: outputs["TableName"], ACCESS: outputs["AccessTableName"]}
        moment = moment_of(client, names.values(), said.at)
        print(f"Restoring both tables of {said.stack} to {moment.isoformat()}. This can take from minutes to hours.", flush=True)
        made = restore(client, said.stack, names, moment)
    except (BotoCoreError, ClientError, ValueError) as error:
        sys.exit(f"Not restored: {error}" + (f"\nTo continue, run it again with AT={moment.isoformat()}" if moment else ""))
    _end_sessions(said.program, client.meta.endpoint_url, made)
    for of, table in (("data", made.data), ("access", made.access)):
        print(f"\nRows of {table}, by the types in docs/reference/table.md:\n")
        for row, count in sorted(counted(client, table).items()):
            print(f"  {count:>12,}  {row}")
        if of == "data":
            print("\nThe index may lack changes of the last seconds before that point in time, see step 2 below.")
    _go_on(said, {one["ParameterKey"]: one["ParameterValue"] for one in source["Parameters"]}, outputs, made, client.meta.endpoint_url)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="restore", description="Restores both tables of a stack to the same point in time, under new names.")
    parser.add_argument("--stack", required=True, help="the stack whose tables are restored")
    parser.add_argument("--at", required=True, help="point in time, such as 2030-01-31T12:00:00Z, or latest")
    parser.add_argument("--program", default="mlflow-serverless", help="path of mlflow-serverless, which ends sessions and tokens")
    parser.add_argument("--into", metavar="ENVIRONMENT", help="deploy this section of samconfig.toml on the new tables: default, dev or prod")
    parser.add_argument("--built", action="store_true", help="with --into: use functions and a user interface that are already built")
    return parser.parse_args()


def _end_sessions(program: str, endpoint: str, made: Restored) -> None:
    """Ends all sessions and tokens in the restored tables, including those that were ended or
    revoked after the restored point in time.
    """
    done = subprocess.run([program, "admin", "end-sessions", *_place(endpoint, made)])
    if done.returncode:
        sys.exit("The tables are restored, but their sessions and tokens are still valid. Do not deploy on them until ending these has succeeded.")


def _place(endpoint: str, made: Restored) -> list[str]:
    return ["--dynamodb-endpoint", endpoint, "--table", made.data, "--access-table", made.access]


def _go_on(said: argparse.Namespace, kept: dict[str, str], outputs: dict[str, str], made: Restored, endpoint: str) -> None:
    parameters = {"ExistingTable": made.data, "ExistingTableStream": made.stream, "ExistingAccessTable": made.access}
    reindex = f"{said.program} reindex --dynamodb-endpoint {endpoint} --table {made.data}"
    environments = {name: part["global"]["parameters"]["stack_name"] for name, part in _config().items()}
    own = next((name for name, stack in environments.items() if stack == said.stack), None)
    own_parameters = dict(parameters)
    if kept.get("MaxReadUnits", "0") != "0":
        # The stack only sets limits on tables that it has created.
        own_parameters |= {"MaxReadUnits": "0", "MaxWriteUnits": "0"}
        print("\nThe stack cannot limit the capacity units of restored tables. Set the limits with aws dynamodb update-table --on-demand-throughput.")
    # The stack's own tables are removed from the stack, but not deleted.
    allowed = [name for name in (DATA, ACCESS) if not kept.get(f"Existing{name}")]
    others = parameters | {name: kept[name] for name in ("TableKey", "BucketKey") if kept.get(name)}
    others["ArtifactRoot"] = kept.get("ArtifactRoot") or f"s3://{outputs['BucketName']}"
    # Two tables then share the same files, so a file that was deleted through one table may be in
    # use by the other.
    others["Housekeeping"] = "off"
    if said.into:
        if said.into not in environments:
            sys.exit(f"samconfig.toml has no environment {said.into}. It has {', '.join(environments)}.")
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
    print("\nNext:\n\n  1. Deploy on these tables, either the same stack, or another one for inspection:\n")
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
