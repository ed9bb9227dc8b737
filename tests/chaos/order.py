"""The order watch: while all goes on, no effect is ahead of ZooKeeper's record by more than one, and none behind it."""

from __future__ import annotations

import threading

import psycopg
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from stormline.runtime.state.stored_value import unseal
from stormline.topology.serialization import PLAIN

LOOK_SECS = 0.05
ANSWER_SECS = 1.0


class OrderWatch:
    """Compares the two records from outside, past the proxies. `looks` counts the comparisons."""

    def __init__(self, dsn: str, zookeeper: str) -> None:
        self._dsn = dsn
        self._zookeeper = zookeeper
        self._topology = ""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._look_on, daemon=True, name="order")
        self.looks = 0
        self.violations: list[str] = []

    def follow(self, topology: str) -> None:
        """Look at this topology from now on."""
        self._topology = topology
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
            try:
                with psycopg.connect(self._dsn, connect_timeout=2, autocommit=True) as db:
                    while not self._stopping.wait(LOOK_SECS):
                        self._look(db, client)
            except (psycopg.Error, KazooException, KazooTimeoutError):
                pass  # one of them is down
            except Exception as error:
                self.violations.append(f"{self._topology}: the order watch failed: {error!r}")
                break
        client.stop()
        client.close()

    def _look(self, db: psycopg.Connection, client: KazooClient) -> None:
        topology = self._topology
        most = _fences(db, topology)[1]
        try:
            client.sync_async(f"/transactional/{topology}").get(timeout=ANSWER_SECS)
            data, _ = client.get_async(f"/transactional/{topology}/state/committed").get(timeout=ANSWER_SECS)
            recorded = int(unseal(data, PLAIN, topology)["txid"])
        except NoNodeError:
            recorded = 0
        least = _fences(db, topology)[0]
        self.looks += 1
        if recorded < most - 1:
            self.violations.append(
                f"{topology}: transaction {most} had effects while ZooKeeper held {recorded} as committed"
            )
        if least < recorded:
            self.violations.append(
                f"{topology}: ZooKeeper held {recorded} as committed while a committer had only {least}"
            )


def _fences(db: psycopg.Connection, topology: str) -> tuple[int, int]:
    row = db.execute("SELECT min(txid), max(txid) FROM fence WHERE topology = %s", (topology,)).fetchone()
    assert row is not None
    return int(row[0] or 0), int(row[1] or 0)
