"""A second committer: it stores the sums of each key by Stormline's own stores, in PostgreSQL and in Redis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stormline import BaseTransactionalBolt, Config, ICommitter, TopologyContext, TransactionAttempt, Tuple
from stormline.state import OpaqueMap, PostgreSQLStore, RedisStore, StateMap, Store, TransactionalMap
from stormline.topology.contracts import Collector, Conf
from tests.chaos.numbers import Sums

TIMEOUT_SECS = 4.0
VALUE = {"count": int, "total": int, "squares": int}

Places = Mapping[str, str]
"""Where the stores are: "postgresql" a DSN, "redis" a URL where there is one."""


def stores_at(places: Places) -> list[Store]:
    """Return the stores that are there."""
    found: list[Store] = [PostgreSQLStore(places["postgresql"], timeout_secs=TIMEOUT_SECS)]
    if "redis" in places:
        found.append(RedisStore(places["redis"], timeout_secs=TIMEOUT_SECS))
    return found


def maps_of(topology: str, places: Places) -> list[StateMap]:
    """Return the maps of one topology: of each kind one in each store."""
    name = f"sums_{topology.replace('-', '_')}"
    return [
        kind(store, f"{name}_{kind.__name__}", key={"key": int}, value=VALUE)
        for store in stores_at(places)
        for kind in (TransactionalMap, OpaqueMap)
    ]


def stored_sums(topology: str, places: Places) -> dict[str, dict[int, Sums]]:
    """Return what the maps of one topology hold, by what they are called."""
    return {
        f"{one.store} {one.table}": {key: Sums(*values) for key, values in one.items().items()}
        for one in maps_of(topology, places)
    }


class StoreByMaps(BaseTransactionalBolt, ICommitter):
    """Adds what a batch changes to the maps, whichever attempt of it this is."""

    gathers: Sequence[str] = ("sums",)

    def __init__(self, places: Places) -> None:
        self.places = places

    def prepare(self, conf: Conf, context: TopologyContext, collector: Collector, batch_id: TransactionAttempt) -> None:
        self.context, self.attempt = context, batch_id
        self.sums: dict[int, Sums] = {}

    def execute(self, tup: Tuple) -> None:
        _, key, *rest = tup
        self.sums[key] = self.sums.get(key, Sums()).plus(Sums(*rest))

    def finish_batch(self) -> None:
        for one in maps_of(self.context.topology_id, self.places):
            one.begin_commit(self.context, self.attempt).multi_update(self.sums, _plus)

    def get_component_configuration(self) -> Config:
        own = Config()
        own.register_serialization(Sums)
        return own


def _plus(held: tuple[int, int, int] | None, more: Sums) -> tuple[int, ...]:
    return tuple(Sums(*held or ()).plus(more))
