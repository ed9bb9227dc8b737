"""examples.order_files without Spark: each order once, whole transactions, nothing pending."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples import order_files
from stormline import InProcessCluster


def test_each_order_is_there_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with InProcessCluster() as cluster, cluster.submit(order_files.topology(), order_files.config) as handle:
        handle.await_drained(60)
    assert sorted(order_files.written()) == list(range(order_files.ORDERS))
    assert list((order_files.DIRECTORY / ".pending").iterdir()) == []
    assert order_files.report().startswith("1000 orders in .stormline/order-files/orders, 1000 of them different")
