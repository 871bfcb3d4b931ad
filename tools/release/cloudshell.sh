#!/bin/bash
# Deploys mlflow-serverless from AWS CloudShell, and creates the first administrator:
#   bash cloudshell.sh URL NAME [OPTION ...]
# URL is the directory of the release's files, NAME the administrator, and options are those of the
# archive's `deploy`, such as --parameters Workspaces=on. Run it again to update the stack.
set -euo pipefail
archive=mlflow-serverless-@VERSION@-aws-${PROCESSOR:-arm64}
if [ $# -lt 2 ]; then
	echo "usage: bash cloudshell.sh URL NAME [OPTION ...]" >&2
	exit 2
fi
url=${1%/} name=$2
shift 2
cd "$HOME"
curl --fail --silent --show-error --location --remote-name-all "$url/$archive.tar.gz" "$url/SHA256SUMS"
sha256sum --check --strict --ignore-missing SHA256SUMS
tar --extract --file "$archive.tar.gz"
# The home directory has 1 GB, and the installed tools of a version take a quarter of it.
rm "$archive.tar.gz" SHA256SUMS
for other in mlflow-serverless-*-aws-*; do
	[ "$other" = "$archive" ] || rm -rf "$other/.venv"
done
export PIP_NO_CACHE_DIR=1
# CloudShell's own Python is 3.9. What is installed outside the home directory lasts for a session.
if ! command -v python3.14 python3.13 python3.12 python3.11 > /dev/null && ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
	sudo dnf install --quiet --assumeyes python3.11
fi
environment=()
if [ "${1-}" = --environment ]; then
	environment=("$1" "$2")
fi
"$archive/deploy" "$@"
exec "$archive/deploy" "${environment[@]}" --admin "$name"
