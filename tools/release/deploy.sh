#!/bin/sh
# Creates or updates the stack in the AWS account of the current profile, with the functions in this
# directory:
#   ./deploy [--environment dev] [--parameters NAME=VALUE ...] [--allow RESOURCE ...] [--check]
#   ./deploy --admin NAME      creates an administrator of the deployed stack
#   ./deploy --delete STACK    deletes the stack, but not its tables and its bucket
# Requires Python 3.11 or later. Installs its tools into ./.venv.
set -eu
cd "$(dirname "$0")"
if [ ! -f .venv/ready ]; then
	python3 -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed")'
	python3 -m venv --clear .venv
	.venv/bin/pip install --quiet --no-compile --requirement tools/deploy.txt
	touch .venv/ready
fi
SAM_CLI_TELEMETRY=0 exec .venv/bin/python tools/deploy --built "$@"
