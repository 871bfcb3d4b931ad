"""Publishes an archive for "Launch Stack" buttons:
`python tools/release/publish.py ARCHIVE --buckets PREFIX --regions eu-central-1 us-east-1`.

Run by `make publish`. Lambda only reads code from a bucket in its own region. For each region, the
code and the template are uploaded to the existing bucket `PREFIX-REGION`, under the version and the
processor architecture, and the URL of the console's page that creates a stack is printed.
"""

import argparse
import re
import sys
import tarfile
from pathlib import Path
from urllib.parse import quote, urlencode

import boto3
from botocore.exceptions import BotoCoreError, ClientError

_NAME = re.compile(r"mlflow-serverless-(?P<version>.+)-aws-(?P<processor>arm64|x86_64)$")
#: A line that refers to local code.
_CODE = re.compile(r"^( +)(CodeUri|ContentUri): (\S+\.zip)$", re.MULTILINE)


def main() -> None:
    parser = argparse.ArgumentParser(prog="publish", description="Publishes an archive for Launch Stack buttons.")
    parser.add_argument("archive", type=Path, help="mlflow-serverless-VERSION-aws-PROCESSOR.tar.gz")
    parser.add_argument("--buckets", required=True, metavar="PREFIX", help="the bucket of a region is PREFIX-REGION; it has to exist")
    parser.add_argument("--regions", required=True, nargs="+", metavar="REGION")
    said = parser.parse_args()
    for region in said.regions:
        try:
            print(publish(said.archive, f"{said.buckets}-{region}", region))
        except (BotoCoreError, ClientError) as error:
            sys.exit(f"Not published in {region}: {error}")


def publish(archive: Path, bucket: str, region: str) -> str:
    """Uploads the archive's code and its template, and returns the console's URL that creates a
    stack from it.
    """
    client = boto3.client("s3", region_name=region)
    with tarfile.open(archive) as packed:
        [top] = {name.partition("/")[0] for name in packed.getnames()}
        found = _NAME.fullmatch(top)
        if not found:
            raise ValueError(f"{archive} is not an archive of functions")
        prefix = f"{found['version']}/{found['processor']}"

        def upload(name: str, content: bytes) -> None:
            client.put_object(Bucket=bucket, Key=f"{prefix}/{name}", Body=content)

        template = packed.extractfile(f"{top}/template.yaml").read().decode()
        for name in sorted({name for _, _, name in _CODE.findall(template)}):
            upload(name, packed.extractfile(f"{top}/{name}").read())
        # The template is uploaded last, so that it never refers to code that is not in the bucket
        # yet.
        upload("template.yaml", packaged(template, bucket, prefix).encode())
    suffix = ".cn" if client.meta.partition == "aws-cn" else ""
    return launch_url(f"https://{bucket}.s3.{region}.amazonaws.com{suffix}/{prefix}/template.yaml", region)


def packaged(template: str, bucket: str, prefix: str) -> str:
    """Replaces references to local code by references to the bucket."""
    packed, count = _CODE.subn(rf"\1\2: {{ Bucket: {bucket}, Key: {prefix}/\3 }}", template)
    if not count or ".zip\n" in packed:
        raise ValueError("the template refers to code in an unsupported way")
    return packed


def launch_url(template: str, region: str) -> str:
    """Returns the URL of the console's page that creates a stack. As with `make deploy`, a new stack
    has an API for users.
    """
    sent = urlencode({"templateURL": template, "stackName": "mlflow", "param_Users": "on"}, quote_via=quote, safe="")
    console = "console.amazonaws.cn" if region.startswith("cn-") else "console.aws.amazon.com"
    return f"https://{region}.{console}/cloudformation/home?region={region}#/stacks/quickcreate?{sent}"


if __name__ == "__main__":
    main()
