#!/usr/bin/env bash
# Runs the bare loop; builds it first, with the worker's librdkafka and profile.
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
cargo build --quiet --release --manifest-path "$root/Cargo.toml" --target-dir "$target" --example bare-loop >&2
exec "$target/release/examples/bare-loop"
