#!/usr/bin/env bash
# Runs the bare loop; builds it first, with the worker's librdkafka and profile. --prepare builds it and does no more.
#
# Exit status 69: this machine lacks something, and the last line on stderr says what.
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
if ! command -v cargo >/dev/null; then
    echo 'cargo is not installed, which builds it' >&2
    exit 69
fi
# shellcheck disable=SC2086
cargo build --quiet --release ${TOLLGATE_CARGO_ARGS:-} --manifest-path "$root/Cargo.toml" --target-dir "$target" --example bare-loop >&2
if [ "${1:-}" != --prepare ]; then
    exec "$target/release/examples/bare-loop"
fi
