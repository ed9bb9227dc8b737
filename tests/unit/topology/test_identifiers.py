"""Names that reach paths and znodes."""

from __future__ import annotations

from typing import Any

import pytest

from stormline.cli.bundle import Bundle
from stormline.runtime.errors import InvalidPath
from stormline.runtime.state.state_store import check_part, check_path
from stormline.runtime.zookeeper.store import ZooKeeperStateStore
from stormline.topology.errors import InvalidStream
from stormline.topology.identifiers import is_host, is_part, is_znode_path
from stormline.topology.streams import OutputFieldsDeclarer

EVIL: list[Any] = [
    "", ".", "..", "../x", "a/../b", "/etc/passwd", "a\0b", "a\nb", "a b", "~", "$HOME", "a;b", "\u0430",
    "\uff0e\uff0e", "a\u202eb", "é", "x" * 129, None, 3, b"a", "-rf", ".hidden",
]  # fmt: skip


@pytest.mark.parametrize("part", EVIL, ids=ascii)
def test_what_leads_elsewhere_is_no_part_of_a_path(part: Any) -> None:
    assert not is_part(part)
    if isinstance(part, str):
        with pytest.raises(InvalidPath, match=r"expected 1 to 128 characters out of A-Z a-z 0-9 _ \. -"):
            check_part(part, "topology id")
        with pytest.raises(InvalidPath, match="expected 1 to 128 characters"):
            check_path(f"batches/{part}" if "/" not in part else part)


@pytest.mark.parametrize("part", ["a", "_", "0", "a..b", "word-count_2.1", "x" * 128])
def test_what_names_a_znode_is_a_part_and_names_files_of_that_name(part: str, tmp_path: Any) -> None:
    assert is_part(part)
    bundle = Bundle.of(part, tmp_path)
    assert {bundle.zip.parent, bundle.entry.parent, bundle.plan.parent} == {tmp_path}


@pytest.mark.parametrize("root", ["/zookeeper", "/zookeeper/config", "zookeeper", "/a/../b", "/a/\u0430"])
def test_a_root_that_is_zookeepers_own_or_no_path_is_refused_before_anything_is_sent(root: str) -> None:
    assert not is_znode_path(root)
    with pytest.raises(InvalidPath, match=r"^(root '.*not below ZooKeeper's own /zookeeper$|part of the root)"):
        ZooKeeperStateStore.open("127.0.0.1:1", root, "topo")


@pytest.mark.parametrize("host", ["a", "a.b:2181", "10.0.0.1", "[::1]:2181", "fe80::1%eth0", "a_b"])
def test_a_host(host: str) -> None:
    assert is_host(host)


@pytest.mark.parametrize("host", ["", "a/chroot", "a,b", "a b", "u:p@h", "\u0430.example", "a\r\n", "x" * 256, None])
def test_what_is_no_host(host: Any) -> None:
    assert not is_host(host)


@pytest.mark.parametrize("stream", ["a\x1b[31m", "a\u200d", "x" * 129, "str\u0435am"])
def test_a_stream_that_cannot_be_told_from_others_is_refused(stream: str) -> None:
    with pytest.raises(
        InvalidStream, match=r"component 'c' declares stream '.*', which .*told from others at a glance"
    ):
        OutputFieldsDeclarer("c").declare_stream(stream, ["a"])
