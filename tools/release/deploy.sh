#!/bin/sh
# Creates or updates the stack in the AWS account of the current profile, with the functions in this
# directory:
#   ./deploy [--environment dev] [--parameters NAME=VALUE ...] [--allow RESOURCE ...] [--check]
#   ./deploy --admin NAME      creates an administrator of the deployed stack
#   ./deploy --delete STACK    deletes the stack, but not its tables and its bucket
# Requires Python 3.11 or later, by any of its usual names. Installs its tools into ./.venv.
set -eu
cd "$(dirname "$0")"
# The Python that an environment was created with may have been removed since.
if [ ! -f .venv/ready ] || ! .venv/bin/python -c '' 2> /dev/null; then
	for python in python3 python3.14 python3.13 python3.12 python3.11 ''; do
		"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null && break
	done
	if [ -z "$python" ]; then
		echo "Python 3.11 or later is needed. On Amazon Linux: sudo dnf install python3.11" >&2
		exit 1
	fi
	"$python" -m venv --clear .venv
	.venv/bin/pip install --quiet --no-compile --requirement tools/deploy.txt
	touch .venv/ready
fi
SAM_CLI_TELEMETRY=0 exec .venv/bin/python tools/deploy --built "$@"
