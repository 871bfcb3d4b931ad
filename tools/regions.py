"""Checks template.yaml for all regions: `python -m tools.regions`.

CloudFormation refuses a template with a resource type that the region does not know, even if a
condition excludes the resource. cfn-lint has the types of each region and their schemas. Linting the
template for each region takes longer than all other checks, so it is linted once for each group of
regions with the same schemas. The result is that of `cfn-lint --regions ALL_REGIONS`.
"""

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import cfnlint

TEMPLATE = Path(__file__).resolve().parents[1] / "template.yaml"
#: The region that `sam validate` lints the template for.
LINTED = "us-east-1"
#: Resource types that SAM transforms, and the types that CloudFormation receives.
_TRANSFORMED = {"AWS::Serverless::Function": "AWS::Lambda::Function", "AWS::Serverless::LayerVersion": "AWS::Lambda::LayerVersion"}


@cache
def schemas() -> dict[str, Mapping[str, str]]:
    """Returns the known resource types by region, each with an identifier of its schema."""
    providers = Path(cfnlint.__file__).parent / "data/schemas/providers"
    return {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(providers.glob("*-*-*.json"))}


def types(text: str) -> set[str]:
    """Returns the resource types that CloudFormation receives for a template."""
    found = set(re.findall(r"^    Type: (AWS::\w+::\w+)$", text, re.MULTILINE))
    return {_TRANSFORMED.get(name, name) for name in found}


def missing(text: str) -> dict[str, list[str]]:
    """Returns the resource types of a template that a region does not know, by region."""
    used = types(text)
    lacking = {region: sorted(used - known.keys()) for region, known in schemas().items()}
    return {region: names for region, names in lacking.items() if names}


def groups(text: str) -> list[list[str]]:
    """Returns groups of regions with the same schemas of the template's resource types."""
    used, found = sorted(types(text)), {}
    for region, known in schemas().items():
        found.setdefault(tuple(str(known.get(name)) for name in used), []).append(region)
    return list(found.values())


def main() -> None:
    text = TEMPLATE.read_text("utf-8")
    if lacking := missing(text):
        sys.exit("\n".join(f"{region} does not know {', '.join(names)}" for region, names in lacking.items()))
    others = [regions[0] for regions in groups(text) if LINTED not in regions]
    if others:
        subprocess.run([Path(sys.executable).with_name("cfn-lint"), "--template", TEMPLATE, "--regions", *others], check=True)
    print(f"{TEMPLATE.name} is valid in {len(schemas())} regions.")


if __name__ == "__main__":
    main()
