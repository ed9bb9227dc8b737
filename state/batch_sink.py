"""BatchSink: stores the numbered batches of another engine in a map, each once, by the fence that topologies have."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from stormline.state.errors import InvalidStore, RefusedValue, StoreFailed, StoreMismatch, StoreUnavailable
from stormline.state.maps import StateMap
from stormline.state.open_map import OpenMap
from stormline.state.store_resource import StoreResource
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.commit_participants import WHOLE_TOPOLOGY, CommitToken
from stormline.topology.errors import did_you_mean, shown
from stormline.topology.identifiers import is_part
from stormline.topology.serialization import PLAIN

UPSERT, INCREMENT = "upsert", "increment"
MODES = (UPSERT, INCREMENT)
EPOCH = 1
"""The other engine tells of none: it keeps two of its drivers from one checkpoint by its own means."""

Rows = dict[Any, Any]


@dataclass(frozen=True)
class BatchSink:
    """Where a query stores, and how.

    Args:
        query (str): The query's name, by which the fence knows it.
        map (StateMap): Where its rows are stored.
        mode (str): "upsert": a row replaces what its key holds; "increment": its values are added to that.

    Raises:
        InvalidStore: The name or the mode is none.
    """

    query: str
    map: StateMap
    mode: str = UPSERT

    def __post_init__(self) -> None:
        if not is_part(self.query):
            raise InvalidStore(
                f"a query that stores in table {self.map.table!r} is named {shown(self.query)}, expected 1 to 128 "
                "letters, digits, '_', '.' or '-': the fence keeps by its name which batch was stored last"
            )
        if self.mode not in MODES:
            raise InvalidStore(
                f"query {self.query!r} stores in mode {shown(self.mode)}, expected one of {', '.join(MODES)}"
                f"{did_you_mean(self.mode, MODES)}"
            )

    def gathered(self, rows: Iterable[tuple[Any, Any]], into: Rows | None = None) -> Rows:
        """Return (key, value) rows by key: those of one key added up, or refused, as the mode has it.

        Raises:
            RefusedValue: Two rows of one batch replace the same key: nobody could tell which is the later.
        """
        found: Rows = {} if into is None else into
        for key, value in rows:
            if key not in found:
                found[key] = value
            elif self.mode == INCREMENT:
                found[key] = self._sum(found[key], value)
            else:
                raise RefusedValue(
                    f"query {self.query!r} gives two rows of one batch for key {shown(key)} of table "
                    f"{self.map.table!r}: which one is later nobody knows; aggregate them before, or store with mode="
                    f"{INCREMENT}"
                )
        return found

    def _sum(self, one: Any, other: Any) -> Any:
        if len(self.map.spec.value) > 1:
            return tuple(_added(a, b) for a, b in zip(one, other, strict=True))
        return _added(one, other)

    def store(self, batch: int, rows: Mapping[Any, Any], history: str) -> bool:
        """Store a batch, unless the database holds it; return whether it did so now.

        Args:
            batch (int): Its number, from 0 on, without gaps.
            rows (Mapping[Any, Any]): What to store, by key.
            history (str): What tells this query from another of its name: the id that its checkpoint holds.

        Raises:
            StoreMismatch: The database holds another history than the checkpoint; nothing was changed.
            StoreFailed: The database does not answer, or refuses: start the query again, nothing is lost.
            RefusedValue: A column does not take a value.
        """
        attempt = TransactionAttempt(batch + 1, 1)
        commit_id = int.from_bytes(hashlib.blake2b(history.encode(), digest_size=8).digest(), "big") >> 1
        token = CommitToken(self.query, WHOLE_TOPOLOGY, EPOCH, attempt, commit_id)
        resource = StoreResource(self.map.store)
        try:
            return self._stored(resource, token, rows)
        except StoreUnavailable as error:  # nobody replays by itself here
            raise StoreFailed(
                f"query {self.query!r} cannot store batch {batch}: {error.why}; start it again"
            ) from error
        except StoreMismatch as error:
            raise StoreMismatch(
                f"query {self.query!r} cannot store batch {batch}, which is transaction {batch + 1} in "
                f"{resource.name}: its checkpoint is of another history ({error})"
            ) from error
        finally:
            resource.close()

    def _stored(self, resource: StoreResource, token: CommitToken, rows: Mapping[Any, Any]) -> bool:
        transaction = resource.begin(token, PLAIN)
        try:
            opened = OpenMap(self.map.spec, transaction, transaction.table(self.map.spec, 0))
            if self.mode == INCREMENT:
                opened.multi_update(rows, lambda old, by: by if old is None else self._sum(old, by))
            else:
                opened.multi_put(rows)
            transaction.prepare()
            transaction.commit()
        except BaseException:
            transaction.abort()
            raise
        return not transaction.stored


def _added(one: Any, other: Any) -> Any:
    return other if one is None else one if other is None else one + other
