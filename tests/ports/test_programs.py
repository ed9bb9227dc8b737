"""Each program gives exactly what it would in Storm, undisturbed and while its methods fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stormline import InProcessCluster
from tests.kits.components import eventually
from tests.ports import transactional_global_count
from tests.ports.expected import PORTS, Port
from tests.ports.failing import failing

SEEDS = range(4)

pytestmark = [
    # A bolt's attempt that failed is dropped with the connection that it opened, in Storm too.
    pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning"),
]


def run(port: Port, cluster: Any) -> Any:
    """Run a program until all is counted, and return its handle."""
    port.fill()
    return go_on(port, cluster)


def go_on(port: Port, cluster: Any) -> Any:
    """Run a program, whose world holds something already, until all is counted, and return its handle."""
    handle = cluster.submit_topology("ported", port.conf(), port.topology())
    if port.done is None:
        handle.await_drained(60)
    else:
        done = port.done
        eventually(lambda: done() or not handle.running, 60)
    handle.kill(20)
    assert handle.error is None
    return handle


@pytest.mark.parametrize("name", PORTS)
def test_a_ported_program_is_right_as_written(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with InProcessCluster() as cluster:
        handle = run(PORTS[name], cluster)
    found, expected = PORTS[name].check()
    assert found == expected
    if not name.startswith("kafka"):  # whose brokers refuse by themselves
        assert handle.snapshot().replays == 0


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", PORTS)
def test_a_ported_program_is_right_while_its_methods_fail(
    name: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with InProcessCluster() as cluster, failing(seed, PORTS[name].program) as failures:
        handle = run(PORTS[name], cluster)
    found, expected = PORTS[name].check()
    assert found == expected
    assert failures.struck.total() > 0
    in_coordinator = ("is_ready", "initialize_transaction")
    if any(not where.endswith(in_coordinator) for where in failures.struck):
        assert handle.snapshot().replays > 0


@pytest.mark.parametrize("name", [name for name, port in PORTS.items() if port.survives])
def test_a_ported_program_whose_source_and_state_outlive_it_is_right_over_three_drivers(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    port = PORTS[name]
    port.fill()
    with InProcessCluster() as cluster, failing(7, port.program):
        for txid in (1, 2):
            handle = cluster.submit_topology("ported", port.conf(), port.topology())
            handle.await_committed(txid, 60)
            handle.kill(20)
        go_on(port, cluster)
    found, expected = port.check()
    assert found == expected


def test_the_global_count_after_each_transaction_is_that_of_storm_starter() -> None:
    port, counts = PORTS["global_count"], {}

    class Noted(dict[str, Any]):
        def __setitem__(self, key: str, value: Any) -> None:
            super().__setitem__(key, value)
            counts[value.txid] = value.count

    port.fill()
    with InProcessCluster() as cluster, pytest.MonkeyPatch.context() as patched:
        patched.setattr(transactional_global_count.TransactionalGlobalCount, "DATABASE", Noted())
        handle = cluster.submit_topology("ported", port.conf(), port.topology())
        handle.await_drained(60)
    assert counts == {1: 9, 2: 16, 3: 19}
