"""Checks custom domain names: they need a matching certificate and zone, and must not be used
elsewhere in API Gateway.
"""

from collections.abc import Iterator, Mapping

import boto3
from botocore.exceptions import ClientError

from asked import unless_denied

_NAMES = {"DomainName": "Domain", "UsersDomainName": "UsersDomain"}


def find_problems(parameters: Mapping[str, str], region: str, of_stack: Mapping[str, str]) -> Iterator[str]:
    """Checks the names. `of_stack` has the stack's resources by their names in the template."""
    names = {resource: parameters[name] for name, resource in _NAMES.items() if parameters.get(name)}
    if not names:
        return
    if certificate := parameters.get("DomainCertificate"):
        yield from _of_certificate(certificate, region, names.values())
    if zone := parameters.get("DomainZone"):
        yield from _of_zone(zone, names.values())
    for resource, name in names.items():
        yield from _of_mappings(name, is_own=of_stack.get(resource) == name)


def _of_certificate(arn: str, region: str, names: Iterator[str]) -> Iterator[str]:
    there = arn.split(":")[3]
    if there != region:
        yield f"The certificate is in {there}, but has to be in {region}, like the stack. (Only CloudFront requires us-east-1.)"
        return
    with unless_denied("whether the certificate can be used"):
        try:
            found = boto3.client("acm").describe_certificate(CertificateArn=arn)["Certificate"]
        except ClientError as error:
            if error.response["Error"]["Code"] != "ResourceNotFoundException":
                raise
            yield f"There is no certificate {arn}."
            return
        if found["Status"] != "ISSUED":
            yield f"The certificate is in the state {found['Status']}. It has to be issued first: add its validation record to the zone of the name."
        covered = {found["DomainName"], *found.get("SubjectAlternativeNames", [])}
        for name in names:
            if not covered & {name, "*." + name.partition(".")[2]}:
                yield f"The certificate does not cover {name}: it is for {', '.join(sorted(covered))}."


def _of_zone(zone: str, names: Iterator[str]) -> Iterator[str]:
    with unless_denied("whether the names are in the zone"):
        try:
            found = boto3.client("route53").get_hosted_zone(Id=zone)["HostedZone"]
        except ClientError as error:
            if error.response["Error"]["Code"] != "NoSuchHostedZone":
                raise
            yield f"There is no hosted zone {zone}."
            return
        if found.get("Config", {}).get("PrivateZone"):
            yield f"The hosted zone {zone} is private: the name would only resolve within its network."
        ending = found["Name"].rstrip(".")
        for name in names:
            if name != ending and not name.endswith(f".{ending}"):
                yield f"{name} is not in the hosted zone {zone}, which is for {ending}."


def _of_mappings(name: str, is_own: bool) -> Iterator[str]:
    """Checks for base path mappings. A function would receive the mapped path, which none of its
    routes has."""
    with unless_denied(f"whether {name} is in use"):
        client = boto3.client("apigatewayv2")
        try:
            mappings = client.get_api_mappings(DomainName=name).get("Items", [])
        except ClientError as error:
            if error.response["Error"]["Code"] != "NotFoundException":
                raise
            return
        keys = sorted(one["ApiMappingKey"] for one in mappings if one.get("ApiMappingKey"))
        if not is_own:
            yield f"{name} is already used in API Gateway outside of this stack. Choose another name, or run: aws apigatewayv2 delete-domain-name --domain-name {name}"
        elif keys:
            yield f"{name} is shared by paths ({', '.join(keys)}). It has to map to this API without a path: delete these mappings, or choose another name."
