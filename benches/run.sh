#!/usr/bin/env bash
# `make bench-scan`, `make bench-planning`, `make bench-writing`, `make bench-deletes` and `make bench-delta-log`: installs what is missing, builds
# the release server unless SANDUR_BIN names one, and runs benches/NAME/run.py with the arguments given. See benches/README.md.
set -euo pipefail
. "$(dirname "$0")/../scripts/lib.sh"
name=$1
shift
BENCH_VENV=$CACHE/bench-venv
requirements=$PROJECT/benches/requirements.txt

wanted=$(cksum <"$requirements")
stamp=$BENCH_VENV/.sandur-requirements
if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$wanted" ]; then
  python=$(find_python) || { say "a Python of at least 3.11 is needed"; exit 1; }
  say "installing the Python packages of benches/requirements.txt"
  "$python" -m venv --clear "$BENCH_VENV" >&2
  "$BENCH_VENV/bin/python" -m pip install --quiet --disable-pip-version-check -r "$requirements" >&2
  printf '%s' "$wanted" >"$stamp"
fi
if [ -z "${SANDUR_BIN:-}" ] && [[ " $* " != *" --duckdb-only "* && " $* " != *" --peers-only "* ]]; then
  ensure_rust
  (cd "$PROJECT" && cargo build --release --locked --bin sandur)
fi
if [ "$name" = deletes ]; then
  ensure_spark 4.1 || exit 1
  SANDUR_SPARK_PYTHON=$(spark_python 4.1)
  SANDUR_SPARK_JAR=$(spark_jar 4.1)
  export SANDUR_SPARK_PYTHON SANDUR_SPARK_JAR
fi
# The writer of manifests and the reading of results are shared.
export PYTHONPATH=$PROJECT/benches/shared:$PROJECT/benches/full_scan:$PROJECT/tests/clients
exec "$BENCH_VENV/bin/python" "$PROJECT/benches/$name/run.py" "$@"
