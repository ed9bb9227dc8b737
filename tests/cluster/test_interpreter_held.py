"""A call that holds the interpreter's lock for longer than the session lasts, where ZooKeeper is a real one."""

from __future__ import annotations

import pytest

from stormline.runtime.errors import Fenced, SessionLost
from stormline.runtime.state.state_store import Put
from stormline.runtime.zookeeper.interpreter_watch import InterpreterWatch
from stormline.topology.errors import StormlineError
from tests.kits.components import eventually
from tests.kits.interpreter import match_for
from tests.services.zookeeper_backend import ZooKeeperBackend


def test_a_session_that_one_long_call_has_ended_says_so_and_names_the_setting(backend: ZooKeeperBackend) -> None:
    lost: list[StormlineError] = []
    watch = InterpreterWatch()
    try:
        store = backend.open(session_timeout_ms=1000, on_lost=lost.append, why_silent=watch.why_silent)
        match_for(2.5)
        # Who looks first after the call says where it was: the watch's own thread may get its turn too late for that.
        watch.why_silent(1.0)
        eventually(lambda: lost)
    finally:
        watch.stop()
    with pytest.raises((SessionLost, Fenced), match=r"/topo .*\. The reason: this process was busy for \d+ s") as told:
        store.write([Put("a", 1)])
    assert "in one call that let no other Python code run" in str(told.value)
    assert "a session of 1 s (storm.zookeeper.session.timeout). Raise that setting" in str(told.value)
    assert "in test_a_session_that_one_long_call_has_ended_says_so_and_names_the_setting" in str(told.value)
