"""A file system of a few bytes, which is soon full."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(size_bytes: int) -> Iterator[Path]:
    """Give where it is mounted: where paths are short, as those of sockets in it have to be.

    The test is skipped where nothing can be mounted; it fails where something should be.
    """
    place = Path(tempfile.mkdtemp(prefix="disk-"))
    command = ["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "none", str(place)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        place.rmdir()
        why = f"no file system can be mounted here: {mounted.stderr.strip()}"
        if os.environ.get("CI") and os.geteuid() == 0:
            pytest.fail(why)
        pytest.skip(why)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)
        place.rmdir()
