#!/usr/bin/env bash
# Runs the bare loop; builds it first, with the worker's librdkafka and profile.
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
# shellcheck disable=SC2086
cargo build --quiet --release ${TOLLGATE_CARGO_ARGS:-} --manifest-path "$root/Cargo.toml" --target-dir "$target" --example bare-loop >&2
exec "$target/release/examples/bare-loop"
