#!/bin/sh
# Succeeds if the Python named by $1 can make our environment; else says in one sentence what to do.
set -eu

python="${1:-python3}"

refuse() {
    echo "$1" >&2
    exit 1
}

command -v "$python" >/dev/null 2>&1 ||
    refuse "Stormline needs Python 3.11 or newer, and '$python' was not found: install it, or name another with 'make PYTHON=python3.12 ...'."
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    refuse "Stormline needs Python 3.11 or newer, but '$python' is $("$python" --version 2>&1): name a newer one with 'make PYTHON=python3.12 ...'."
"$python" -c 'import venv, ensurepip' 2>/dev/null ||
    refuse "The Python '$python' cannot make virtual environments: install its venv module (Debian, Ubuntu: apt-get install python3-venv)."
