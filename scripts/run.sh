#!/usr/bin/env bash
# `make run`: installs what is missing, builds, and serves the sample tables from ./warehouse.
# Arguments go to `sandur serve` (for example: make run ARGS='--listen 127.0.0.1:4000').
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$PROJECT"

ensure_rust
say "building (the first build takes about 15 minutes on two cores)"
cargo build --locked --release --bin sandur >&2

# The clients for the printed lines. The server runs without them too, so a failure here only costs the line.
if ensure_python; then export SANDUR_PYTHON=$VENV/bin/python; else say "no Python client could be installed"; fi
if ensure_java jre && ensure_jdbc; then
  export SANDUR_JDBC_CLASSPATH=$SQLLINE:$JDBC_NEW
else
  say "no JDBC client could be installed"
fi

exec "$CARGO_TARGET_DIR/release/sandur" serve --sample "$@"
