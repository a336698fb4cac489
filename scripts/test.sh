#!/usr/bin/env bash
# `make test`: installs what the tests need and runs all of them, whatever fails on the way.
#
# Nothing is skipped silently. A test that cannot run appends a line to the file $SANDUR_NOT_RUN; the lines
# are counted and printed at the end, and with CI set they make the run fail. `--full` adds what is too long
# for every change.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$PROJECT"
full=
if [ "${1:-}" = --full ]; then full=1; fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export SANDUR_NOT_RUN=$work/not-run
: >"$SANDUR_NOT_RUN"
failed=() passed=()
# What is not part of a run on this machine by decision, and does not make it fail.
outside=()

# Runs one named step and notes how it ended and how long it took; says whether it passed.
step() { # name, command...
  local name=$1 start=$SECONDS
  shift
  printf '\n== %s\n' "$name"
  if "$@"; then
    passed+=("$name")
    printf '== %s: passed (%d s)\n' "$name" $((SECONDS - start))
  else
    failed+=("$name")
    printf '== %s: FAILED (%d s)\n' "$name" $((SECONDS - start))
    return 1
  fi
}

not_run() { printf '%s\n' "$*" >>"$SANDUR_NOT_RUN"; }

rust_tests() {
  local log=$work/cargo-test.log status=0
  # A hang fails instead of blocking the run.
  timeout --kill-after=1m 40m cargo test --locked --features testing --no-fail-fast 2>&1 | tee "$log" || status=$?
  sed -n 's/^test \(.*\) \.\.\. ignored\(.*\)$/Rust test \1 is marked to be ignored\2/p' "$log" >>"$SANDUR_NOT_RUN"
  return "$status"
}

advisories() {
  cargo deny --locked check
}

java_and_drivers() { ensure_java && ensure_jdbc && ensure_jdbc_old; }

# By two processes, each with servers of its own: one waits for its server most of the time. With native tracebacks:
# pytest's own read the sources anew, and where a cursor that a failure left open ends meanwhile, Python 3.11 ends the
# whole run.
client_tests() {
  SANDUR_BIN=$CARGO_TARGET_DIR/debug/sandur \
    SANDUR_PYTHON=$VENV/bin/python SANDUR_JDBC_CLASSPATH=$SQLLINE:$JDBC_NEW \
    SANDUR_JDBC_DRIVERS=$JDBC_NEW:$JDBC_OLD \
    "$VENV/bin/python" -m pytest tests/clients -p no:cacheprovider -q --tb=native -n 2 --dist loadfile "$@"
}

long_races() { SANDUR_LONG=1 client_tests -k "test_the_history_of_many_writers or test_concurrent_deletes or test_random_deletes"; }

# Tables made by this version of Spark, read by it and by the server.
spark_tests() { # version
  SANDUR_BIN=$CARGO_TARGET_DIR/debug/sandur SANDUR_SPARK_JAR=$(spark_jar "$1") SANDUR_SQLITE_JAR=$SQLITE_JDBC \
    timeout --kill-after=1m 1h "$(spark_python "$1")" -m pytest tests/full -p no:cacheprovider -q
}

step "set up Rust" ensure_rust || exit 1
python=1
step "set up Python" ensure_python || python=
step "set up Java" java_and_drivers || true

step "format" cargo fmt --check || true
if [ -n "$python" ]; then
  step "dependencies" "$VENV/bin/python" scripts/check_dependencies.py || true
else
  not_run "scripts/check_dependencies.py: there is no Python"
fi
if have cargo-deny; then
  step "advisories" advisories || true
else
  outside+=("advisories: cargo-deny is not on PATH (docs/adr/0001-dependency-checks.md)")
fi
# Build the tests, never the binary alone: that gives target/debug/sandur too, and every dependency is then
# compiled once, with the features that the tests need. The feature `testing` adds what only tests switch on:
# pruning that errs on purpose, to see that the tests notice.
step "clippy" cargo clippy --locked --features testing --all-targets -- -D warnings || true
if step "build" cargo test --locked --features testing --no-run; then
  step "Rust tests" rust_tests || true
  if [ -n "$python" ]; then
    step "client tests" client_tests || true
  else
    not_run "tests/clients: there is no Python"
  fi
else
  not_run "Rust tests and client tests: the build failed"
fi

if [ -n "$full" ]; then
  step "Rust tests, long" env PROPTEST_CASES=5000 timeout --kill-after=1m 2h cargo test --locked --lib || true
  if [ -n "$python" ] && [ -x "$CARGO_TARGET_DIR/debug/sandur" ]; then
    step "many writers, long" long_races || true
  else
    not_run "many writers, long: there is no Python or no binary"
  fi
  for version in 3.5 4.1; do
    if [ ! -x "$CARGO_TARGET_DIR/debug/sandur" ]; then
      not_run "tests/full with Spark $version: there is no binary"
    elif step "set up Spark $version" ensure_spark "$version"; then
      step "Spark $version" spark_tests "$version" || true
    else
      not_run "tests/full with Spark $version: it could not be set up"
    fi
  done
  outside+=("make test-full: Spark as a second writer, Flink (to come)")
fi

printf '\n== summary (%d s)\n' "$SECONDS"
printf 'passed: %s\n' "${passed[@]}"
if [ "${#outside[@]}" -gt 0 ]; then printf 'not part of this run: %s\n' "${outside[@]}"; fi
if [ "${#failed[@]}" -gt 0 ]; then printf 'FAILED: %s\n' "${failed[@]}"; fi
count=$(wc -l <"$SANDUR_NOT_RUN")
if [ "$count" -gt 0 ]; then
  printf 'not run: %d\n' "$count"
  sed 's/^/  - /' "$SANDUR_NOT_RUN"
fi
if [ "${#failed[@]}" -gt 0 ]; then exit 1; fi
if [ "$count" -gt 0 ] && [ -n "${CI:-}" ]; then
  printf 'With CI set, what was not run makes the run fail.\n'
  exit 1
fi
