#!/bin/sh
# Succeeds if Redis's server is installed; as root on Debian or Ubuntu it installs a missing one.
# Else says in one sentence what to do. With the argument `optional` it succeeds all the same.
set -eu

found() {
    command -v redis-server >/dev/null 2>&1
}

found && exit 0

if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    echo "The tests of stores need Redis: installing it with apt-get."
    export DEBIAN_FRONTEND=noninteractive
    {
        apt-get update -qq && apt-get install -qq -y --no-install-recommends redis-server
    } >/dev/null || true
    found && exit 0
fi

echo "Redis was not found: install it (Debian, Ubuntu: apt-get install redis-server; macOS: brew install redis)." >&2
[ "${1:-}" = optional ]
