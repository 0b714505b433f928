#!/usr/bin/env bash
# Runs the Kafka Streams application; builds it first if its sources have changed. --prepare builds it and does no more.
#
# Exit status 69: this machine lacks something, and the last line on stderr says what.
#
# --threads N, --guarantee exactly_once_v2 and --eval FILE are the application's; JAVA_OPTS are the JVM's.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../../../../target}
mkdir -p "$target/baselines"
output=$(cd "$target/baselines" && pwd)/kafka-streams
if ! command -v java >/dev/null; then
    echo 'java is not installed (17 or newer)' >&2
    exit 69
fi
sources=$(cd "$here" && find pom.xml src -type f -print0 | sort -z | xargs -0 sha256sum)
if [ "$sources" != "$(cat "$output/built" 2>/dev/null)" ]; then
    if ! command -v mvn >/dev/null; then
        echo 'mvn (Maven) is not installed, which builds it' >&2
        exit 69
    fi
    rm -rf "$output"
    # Named as goals, so that neither a test runner nor an archiver is downloaded.
    mvn -q -B -f "$here/pom.xml" "-Doutput=$output" resources:resources compiler:compile \
        dependency:copy-dependencies -DincludeScope=runtime "-DoutputDirectory=$output/jars" >&2
    printf '%s' "$sources" >"$output/built"
fi
if [ "${1:-}" = --prepare ]; then
    exit
fi
# A worker has one busy thread: the parallel collector costs it less than G1's barriers and helpers would.
read -r -a options <<<"${JAVA_OPTS:--Xms512m -Xmx1g -XX:+UseParallelGC}"
exec java "${options[@]}" -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp "$output/classes:$output/jars/*" gate.Main "$@"
