"""What was measured on: the machine, and the versions of everything that has a part in it."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

import stormline

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("pyspark", "msgpack", "msgspec", "pyarrow", "numpy", "kazoo", "cloudpickle")


def machine() -> dict[str, Any]:
    """Describe this machine."""
    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1024**3, 1),
        "os": operating_system(),
    }


def versions() -> dict[str, str]:
    """Return the versions of what is installed; without what is not."""
    found = {"stormline": stormline.__version__, "commit": commit(), "python": platform.python_version()}
    found |= {"java": java_version(), "zookeeper": zookeeper_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {name: version for name, version in found.items() if version}


def cpu_model() -> str:
    """Return the name that the processor gives itself."""
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text("utf-8"), re.MULTILINE)
    except OSError:
        found = None
    return found[1] if found else platform.processor() or platform.machine()


def operating_system() -> str:
    """Return the name of the system, and its kernel."""
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        name = platform.system()
    return f"{name}, kernel {platform.release()}"


def java_version() -> str:
    """Return the version of the Java that Spark takes."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else "java"
    said = _output(java, "-version")
    found = re.search(r'version "([^"]+)"', said)
    return found[1] if found else ""


def zookeeper_version() -> str:
    """Return the version of the embedded ZooKeeper: of the jar that pyspark ships."""
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars"
    found = [re.fullmatch(r"zookeeper-(\d[\d.]*)\.jar", jar.name) for jar in jars.glob("zookeeper-*.jar")]
    return next((match[1] for match in found if match), "")


def commit() -> str:
    """Return the commit that is checked out, marked where files differ from it; empty outside of a checkout."""
    head = _output("git", "-C", str(ROOT), "rev-parse", "--short", "HEAD").strip()
    if not re.fullmatch(r"[0-9a-f]+", head):
        return ""
    changed = _output("git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=no")
    ours = [line for line in changed.splitlines() if "benchmarks/results/" not in line]
    return f"{head} with changes" if ours else head


def _output(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr
