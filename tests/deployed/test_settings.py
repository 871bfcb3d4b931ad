"""Tests the parameters that `make deploy` passes to SAM, for new and existing stacks, and the
settings that it prints for clients.
"""

import argparse
import sys
from pathlib import Path

import boto3
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
    """Checks both variables, because boto3 itself reads only the older one."""
    said = argparse.Namespace(environment="dev", parameters=[], allow=[], built=True, check=True, role_arn=None)
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
    lines = _advice(outputs).splitlines()
    assert not settings or any(line.endswith("export " + " ".join(f"{name}={value}" for name, value in settings.items())) for line in lines)


def _settings(is_built: bool, environment: str = "default", region: str = "eu-central-1") -> Settings:
    return Settings(environment, "mlflow", region, {}, [], is_built, only_checks=False)


def _advice(outputs: dict[str, str], is_built: bool = True, region: str = "eu-central-1") -> str:
    return advice.of(outputs, _settings(is_built, region=region), boto3.client("dynamodb", region_name=region).meta)


def test_the_next_command_is_that_of_the_caller():
    from_sources, in_archive = _settings(is_built=False), _settings(is_built=True)
    assert f"{from_sources.command('PARAMETERS')}Users=on" == "make deploy PARAMETERS=Users=on"
    assert f"{in_archive.command('PARAMETERS')}Users=on" == "./deploy --parameters Users=on"
    assert f"{from_sources.command('ADMIN')}ann" == "make admin NAME=ann"
    assert f"{in_archive.command('ADMIN')}ann" == "./deploy --admin ann"


def test_the_next_command_is_for_the_same_environment():
    assert f"{_settings(False, 'dev').command('PARAMETERS')}Users=on" == "make deploy ENVIRONMENT=dev PARAMETERS=Users=on"
    assert f"{_settings(False, 'dev').command('ADMIN')}ann" == "make admin ENVIRONMENT=dev NAME=ann"
    assert f"{_settings(True, 'dev').command('ADMIN')}ann" == "./deploy --environment dev --admin ann"


_OUTPUTS = {"TableName": "t", "AccessTableName": "a", "TrackingUri": "https://signed", "UsersUri": "https://users"}


@pytest.mark.parametrize("is_built", [True, False])
def test_the_first_administrator_needs_neither_rust_nor_sources(is_built: bool):
    said = _advice(_OUTPUTS, is_built)
    assert "cargo" not in said
    assert ("./deploy --admin NAME" if is_built else "make admin NAME=NAME") in said


def test_names_of_aws_are_those_of_the_partition():
    assert "arn:aws:sns:eu-central-1:" in _advice(_OUTPUTS)
    assert "arn:aws-cn:sns:cn-north-1:" in _advice(_OUTPUTS, region="cn-north-1")
    endpoint = boto3.client("dynamodb", region_name="cn-north-1").meta.endpoint_url
    assert "https://dynamodb.cn-north-1.amazonaws.com.cn " in advice.migration(_OUTPUTS, endpoint)


def test_a_role_for_cloudformation_is_passed_to_sam(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    role = "arn:aws:iam::123456789012:role/deployer"
    config = (REPOSITORY / "samconfig.toml").read_text()
    (tmp_path / "samconfig.toml").write_text(config.replace("[dev.deploy.parameters]\n", f'[dev.deploy.parameters]\nrole_arn = "{role}"\n'))
    monkeypatch.chdir(tmp_path)

    def said(environment: str, role: str | None) -> list[str]:
        given = argparse.Namespace(environment=environment, parameters=[], allow=[], built=True, check=False, role_arn=role)
        return read_settings(given).as_arguments(is_new=False)

    assert said("dev", None) == ["--role-arn", role]
    assert said("default", role) == ["--role-arn", role]
    assert said("default", None) == []
