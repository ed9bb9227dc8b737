"""The state of a topology on a real ZooKeeper, as commands read it that own nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples import stored_words
from stormline.cli.stored_state import stored_state
from stormline.errors import NoState
from stormline.runtime.state.state_store import Put
from stormline.topology.config import ZOOKEEPER_ROOT, ZOOKEEPER_SERVERS
from tests.services.zookeeper_backend import ZooKeeperBackend


def test_it_is_read_while_a_driver_owns_it_and_missed_where_none_ever_did(
    backend: ZooKeeperBackend, tmp_path: Path
) -> None:
    config = {ZOOKEEPER_SERVERS: [backend.hosts], ZOOKEEPER_ROOT: backend.root}
    topology = stored_words.topology()
    why = r"ZooKeeper at 127.* holds no state of topology 'stored-words' below /test-.*it has never run there; run it"
    with pytest.raises(NoState, match=why), stored_state(topology, config, tmp_path):
        raise AssertionError
    store = backend.open(topology.id)
    store.write([Put("committed", {"txid": 1})])
    with stored_state(topology, config, tmp_path) as state:
        assert state.get("committed") == {"txid": 1}
    assert store.connected()
