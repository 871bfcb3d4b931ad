"""Optional features of a stack: custom domains, KMS keys, log levels."""

from dataclasses import dataclass

from .emulator import Emulator
from .processed import HttpApi
from .stack import Stack

_SIGNED, _USERS = "ml.example.com", "people.example.com"


@dataclass(frozen=True)
class Extras:
    """The parameters for these features, and the key and the hosted zone that they refer to."""

    parameters: dict[str, str]
    key: str
    zone: str


def name_and_keys(emulator: Emulator) -> Extras:
    """Creates the resources that the parameters refer to."""
    certificate = emulator.client("acm").request_certificate(DomainName="*.example.com")["CertificateArn"]
    zone = emulator.client("route53").create_hosted_zone(Name="example.com", CallerReference="1")["HostedZone"]["Id"].rpartition("/")[2]
    key = emulator.client("kms").create_key()["KeyMetadata"]["Arn"]
    names = {"DomainName": _SIGNED, "UsersDomainName": _USERS, "DomainCertificate": certificate, "DomainZone": zone}
    keys = dict.fromkeys(("TableKey", "BucketKey", "LogKey"), key)
    return Extras(names | keys | {"SystemLogLevel": "INFO"}, key, zone)


def has_names_and_keys(stack: Stack, apis: dict[str, HttpApi], extras: Extras) -> None:
    emulator, outputs = stack.emulator, stack.outputs
    gateway, route53 = emulator.client("apigatewayv2"), emulator.client("route53")
    records = {one["Name"].rstrip("."): one for one in route53.list_resource_record_sets(HostedZoneId=extras.zone)["ResourceRecordSets"]}
    for name, api, output in [(_SIGNED, "Api", "Domain"), (_USERS, "UsersApi", "UsersDomain")]:
        [mapping] = gateway.get_api_mappings(DomainName=name)["Items"]
        # The mapping has no key, because functions would see it in the path.
        assert (mapping["ApiId"], mapping["Stage"], mapping.get("ApiMappingKey", "")) == (apis[api].identifier, "$default", "")
        assert outputs[f"{output}Uri"] == f"https://{name}"
        assert records[name]["AliasTarget"]["DNSName"].rstrip(".") == outputs[f"{output}Target"]
    for function, statements in stack.roles().items():
        allowed = {action for one in statements if one["Resource"] == extras.key for action in one["Action"]}
        writes = function.rpartition("-")[2] in ("traces", "artifacts", "skills", "housekeeper")
        assert allowed == ({"kms:Decrypt", "kms:GenerateDataKey"} if writes else {"kms:Decrypt"}), function
        log = emulator.functions.get_function_configuration(FunctionName=function)["LoggingConfig"]
        assert (log["SystemLogLevel"], log["ApplicationLogLevel"]) == ("INFO", "INFO"), function
    groups = emulator.client("logs").describe_log_groups(logGroupNamePrefix=f"/aws/lambda/{stack.name}/")["logGroups"]
    assert {one.get("kmsKeyId") for one in groups} == {extras.key}
