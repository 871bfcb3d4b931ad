"""Settings of a deployment, from samconfig.toml and the command line."""

import argparse
import os
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import boto3

from budget import Wanted, separate


@dataclass(frozen=True)
class Settings:
    """Settings of one deployment."""

    environment: str
    stack: str
    region: str | None
    parameters: dict[str, str]
    allowed: list[str]
    is_built: bool
    only_checks: bool
    budget: Wanted = Wanted()
    #: Role that CloudFormation assumes, instead of using the permissions of the caller.
    role: str | None = None

    @property
    def protects(self) -> bool:
        """Whether the tables get deletion protection once the stack is complete."""
        return self.parameters.get("DeletionProtection") != "false"

    def of_new_stack(self) -> dict[str, str]:
        """Returns the parameters of a new stack."""
        parameters = self.parameters | {"DeletionProtection": "false"}
        # Existing stacks keep their value, so that an update does not expose an API.
        if not parameters.keys() & {"Users", "Authorization", "AccessMode"}:
            parameters["Users"] = "on"
        return parameters

    def command(self, option: str) -> str:
        """Returns the beginning of the command that sets an option, to which the option's value
        is appended. The command differs between a checkout and an archive, in which everything
        is already built."""
        if self.is_built:
            return f"./deploy {self._environment('--environment ')}--{option.lower()} "
        # Commands that do not deploy are targets of their own.
        target = {"ADMIN": "admin NAME", "DELETE": "delete STACK"}.get(option, f"deploy {option}")
        command, _, variable = target.partition(" ")
        return f"make {command} {self._environment('ENVIRONMENT=')}{variable}="

    def _environment(self, option: str) -> str:
        return "" if self.environment == "default" else f"{option}{self.environment} "

    def as_arguments(self, is_new: bool) -> list[str]:
        """Returns the parameters for SAM. A new stack has no deletion protection, because a
        rollback cannot delete protected tables.
        """
        parameters = self.of_new_stack() if is_new else self.parameters
        role = ["--role-arn", self.role] if self.role else []
        return [*role, *(["--parameter-overrides", *(f"{name}={value}" for name, value in parameters.items())] if parameters else [])]


def read_settings(said: argparse.Namespace) -> Settings:
    """Reads samconfig.toml in the current directory."""
    config = tomllib.loads(Path("samconfig.toml").read_text())
    _know_region()
    if said.environment not in config or said.environment == "version":
        sys.exit(f"samconfig.toml has no environment {said.environment}. It has {', '.join(name for name in config if name != 'version')}.")
    of_environment = config[said.environment]
    kept = of_environment.get("deploy", {}).get("parameters", {}).get("parameter_overrides", [])
    pairs = dict(_pair(text) for text in [*(kept.split() if isinstance(kept, str) else kept), *said.parameters])
    parameters, wanted = separate(pairs)
    stack = of_environment["global"]["parameters"]["stack_name"]
    role = said.role_arn or of_environment.get("deploy", {}).get("parameters", {}).get("role_arn")
    return Settings(said.environment, stack, boto3.Session().region_name, parameters, said.allow, said.built, said.check, wanted, role)


def _know_region() -> None:
    """Copies AWS_REGION to AWS_DEFAULT_REGION, the only variable that boto3 and SAM read."""
    if region := os.environ.get("AWS_REGION"):
        os.environ["AWS_DEFAULT_REGION"] = region


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        sys.exit(f"{text} is not a parameter: use NAME=VALUE.")
    return name, value
