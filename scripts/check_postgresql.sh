#!/bin/sh
# Succeeds if PostgreSQL's server is installed; as root on Debian or Ubuntu it installs a missing one.
# Else says in one sentence what to do. With the argument `optional` it succeeds all the same.
set -eu

found() {
    command -v initdb >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1
}

found && exit 0

if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    echo "The tests that break real services need PostgreSQL: installing it with apt-get."
    export DEBIAN_FRONTEND=noninteractive
    # No cluster of the machine's own is made: the tests make theirs, and it ends with them.
    mkdir -p /etc/postgresql-common
    [ -e /etc/postgresql-common/createcluster.conf ] || echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
    {
        apt-get update -qq && apt-get install -qq -y --no-install-recommends postgresql
    } >/dev/null || true
    found && exit 0
fi

echo "PostgreSQL was not found: install it (Debian, Ubuntu: apt-get install postgresql; macOS: brew install postgresql)." >&2
[ "${1:-}" = optional ]
