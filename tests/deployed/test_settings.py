"""Tests the parameters that `make deploy` passes to SAM, for new and existing stacks, and the
settings that it prints for clients.
"""

import argparse
import sys

import pytest

from .emulator import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tools/deploy"))
import advice  # noqa: E402
from settings import Settings, read_settings  # noqa: E402


def _arguments(parameters: dict[str, str], is_new: bool) -> set[str]:
    settings = Settings("default", "mlflow", "eu-central-1", parameters, [], False, False)
    return set(settings.as_arguments(is_new))


def test_a_new_stack_has_users_and_no_protected_table_yet():
    assert _arguments({}, is_new=True) == {"--parameter-overrides", "Users=on", "DeletionProtection=false"}


@pytest.mark.parametrize("said", [{"Users": "off"}, {"Authorization": "NONE"}, {"AccessMode": "basic"}])
def test_an_operator_who_says_how_callers_are_admitted_is_taken_at_his_word(said: dict[str, str]):
    assert "Users=on" not in _arguments(said, is_new=True)


def test_a_stack_that_exists_keeps_its_parameters():
    assert _arguments({}, is_new=False) == set()
    assert _arguments({"Workspaces": "on"}, is_new=False) == {"--parameter-overrides", "Workspaces=on"}


def test_the_region_is_known_by_either_variable(monkeypatch: pytest.MonkeyPatch):
    """boto3 itself reads only the older variable."""
    said = argparse.Namespace(environment="dev", parameters=[], allow=[], built=True, check=True)
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.delenv("AWS_REGION", raising=False)
    assert read_settings(said).region == "us-east-1"
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    assert read_settings(said).region == "eu-central-1"


_SIZE, _SWITCH = "MLFLOW_MULTIPART_UPLOAD_MINIMUM_FILE_SIZE", "MLFLOW_ENABLE_PROXY_MULTIPART_UPLOAD"


@pytest.mark.parametrize(
    "version, names",
    [("4.0.0", []), ("3.18.0", []), ("3.17.2", [_SIZE]), ("3.15.0", [_SIZE]), ("3.14.0", [_SIZE, _SWITCH]), ("2.22.4", [_SIZE, _SWITCH])],
)
def test_clients_of_each_age_are_told_what_to_set(version: str, names: list[str]):
    settings = advice.of_files(version)
    assert list(settings) == names
    outputs = {"TableName": "t", "AccessTableName": "a", "TrackingUri": "https://signed", "UsersUri": "https://users"}
    lines = advice.of(outputs, "mlflow", "eu-central-1", "make deploy PARAMETERS=").splitlines()
    assert not settings or any(line.endswith("export " + " ".join(f"{name}={value}" for name, value in settings.items())) for line in lines)


def test_the_next_command_is_that_of_the_caller():
    from_sources = Settings("default", "mlflow", "eu-central-1", {}, [], is_built=False, only_checks=False)
    in_archive = Settings("default", "mlflow", "eu-central-1", {}, [], is_built=True, only_checks=False)
    assert f"{from_sources.command('PARAMETERS')}Users=on" == "make deploy PARAMETERS=Users=on"
    assert f"{in_archive.command('PARAMETERS')}Users=on" == "./deploy --parameters Users=on"
