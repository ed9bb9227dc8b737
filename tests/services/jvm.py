"""How the suite starts its JVMs, which live for seconds: with the first compiler, and with classes loaded already.

A JVM of Spark's spends most of a short run on reading classes and on compiling itself thoroughly. With the first
compiler alone, and the simplest collector, a run costs a third less CPU, and does the same. With an archive of the
classes that it will load (Java's class data sharing) a start of Spark or ZooKeeper costs half of what is left.

`python -m tests.services.class_archives` makes the archives; without them all runs as well, only later. An archive
names the jars that it was made of: with others Java leaves it alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".pytest_cache" / f"classes-{version('pyspark')}"
SHORT = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


def options(archive: str) -> tuple[str, ...]:
    """Return the options of a JVM that loads what is in an archive: "spark", "zookeeper" or "kafka"."""
    file = FOLDER / f"{archive}.jsa"
    # Of an archive that does not fit, Java would say so on standard output.
    return (*SHORT, f"-XX:SharedArchiveFile={file}", "-Xlog:cds*=off") if file.exists() else SHORT


def quoted(archive: str) -> str:
    """Return them as Spark and Kafka take them from the environment."""
    return " ".join(f'"{option}"' if " " in option else option for option in options(archive))


def environment() -> Mapping[str, str]:
    """Return what JVMs that others start for the suite take their options from."""
    return {"SPARK_SUBMIT_OPTS": quoted("spark"), "SPARK_LAUNCHER_OPTS": " ".join(SHORT), "KAFKA_OPTS": quoted("kafka")}


def recording(file: Path) -> tuple[str, ...]:
    """Return the options of a JVM that makes an archive, when it ends by itself, of all that it has loaded."""
    return (*SHORT, f"-XX:ArchiveClassesAtExit={file}", "-Xlog:cds*=off")
