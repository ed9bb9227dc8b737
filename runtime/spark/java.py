"""Finds Java before Spark looks for it, so that its absence is one sentence and not a stack trace."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from stormline.runtime.errors import JavaMissing

JAVA_MIN = 17
_REMEDY = (
    f"Spark 4 needs Java {JAVA_MIN} or newer; install it (Debian, Ubuntu: apt-get install openjdk-17-jre-headless) "
    "or set JAVA_HOME"
)


def check_java() -> None:
    """Raise `JavaMissing` where Spark would find no Java, or one that is too old."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None:
        raise JavaMissing(f"no java was found: {_REMEDY}")
    try:
        shown = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except OSError as error:
        raise JavaMissing(f"{java} cannot be run ({error}): {_REMEDY}") from error
    found = re.search(r'version "(?:1\.)?(\d+)', shown.stderr + shown.stdout)
    if found is None or int(found[1]) < JAVA_MIN:
        version = found[1] if found else "of unknown version"
        raise JavaMissing(f"{java} is Java {version}: {_REMEDY}")
