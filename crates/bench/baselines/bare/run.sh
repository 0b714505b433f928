#!/usr/bin/env bash
# Runs the bare loop; builds it first, with the worker's librdkafka and profile. --prepare builds it and does no more, and where
# TOLLGATE_PREPARED is set it is built already: not even a look at its sources is to disturb what is measured.
#
# Exit status 69: this machine lacks something, and the last line on stderr says what.
set -euo pipefail
root=$(cd "$(dirname "$0")/../../../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
if [ -z "${TOLLGATE_PREPARED:-}" ]; then
    if ! command -v cargo >/dev/null; then
        echo 'cargo is not installed, which builds it' >&2
        exit 69
    fi
    # shellcheck disable=SC2086
    cargo build --quiet --release ${TOLLGATE_CARGO_ARGS:-} --manifest-path "$root/Cargo.toml" --target-dir "$target" \
        --package tollgate-bench --example bare-loop >&2
fi
if [ "${1:-}" != --prepare ]; then
    exec "$target/release/examples/bare-loop"
fi
