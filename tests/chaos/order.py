"""The order watch: meanwhile no effect is ahead of ZooKeeper's record by more than one step, and none behind it."""

from __future__ import annotations

import threading

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from stormline.runtime.state.stored_value import unseal
from stormline.topology.serialization import PLAIN
from tests.chaos.design import Design
from tests.chaos.results import Away, Results

LOOK_SECS = 0.05
ANSWER_SECS = 1.0


class OrderWatch:
    """Compares the two records from outside, past the proxies. `looks` counts the comparisons."""

    def __init__(self, zookeeper: str) -> None:
        self._zookeeper = zookeeper
        self._followed: tuple[Design, Results] | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._look_on, daemon=True, name="order")
        self.looks = 0
        self.violations: list[str] = []

    def follow(self, design: Design, results: Results) -> None:
        """Look at this topology from now on."""
        self._followed = design, results
        if not self._thread.is_alive():
            self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _look_on(self) -> None:
        client = KazooClient(self._zookeeper, timeout=20, connection_retry={"max_tries": -1, "max_delay": 1.0})
        client.start_async()
        while not self._stopping.wait(LOOK_SECS):
            assert self._followed is not None
            design, results = self._followed
            try:
                self._look(design, results, client)
            except (Away, KazooException, KazooTimeoutError):
                pass  # one of them is down
            except Exception as error:
                self.violations.append(f"{design.topology}: the order watch failed: {error!r}")
                break
        client.stop()
        client.close()

    def _look(self, design: Design, results: Results, client: KazooClient) -> None:
        topology = design.topology
        most = results.look().most
        try:
            client.sync_async(f"/transactional/{topology}").get(timeout=ANSWER_SECS)
            data, _ = client.get_async(f"/transactional/{topology}/state/committed").get(timeout=ANSWER_SECS)
            recorded = int(unseal(data, PLAIN, topology)["txid"])
        except NoNodeError:
            recorded = 0
        least = results.look().least
        self.looks += 1
        if recorded < most - design.group_max:
            self.violations.append(
                f"{topology}: transaction {most} had effects while ZooKeeper held {recorded} as committed"
            )
        if least < recorded and not results.lags:
            self.violations.append(
                f"{topology}: ZooKeeper held {recorded} as committed while a committer had only {least}"
            )
