# Shared by the scripts beside it: where things are kept, and how what is missing is installed.
# Sourced by bash; prints to stderr only. The functions are called in conditions, where `set -e` does not
# hold, so each of their steps that may fail returns by itself.

PROJECT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=${SANDUR_CACHE:-$HOME/.cache/sandur}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$CACHE/target}
VENV=$CACHE/venv
JARS=$CACHE/jars
SQLLINE=$JARS/sqlline-1.12.0-jar-with-dependencies.jar
JDBC_NEW=$JARS/flight-sql-jdbc-driver-18.3.0.jar
JDBC_OLD=$JARS/flight-sql-jdbc-driver-15.0.2.jar
SQLITE_JDBC=$JARS/sqlite-jdbc-3.50.3.0.jar
if [ -n "${CI:-}" ]; then export CARGO_INCREMENTAL=0; fi

say() { printf '%s\n' "$*" >&2; }

have() { command -v "$1" >/dev/null 2>&1; }

# Runs a command as root, directly or with sudo.
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Fetches the package lists, once a run; where that fails the lists at hand must do.
apt_update() {
  if [ -n "${APT_UPDATED:-}" ] || ! { [ "$(id -u)" = 0 ] || have sudo; }; then return 0; fi
  APT_UPDATED=1
  as_root apt-get update -qq >&2 || say "apt-get update failed; trying with the lists at hand"
}

# Installs Debian packages as root or with sudo; fails with the list where neither is possible.
apt_install() {
  if ! have apt-get; then
    say "missing: $* (no apt-get here: please install them by hand)"
    return 1
  fi
  if [ "$(id -u)" != 0 ] && ! have sudo; then
    say "missing: $* (neither root nor sudo: please run: apt-get install $*)"
    return 1
  fi
  apt_update
  say "installing with apt: $*"
  mkdir -p "$CACHE"
  if ! as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" \
    >"$CACHE/apt.log" 2>&1; then
    tail -n 20 "$CACHE/apt.log" >&2
    return 1
  fi
}

# Whether apt offers a package.
apt_offers() {
  have apt-cache || return 1
  apt_update
  apt-cache policy "$1" 2>/dev/null | grep -q 'Candidate: [0-9]'
}

# A cargo that is new enough for Cargo.toml: rustup reads rust-toolchain.toml and fetches the rest.
ensure_rust() {
  have cc || apt_install build-essential || return 1
  if ! have cargo && [ -f "$HOME/.cargo/env" ]; then . "$HOME/.cargo/env"; fi
  if ! rust_is_new_enough; then
    if ! have rustup; then
      if apt_offers rustup; then
        apt_install rustup || return 1
      else
        have curl || apt_install curl ca-certificates || return 1
        say "installing the Rust toolchain with its official installer"
        curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs |
          sh -s -- -y --profile minimal --default-toolchain none >&2 || return 1
        . "$HOME/.cargo/env"
      fi
    fi
    # Older rustups install what rust-toolchain.toml names when asked to show it, newer ones when asked to install.
    (cd "$PROJECT" && { rustup toolchain install || rustup show; }) >&2 || return 1
  fi
  rust_is_new_enough || { say "cargo is older than Cargo.toml's rust-version asks for"; return 1; }
}

rust_is_new_enough() {
  local wanted found
  have cargo || return 1
  wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$PROJECT/Cargo.toml")
  found=$(cd "$PROJECT" && cargo --version 2>/dev/null | cut -d' ' -f2) || return 1
  [ "$(printf '%s\n%s\n' "$wanted" "$found" | sort -V | head -n1)" = "$wanted" ]
}

# The path of a Python of at least 3.11 (what the Arrow packages ask for).
find_python() {
  local candidate
  for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
    if have "$candidate" && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$candidate"
      return 0
    fi
  done
  return 1
}

# A virtual environment with the pinned Python packages of the client tests.
ensure_python() {
  local python stamp wanted
  wanted=$(cksum <"$PROJECT/tests/clients/requirements.txt")
  stamp=$VENV/.sandur-requirements
  [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && [ -x "$VENV/bin/python" ] && return 0
  if ! python=$(find_python); then
    if apt_offers python3.11; then
      apt_install python3.11 python3.11-venv || return 1
    else
      apt_install python3 python3-venv || return 1
    fi
    python=$(find_python) || { say "no Python of at least 3.11 to be had"; return 1; }
  fi
  mkdir -p "$CACHE"
  if ! "$python" -m venv --clear "$VENV" >/dev/null 2>&1; then
    apt_install python3-venv || return 1
    "$python" -m venv --clear "$VENV" >&2 || return 1
  fi
  say "installing the Python packages of tests/clients/requirements.txt"
  "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check \
    -r "$PROJECT/tests/clients/requirements.txt" >&2 || return 1
  printf '%s' "$wanted" >"$stamp"
}

# Java with its compiler (tests run a single source file), or `ensure_java jre` for running alone.
ensure_java() {
  if [ "${1:-jdk}" = jre ]; then
    have java || apt_install default-jre-headless
  elif ! have java || ! java --list-modules 2>/dev/null | grep -q '^jdk.compiler'; then
    apt_install default-jdk-headless
  fi
}

# One artifact of Maven's repository, kept in $JARS.
maven_jar() { # file, coordinates
  [ -s "$1" ] && return 0
  have mvn || apt_install maven || return 1
  mkdir -p "$JARS"
  say "fetching $2 with Maven"
  (cd "$CACHE" && mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
    -Dartifact="$2" -DoutputDirectory="$JARS" >&2) || return 1
  [ -s "$1" ]
}

ensure_jdbc() {
  maven_jar "$JDBC_NEW" org.apache.arrow:flight-sql-jdbc-driver:18.3.0 || return 1
  maven_jar "$SQLLINE" sqlline:sqlline:1.12.0:jar:jar-with-dependencies
}

ensure_jdbc_old() { maven_jar "$JDBC_OLD" org.apache.arrow:flight-sql-jdbc-driver:15.0.2; }

# Spark of one minor version (3.5 or 4.1) in a virtual environment of its own, Iceberg's runtime for it and what opens
# the server's SQLite catalog, for tests/full. `spark_python VERSION` and `spark_jar VERSION` are where they lie.
ensure_spark() { # version
  local base python requirements wanted stamp
  base=$(spark_base "$1")
  requirements=$PROJECT/tests/full/requirements-spark-$1.txt
  [ -f "$requirements" ] || { say "no requirements for Spark $1"; return 1; }
  ensure_java || return 1
  maven_jar "$(spark_jar "$1")" "$(spark_artifact "$1")" || return 1
  maven_jar "$SQLITE_JDBC" org.xerial:sqlite-jdbc:3.50.3.0 || return 1
  wanted=$(cat "$requirements" "$PROJECT/tests/clients/requirements.txt" | cksum)
  stamp=$base/.sandur-requirements
  [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && [ -x "$base/bin/python" ] && return 0
  python=$(find_python) || { say "no Python of at least 3.11 to be had"; return 1; }
  mkdir -p "$CACHE"
  "$python" -m venv --clear "$base" >&2 || return 1
  say "installing the Python packages of ${requirements#"$PROJECT/"}"
  "$base/bin/python" -m pip install --quiet --disable-pip-version-check -r "$requirements" >&2 || return 1
  printf '%s' "$wanted" >"$stamp"
}

spark_base() { printf '%s/spark-%s' "$CACHE" "$1"; }

spark_python() { printf '%s/bin/python' "$(spark_base "$1")"; }

spark_artifact() { # version; Iceberg's runtime as Maven names it
  case $1 in
    3.5) printf 'org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.10.2' ;;
    4.1) printf 'org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0' ;;
    *) say "no Iceberg runtime is named for Spark $1"; return 1 ;;
  esac
}

spark_jar() { # version
  local artifact
  artifact=$(spark_artifact "$1") || return 1
  artifact=${artifact#*:}
  printf '%s/%s.jar' "$JARS" "${artifact/:/-}"
}
