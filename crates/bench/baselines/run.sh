#!/usr/bin/env bash
# Compares the baselines with tollgate, or measures them: run.sh compare|measure [arguments, --help says which]
#
# Starts a broker from the tests' jars unless TOLLGATE_BROKERS names a cluster.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$(cd "$here/../../.." && pwd)/target}
case ${1:-} in
    compare | measure) driver=$here/driver/$1.py ;;
    *)
        echo 'usage: run.sh compare|measure [arguments]' >&2
        exit 2
        ;;
esac
shift
# Everything is built before anything is measured, the driver's own virtual environment among it.
"$here/python/run.sh" --prepare
"$here/kafka-streams/run.sh" --prepare
exec "$CARGO_TARGET_DIR/baselines/python-venv/bin/python" "$driver" "$@"
