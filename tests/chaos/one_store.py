"""Committers all of whose effects are in one store: transactions that wait become durable together, in groups."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from stormline.state import PostgreSQLStore
from stormline.state.kafka import KafkaSink
from tests.chaos import deaths
from tests.chaos.gathered import GatheredSums
from tests.chaos.kafka_topics import entries_of, sums_of
from tests.chaos.ledger import Ledger
from tests.chaos.numbers import Sums
from tests.chaos.stores import TIMEOUT_SECS, StoreByMaps


class SumsInPostgreSQL(GatheredSums):
    """Writes the rows of the ledger in the transaction of Stormline's own store, whose fence is all there is."""

    def __init__(self, folder: Path, dsn: str, gathers: bool) -> None:
        super().__init__(folder, gathers)
        self.dsn = dsn
        self.effects_in = self.store = PostgreSQLStore(dsn, timeout_secs=TIMEOUT_SECS)

    def finish_batch(self) -> None:
        deaths.meet(self.folder, deaths.BEFORE)
        with self.store.transaction(self.context, self.attempt) as db:
            Ledger(self.dsn, self.topology).write_unfenced(
                db, self.token, self.task, self.sums, self.ranges, commit_id=self.commit_id
            )
            deaths.meet(self.folder, deaths.WITHIN)
        deaths.meet(self.folder, deaths.AFTER)


class MapsInPostgreSQL(StoreByMaps):
    """Adds what a batch changes to maps, in that same transaction."""

    def __init__(self, dsn: str) -> None:
        super().__init__({"postgresql": dsn})
        self.effects_in = PostgreSQLStore(dsn, timeout_secs=TIMEOUT_SECS)


class SumsInKafka(GatheredSums):
    """Writes an entry, with the ranges, into one topic, and the sums of each key into another one."""

    def __init__(self, folder: Path, servers: str, gathers: bool) -> None:
        super().__init__(folder, gathers)
        self.effects_in = self.sink = KafkaSink(servers, timeout_secs=TIMEOUT_SECS, client={"linger.ms": 0})

    def finish_batch(self) -> None:
        deaths.meet(self.folder, deaths.BEFORE)
        transaction = self.sink.in_commit(self.context, self.attempt)
        whole = Sums()
        for key, sums in self.sums.items():
            whole = whole.plus(sums)
            value = {"txid": self.token.txid, "task": self.task, "key": key, "sums": sums}
            transaction.send(sums_of(self.topology), _json(value), key=b"%d" % key)
        deaths.meet(self.folder, deaths.WITHIN)
        ranges = [[partition, *rows] for partition, rows in self.ranges.items()]
        entry = {"token": [self.token.txid, self.task, self.token.epoch, self.token.attempt], "sums": whole}
        transaction.send(entries_of(self.topology), _json({**entry, "ranges": ranges}))
        deaths.meet(self.folder, deaths.AFTER)


def _json(value: Mapping[str, object]) -> bytes:
    return json.dumps(value).encode()
