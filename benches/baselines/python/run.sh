#!/usr/bin/env bash
# Runs the Python worker; makes its virtual environment first if it is not there.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../../../target}
venv=$target/baselines/python-venv
if ! cmp -s "$here/requirements.txt" "$venv/requirements.txt"; then
    python3 -m venv --clear "$venv" >&2
    "$venv/bin/pip" install --disable-pip-version-check --quiet --requirement "$here/requirements.txt" >&2
    cp "$here/requirements.txt" "$venv/requirements.txt"
fi
exec "$venv/bin/python" "$here/worker.py" "$@"
