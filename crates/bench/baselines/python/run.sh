#!/usr/bin/env bash
# Runs the Python worker; makes its virtual environment first if it is not there. --prepare makes it and does no more.
#
# Exit status 69: this machine lacks something, and the last line on stderr says what.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../../../../target}
venv=$target/baselines/python-venv
if ! cmp -s "$here/requirements.txt" "$venv/requirements.txt"; then
    if ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
        echo 'python3 with its venv module and pip is not installed' >&2
        exit 69
    fi
    python3 -m venv --clear "$venv" >&2
    "$venv/bin/pip" install --disable-pip-version-check --quiet --requirement "$here/requirements.txt" >&2
    cp "$here/requirements.txt" "$venv/requirements.txt"
fi
if [ "${1:-}" != --prepare ]; then
    exec "$venv/bin/python" "$here/worker.py" "$@"
fi
