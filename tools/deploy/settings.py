"""What to deploy: of samconfig.toml and of the command line."""

import argparse
import os
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import boto3


@dataclass(frozen=True)
class Settings:
    """One deployment."""

    environment: str
    stack: str
    region: str | None
    parameters: dict[str, str]
    allowed: list[str]
    is_built: bool
    only_checks: bool

    @property
    def protects(self) -> bool:
        """Whether the tables are to be protected once the stack stands."""
        return self.parameters.get("DeletionProtection") != "false"

    def of_new_stack(self) -> dict[str, str]:
        """The parameters for a stack that is not there yet."""
        parameters = self.parameters | {"DeletionProtection": "false"}
        # Stacks of before keep their own answer: no API opens by an update.
        if not parameters.keys() & {"Users", "Authorization", "AccessMode"}:
            parameters["Users"] = "on"
        return parameters

    def command(self, option: str) -> str:
        """How the operator calls this program: from a checkout, or in an archive, where all is built."""
        return f"./deploy --{option.lower()} " if self.is_built else f"make deploy {option}="

    def as_arguments(self, is_new: bool) -> list[str]:
        """The parameters for SAM. CloudFormation takes back what it could not make, but no table that is protected."""
        parameters = self.of_new_stack() if is_new else self.parameters
        return ["--parameter-overrides", *(f"{name}={value}" for name, value in parameters.items())] if parameters else []


def read_settings(said: argparse.Namespace) -> Settings:
    """Reads samconfig.toml in the current directory."""
    config = tomllib.loads(Path("samconfig.toml").read_text())
    _know_region()
    if said.environment not in config or said.environment == "version":
        sys.exit(f"samconfig.toml has no environment {said.environment}: it has {', '.join(name for name in config if name != 'version')}.")
    of_environment = config[said.environment]
    kept = of_environment.get("deploy", {}).get("parameters", {}).get("parameter_overrides", [])
    parameters = dict(_pair(text) for text in [*(kept.split() if isinstance(kept, str) else kept), *said.parameters])
    stack = of_environment["global"]["parameters"]["stack_name"]
    return Settings(said.environment, stack, boto3.Session().region_name, parameters, said.allow, said.built, said.check)


def _know_region() -> None:
    """boto3 and SAM know this variable by its older name alone; everything else of AWS knows this one."""
    if region := os.environ.get("AWS_REGION"):
        os.environ["AWS_DEFAULT_REGION"] = region


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        sys.exit(f"{text} is no parameter: say NAME=VALUE.")
    return name, value
