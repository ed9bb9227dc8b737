#!/bin/sh
# Succeeds if MariaDB's server is installed; as root on Debian or Ubuntu it installs a missing one.
# Else says in one sentence what to do. With the argument `optional` it succeeds all the same.
set -eu

found() {
    command -v mariadb-install-db >/dev/null 2>&1 && { command -v mariadbd || ls /usr/sbin/mariadbd; } >/dev/null 2>&1
}

found && exit 0

if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    echo "The tests of stores need MariaDB: installing it with apt-get."
    export DEBIAN_FRONTEND=noninteractive
    {
        apt-get update -qq && apt-get install -qq -y --no-install-recommends mariadb-server
    } >/dev/null || true
    found && exit 0
fi

echo "MariaDB was not found: install it (Debian, Ubuntu: apt-get install mariadb-server; macOS: brew install mariadb)." >&2
[ "${1:-}" = optional ]
