"""A living driver of another user, where /proc shows each user only their own processes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stormline.runtime.state.driver_identity import DriverIdentity
from stormline.runtime.world.world import REAL

NOBODY = "65534"
ASKS = """
import json, sys
from stormline.runtime.state.driver_identity import DriverIdentity
from stormline.runtime.world.machine import Machine
print(DriverIdentity.from_data(json.loads(sys.argv[1])).alive(Machine()))
"""


def seen_by_nobody(holder: DriverIdentity, hidepid: str) -> str:
    """Return what another user finds out about a process where /proc is mounted so, in a namespace of its own."""
    asks = [sys.executable, "-c", ASKS, json.dumps(holder.to_data())]
    nobody = f'setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups "$@"'
    mount = f"mount -t proc -o hidepid={hidepid} proc /proc && exec {nobody}"
    found = subprocess.run(
        ["unshare", "--mount", "sh", "-c", mount, "sh", *asks],
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    if "mount:" in found.stderr or "unshare:" in found.stderr:
        pytest.skip(f"no /proc of its own can be mounted here: {found.stderr}")
    return found.stdout.strip() or found.stderr


@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0 or not (shutil.which("unshare") and shutil.which("setpriv")),
    reason="needs root, to mount /proc and to become another user",
)
def test_a_driver_that_proc_hides_from_other_users_is_not_taken_for_dead() -> None:
    me = DriverIdentity.this_process(REAL, 1000, "token")
    assert seen_by_nobody(me, "0") == "True"
    assert seen_by_nobody(me, "1") == "None"
    assert seen_by_nobody(me, "2") == "None"
