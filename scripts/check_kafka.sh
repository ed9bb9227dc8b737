#!/bin/sh
# Succeeds if the jars of a Kafka broker are there; fetches missing ones, once a user, into the folder that it prints
# (by `path`, only that). By Maven where it is installed, else by the Ivy that pyspark brings: each as this machine has
# it configured. The first argument is the environment's bin. With the argument `optional` it succeeds all the same.
set -eu

version=4.4.0
bin=$1
folder="${XDG_CACHE_HOME:-$HOME/.cache}/stormline/kafka-$version"

if [ "${2:-}" = path ]; then
    echo "$folder"
    exit 0
fi

# The folder gets its name when it is complete.
ls "$folder"/kafka_2.13-$version.jar >/dev/null 2>&1 && exit 0

mkdir -p "$folder.making"
making="$(mktemp -d "$folder.making/XXXXXX")"
trap 'rm -rf "$making"; rmdir "$folder.making" 2>/dev/null || true' EXIT

by_maven() {
    command -v mvn >/dev/null 2>&1 || return 1
    cat >"$making/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>stormline</groupId><artifactId>kafka-jars</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>$version</version></dependency>
  </dependencies>
</project>
POM
    mvn -q -B -f "$making/pom.xml" dependency:copy-dependencies -DincludeScope=runtime \
        "-DoutputDirectory=$making/jars" >"$making/log" 2>&1
}

by_ivy() {
    ivy="$(echo "$("$bin/python" -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))')"/jars/ivy-*.jar)"
    settings="$HOME/.ivy2/ivysettings.xml"
    if [ -e "$settings" ]; then set -- -settings "$settings"; else set --; fi
    "${JAVA_HOME:+$JAVA_HOME/bin/}java" -jar "$ivy" "$@" -cache "$making/cache" \
        -dependency org.apache.kafka kafka_2.13 $version -confs default -types jar bundle \
        -retrieve "$making/jars/[artifact]-[revision].[ext]" >>"$making/log" 2>&1
}

echo "The tests of the Kafka spouts need a broker: fetching Kafka $version, 43 MB, once."
if by_maven || by_ivy; then
    # Of two that fetch at once the first one's is kept.
    mv "$making/jars" "$folder" 2>/dev/null || true
    ls "$folder"/kafka_2.13-$version.jar >/dev/null 2>&1 && exit 0
fi

tail -n 20 "$making/log" >&2 2>/dev/null || true
echo "Kafka $version was not fetched: neither Maven nor Ivy reached a repository; try 'make kafka' again with a network." >&2
[ "${2:-}" = optional ]
