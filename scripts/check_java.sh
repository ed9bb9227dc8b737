#!/bin/sh
# Succeeds if the Java that Spark would start is 17 or newer; else says in one sentence what to do.
# Looks where Spark looks: JAVA_HOME first, then the path. As root on Debian or Ubuntu it installs a missing Java.
set -eu

java_version_min=17
remedy="install one (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17) or set JAVA_HOME to one"

refuse() {
    echo "$1" >&2
    exit 1
}

# Prints the major version of the Java at $1, or nothing if it does not run.
java_version() {
    "$1" -version 2>&1 | sed -n 's/.* version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1
}

is_enough() {
    [ -n "$1" ] && [ "$1" -ge "$java_version_min" ]
}

if [ -n "${JAVA_HOME:-}" ]; then
    version="$(java_version "$JAVA_HOME/bin/java")"
    is_enough "$version" && exit 0
    refuse "Spark needs Java $java_version_min or newer, but JAVA_HOME=$JAVA_HOME holds ${version:+version }${version:-none}: set JAVA_HOME to a newer one, or unset it."
fi

version="$(java_version java)"
is_enough "$version" && exit 0

if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    echo "Spark needs Java $java_version_min or newer: installing it with apt-get."
    export DEBIAN_FRONTEND=noninteractive
    {
        apt-get update -qq && {
            apt-get install -qq -y --no-install-recommends openjdk-17-jre-headless ||
                apt-get install -qq -y --no-install-recommends default-jre-headless
        }
    } >/dev/null || true
    hash -r
    version="$(java_version java)"
    is_enough "$version" && exit 0
fi

refuse "Spark needs Java $java_version_min or newer, and ${version:+found only version }${version:-found none}: $remedy."
